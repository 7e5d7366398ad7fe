"""The callback with which long work reports how far it is, the same everywhere."""

from collections.abc import Callable

OnProgress = Callable[[int, int], None]
"""Called with the units of work that are done, and with their total."""


def ignore_progress(_done: int, _total: int) -> None:
    """Do nothing: the default of functions that take an `OnProgress`."""
