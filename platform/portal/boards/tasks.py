"""The tasks of the leaderboards, which the clock calls."""

import logging

from portal.boards.history import record_ranks
from portal.celery import RANKS_TASK, app

logger = logging.getLogger(__name__)


@app.task(name=RANKS_TASK)
def record() -> None:
    """Record which ranks have changed."""
    if changed := record_ranks():
        logger.info("Recorded the ranks of %d runs, which have changed.", changed)
