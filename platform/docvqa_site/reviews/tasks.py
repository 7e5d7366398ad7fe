"""The tasks of reviews, which the clock calls."""

from docvqa_site.celery import REMIND_TASK, SECOND_OPINIONS_TASK, app
from docvqa_site.reviews.reminders import remind_reviewers
from docvqa_site.reviews.services import let_rejections_stand


@app.task(name=REMIND_TASK)
def remind() -> None:
    """Mail reviewers what needs their decision."""
    remind_reviewers()


@app.task(name=SECOND_OPINIONS_TASK)
def end_wait_for_second_opinions() -> None:
    """Let rejections stand that nobody has contradicted in time."""
    let_rejections_stand()
