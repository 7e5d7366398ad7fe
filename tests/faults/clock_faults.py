"""Clocks that are wrong, and clocks that jump.

libfaketime gives a process another time from its start on. Where it leaves out the monotonic clock, every sleep of
Python fails, so both clocks are shifted; a jump takes a restart.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.faults.sites import WORKERS
from tests.faults.trials import Trial

OFFSETS = ("+10m", "-10m")
SITE = ("web", "intake", "clock", "mail")


def library() -> Path | None:
    """The library that gives a process another time, if it is installed (Debian's package faketime)."""
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)


def wrong_clocks(trial: Trial) -> None:
    """Let the clock of one worker be ten minutes fast and that of the other ten minutes slow."""
    with _clocks(trial, WORKERS[:1], "+10m"), _clocks(trial, WORKERS[1:], "-10m"):
        trial.traffic.submit(8)
        trial.traffic.finish()


def jumping_clock(trial: Trial) -> None:
    """Let the clock of the site jump ten minutes ahead, then ten minutes behind, and back, under load."""
    for offset in OFFSETS:
        trial.watch_steps()
        trial.traffic.submit(4)
        trial.wait_for_step("scoring")
        with _clocks(trial, SITE, offset):
            trial.traffic.submit(4)
            trial.wait_for_step("scoring")


@contextmanager
def _clocks(trial: Trial, names: Sequence[str], offset: str) -> Iterator[None]:
    """Restart processes on a clock that is wrong by `offset`, and on the right one after the block."""
    preloaded = library()
    assert preloaded is not None
    for name in names:
        trial.site.kill_with_children(name)
        trial.site.start_process(name, {"LD_PRELOAD": str(preloaded), "FAKETIME": offset})
        trial.faults += 1
    wrong = {name: trial.site.processes[name] for name in names}
    yield
    # Else they were started again, on the right clock.
    assert all(trial.site.processes[name] is wrong[name] and wrong[name].poll() is None for name in names)
    for name in names:
        trial.site.kill_with_children(name)
        trial.site.start_process(name)
