"""The tasks of reviews, which the clock calls."""

from portal.celery import REMIND_TASK, app
from portal.reviews.reminders import remind_reviewers


@app.task(name=REMIND_TASK)
def remind() -> None:
    """Mail reviewers what needs their decision."""
    remind_reviewers()
