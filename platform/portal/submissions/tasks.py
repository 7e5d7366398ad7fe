"""The tasks of submissions, which the clock calls."""

import logging

from portal.celery import CLEAN_UP_TASK, DEADLINES_TASK, FOLLOW_PHASES_TASK, app
from portal.submissions.deadline_reminders import remind_of_deadlines
from portal.submissions.publication import follow_phases
from portal.submissions.retention import clean_up

logger = logging.getLogger(__name__)


@app.task(name=CLEAN_UP_TASK)
def remove_what_is_old() -> None:
    """Apply the rules of retention, a batch at a time."""
    counts = clean_up()
    if any(counts.values()):
        logger.info("Removed by the rules of retention: %s", counts)


@app.task(name=FOLLOW_PHASES_TASK)
def show_what_phases_kept_back() -> None:
    """Publish what phases that have ended kept back."""
    if changed := follow_phases():
        logger.info("Published or named by the rules of their phases: %d submissions", changed)


app.task(name=DEADLINES_TASK)(remind_of_deadlines)
