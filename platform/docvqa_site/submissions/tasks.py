"""The tasks of submissions, which the clock calls."""

from docvqa_site.celery import CLEAN_UP_TASK, CLOSED_PHASES_TASK, DEADLINES_TASK, FOLLOW_PHASES_TASK, app
from docvqa_site.submissions.deadline_reminders import remind_of_deadlines
from docvqa_site.submissions.phase_ends import notify_of_closed_phases
from docvqa_site.submissions.publication import follow_phases
from docvqa_site.submissions.retention import clean_up

app.task(name=CLEAN_UP_TASK)(clean_up)
app.task(name=FOLLOW_PHASES_TASK)(follow_phases)
app.task(name=CLOSED_PHASES_TASK)(notify_of_closed_phases)
app.task(name=DEADLINES_TASK)(remind_of_deadlines)
