"""The rounds of a run, sent to its loggers beside being shown."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from starter_kit.console import log
from starter_kit.reporting.loggers import Delivery, LoggedRun, RunLogger, flat
from starter_kit.reporting.metrics import RoundMetrics, RunSummary
from starter_kit.runs.progress import Watcher
from starter_kit.settings.run_settings import PrivateSettings, RunSettings

if TYPE_CHECKING:
    # It loads torch, which takes seconds.
    from starter_kit.learning.local_training import LocalStep


class LoggedRounds(Watcher):
    """Passes progress on to `shown`, and rounds to the loggers as well."""

    def __init__(self, shown: Watcher, delivery: Delivery) -> None:
        self._shown = shown
        self._delivery = delivery
        self._summary: RunSummary | None = None

    def pages(self, done: int, total: int) -> None:
        """Show how many of all pages have been read."""
        self._shown.pages(done, total)

    def begins(self, first: int, rounds: int, sent_bytes: int = 0) -> None:
        """Show that training begins."""
        self._shown.begins(first, rounds, sent_bytes)

    def local_step(self, step: "LocalStep") -> None:
        """Show a step of a client's training; loggers receive whole rounds only."""
        self._shown.local_step(step)

    def update_arrived(self, round_number: int, arrived: int, chosen: int) -> None:
        """Show how many of the round's updates have arrived."""
        self._shown.update_arrived(round_number, arrived, chosen)

    def round_done(self, metrics: RoundMetrics) -> None:
        """Show a round, and send it."""
        self._shown.round_done(metrics)
        self._delivery.write(metrics)

    def complete(self, summary: RunSummary) -> None:
        """Receive the summary of the run, which is complete."""
        self._summary = summary

    def end(self) -> None:
        """End the run at the loggers."""
        self._delivery.close(self._summary)


@contextmanager
def logged_rounds(
    shown: Watcher, loggers: Sequence[RunLogger], settings: RunSettings, earlier: Sequence[RoundMetrics]
) -> Iterator[LoggedRounds]:
    """Yield a watcher that shows the run's progress as `shown` does, and sends its rounds to `loggers`.

    Args:
        earlier: The rounds before the run was interrupted.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A logger can't be reached or written.
    """
    values = dict(flat(settings.model_dump(mode="json")))
    run = LoggedRun(settings.experiment, values, private=isinstance(settings, PrivateSettings))
    watcher = LoggedRounds(shown, Delivery(loggers, run, earlier, log))
    try:
        yield watcher
    finally:
        watcher.end()
