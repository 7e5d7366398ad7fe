"""The tasks of the leaderboards, which the clock calls."""

import logging

from docvqa_site.boards.history import record_ranks
from docvqa_site.boards.required_examinations import request_missing
from docvqa_site.celery import RANKS_TASK, REQUIRED_EXAMINATIONS_TASK, app

logger = logging.getLogger(__name__)


@app.task(name=RANKS_TASK)
def record() -> None:
    """Record which ranks have changed."""
    if changed := record_ranks():
        logger.info("Recorded the ranks of %d runs, which have changed.", changed)


@app.task(name=REQUIRED_EXAMINATIONS_TASK)
def request_required_examinations() -> None:
    """Request the examinations that ranks need to be final."""
    if requested := request_missing():
        logger.info("Requested %d examinations of runs whose ranks need them.", requested)
