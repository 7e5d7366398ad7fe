"""Processes of the site that die: the web server in the middle of a request, the intake, the clock."""

import threading
import time
from collections.abc import Callable
from fnmatch import fnmatchcase

from tests.faults.trials import Trial

KILLS = 6
SUBMISSIONS = 12


def kill_site_during(call: str) -> Callable[[Trial], None]:
    """Return a scenario that kills the web server a few milliseconds after it was sent a request like `call`."""

    def inflict(trial: Trial) -> None:
        trial.site.proxy.on_request = _Killer(trial, call)
        trial.traffic.submit(SUBMISSIONS, pause_s=1)
        trial.traffic.wait_until_submitted()

    return inflict


class _Killer:
    """Kills the web server `KILLS` times, each time a little later after the request."""

    def __init__(self, trial: Trial, call: str) -> None:
        self._trial = trial
        self._call = call
        self._lock = threading.Lock()

    def __call__(self, request: str) -> None:
        if (
            fnmatchcase(request, self._call)
            and self._trial.faults < KILLS
            and self._lock.acquire(blocking=False)
        ):
            threading.Thread(target=self._kill, daemon=True).start()

    def _kill(self) -> None:
        try:
            time.sleep(0.01 * self._trial.faults)
            self._trial.kill("web")
            # It must come back, or nobody could ask again.
            time.sleep(3)
        finally:
            self._lock.release()


def kill_intake(trial: Trial) -> None:
    """Kill the process that receives reports, again and again while they arrive."""
    trial.traffic.submit(SUBMISSIONS)
    for _ in range(KILLS):
        time.sleep(4)
        trial.kill("intake")


def kill_clock(trial: Trial) -> None:
    """Let the clock be away while a worker dies: only the clock's watchdog can notice that."""
    trial.watch_steps()
    trial.traffic.submit(SUBMISSIONS)
    with trial.site.without("clock"):
        trial.faults += 1
        worker = trial.wait_for_step("scoring")
        assert worker is not None
        trial.kill(worker)
        time.sleep(20)
