"""Clocks that are wrong, and clocks that jump."""

from pathlib import Path

from tests.faults.sites import WORKERS
from tests.faults.trials import Trial

OFFSETS = ("+10m", "-10m")
# A worker's sandbox can't read the file that tells the time; its clock may be wrong: see `wrong_clocks`.
SITE = ("web", "intake", "clock", "mail")


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


def jumping_clock(trial: Trial) -> None:
    """Let the clock of the site jump ten minutes ahead, then ten minutes behind, and back, under load."""
    preloaded, clock = library(), trial.folder / "clock"
    assert preloaded is not None
    clock.write_text("+0")
    variables = {
        "LD_PRELOAD": str(preloaded),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    for name in SITE:
        trial.site.kill_with_children(name)
        trial.site.start_process(name, variables)
    for offset in (*OFFSETS, "+0"):
        trial.watch_steps()
        trial.traffic.submit(4)
        trial.wait_for_step("scoring")
        clock.write_text(offset)
        trial.faults += 1
    trial.traffic.finish()
    for name in SITE:
        trial.site.kill_with_children(name)
        trial.site.start_process(name)
