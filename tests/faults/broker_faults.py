"""Brokers that are away for half a minute, while there is traffic in every phase."""

import time

from tests.faults.sites import WORKERS
from tests.faults.trials import Trial

AWAY_S = 30
SUBMISSIONS = 16


def freeze_broker(trial: Trial) -> None:
    """Let the broker accept connections and answer nothing."""
    _begin_traffic(trial)
    with trial.site.back_ends.frozen_broker():
        trial.faults += 1
        time.sleep(AWAY_S)


def restart_broker(trial: Trial) -> None:
    """Kill the broker, and start it again on the same files."""
    broker = trial.site.back_ends.broker
    assert broker is not None
    _begin_traffic(trial)
    broker.kill()
    trial.faults += 1
    time.sleep(AWAY_S)
    broker.start()


def remove_broker_file(trial: Trial) -> None:
    """Remove the embedded broker's file under the running processes, and restart one of them."""
    _begin_traffic(trial)
    for path in trial.site.home.glob("broker.sqlite3*"):
        path.unlink()
    trial.faults += 1
    for name in WORKERS:
        trial.kill(name)


def _begin_traffic(trial: Trial) -> None:
    """Begin to submit, and return when there are steps in every phase: some sent, some running, some reported."""
    trial.watch_steps()
    trial.traffic.submit(SUBMISSIONS // 2)
    trial.wait_for_step("scoring")
    trial.traffic.submit(SUBMISSIONS // 2)
