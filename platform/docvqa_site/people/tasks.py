"""The task of people's data, which the clock calls."""

from docvqa_site.celery import ERASE_TASK, app
from docvqa_site.people.erasing import erase_due


@app.task(name=ERASE_TASK)
def erase_people() -> None:
    """Erase the accounts whose owners asked for it long enough ago."""
    erase_due()
