"""A database that is restarted under load."""

import time

from tests.faults.trials import Trial

RESTARTS = 3
AWAY_S = 3


def restart_database(trial: Trial) -> None:
    """Kill PostgreSQL, which breaks every connection, and start it again a few seconds later."""
    postgres = trial.site.back_ends.postgres
    assert postgres is not None
    trial.traffic.submit(16)
    for _ in range(RESTARTS):
        time.sleep(5)
        postgres.kill()
        trial.faults += 1
        time.sleep(AWAY_S)
        postgres.start()
