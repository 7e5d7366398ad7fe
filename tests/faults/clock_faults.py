"""Workers whose clocks are wrong."""

from pathlib import Path

from tests.faults.sites import WORKERS
from tests.faults.trials import Trial

OFFSETS = ("+10m", "-10m")


def library() -> Path | None:
    """The library that gives a process another time, if it is installed (Debian's package faketime)."""
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)


def wrong_clocks(trial: Trial) -> None:
    """Let the clock of one worker be ten minutes fast and that of the other ten minutes slow."""
    preloaded = library()
    assert preloaded is not None
    for name, offset in zip(WORKERS, OFFSETS, strict=True):
        trial.site.kill_with_children(name)
        trial.site.start_process(
            name, {"LD_PRELOAD": str(preloaded), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        )
        trial.faults += 1
    trial.traffic.submit(8)
    trial.traffic.finish()
    for name in WORKERS:
        trial.site.kill_with_children(name)
        trial.site.start_process(name)
