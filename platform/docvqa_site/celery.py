"""The site's Celery app: it receives the workers' reports and watches over evaluations.

Start it with `celery -A docvqa_site.celery worker -P solo -Q docvqa_site.intake` and, once per site,
`celery -A docvqa_site.celery beat`. A machine that takes examinations starts
`celery -A docvqa_site.celery worker -P solo -Q examinations`.
"""

import os

from celery import Celery
from celery.schedules import crontab

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "docvqa_site.settings")

from django.conf import settings

from evaluator.messages.jobs import INTAKE_QUEUE
from evaluator.worker.logs import log_tasks_in_context

WATCH_TASK = "docvqa_site.watch_evaluations"
EXAMINE_TASK = "docvqa_site.examine"
EXAMINATIONS_QUEUE = "examinations"
CLEAN_UP_TASK = "docvqa_site.clean_up"
ERASE_TASK = "docvqa_site.erase_people"
FOLLOW_PHASES_TASK = "docvqa_site.follow_phases"
FOLLOW_PHASES_S = 60
HOUR_S = 3600
REMIND_TASK = "docvqa_site.remind_reviewers"
SECOND_OPINIONS_TASK = "docvqa_site.second_opinions"
REMIND_HOUR = 6  # UTC
DEADLINES_TASK = "docvqa_site.remind_of_deadlines"
CLOSED_PHASES_TASK = "docvqa_site.notify_of_closed_phases"
RANKS_TASK = "docvqa_site.record_ranks"
REQUIRED_EXAMINATIONS_TASK = "docvqa_site.request_required_examinations"
REQUIRED_EXAMINATIONS_S = 60
LIVENESS_TASK = "docvqa_site.show_intake"
DRAW_TASK = "docvqa_site.draw_proofs"
# A drawing takes the intake for some seconds at most: reports and heartbeats come in between.
DRAW_EVERY_S = 10

app = Celery("docvqa_site")
app.conf.update(
    settings.CELERY,
    timezone=settings.TIME_ZONE,
    # The watchdog goes through the same queue as the reports: whatever heartbeat came before it counts. Its messages
    # don't expire, since the clocks of two machines would have to agree for that; it ignores those that piled up.
    task_default_queue=INTAKE_QUEUE,
    beat_schedule_filename=str(settings.HOME / "beat-schedule"),
    beat_schedule={
        WATCH_TASK: {"task": WATCH_TASK, "schedule": settings.WATCHDOG_SECONDS},
        LIVENESS_TASK: {"task": LIVENESS_TASK, "schedule": settings.LIVENESS_SECONDS},
        # What piled up while the intake was away must not keep it from the reports.
        **{
            task: {"task": task, "schedule": every, "options": {"expires": expires_s}}
            for task, every, expires_s in (
                (CLEAN_UP_TASK, HOUR_S, HOUR_S),
                (ERASE_TASK, HOUR_S, HOUR_S),
                (FOLLOW_PHASES_TASK, FOLLOW_PHASES_S, FOLLOW_PHASES_S),
                (REMIND_TASK, crontab(hour=REMIND_HOUR, minute=0), HOUR_S),
                (SECOND_OPINIONS_TASK, HOUR_S, HOUR_S),
                (DEADLINES_TASK, HOUR_S, HOUR_S),
                (CLOSED_PHASES_TASK, FOLLOW_PHASES_S, FOLLOW_PHASES_S),
                # A day's ranks are those of its last hour.
                (RANKS_TASK, HOUR_S, HOUR_S),
                (REQUIRED_EXAMINATIONS_TASK, REQUIRED_EXAMINATIONS_S, REQUIRED_EXAMINATIONS_S),
                (DRAW_TASK, DRAW_EVERY_S, DRAW_EVERY_S),
            )
        },
    },
    beat_scheduler="docvqa_site.liveness.clock:LivelyScheduler",
)
log_tasks_in_context(settings.LOGGING)
app.autodiscover_tasks()
