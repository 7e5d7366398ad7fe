"""Watches over evaluations, so that none is silently stuck. Runs every `WATCHDOG_SECONDS`.

A running one whose worker sends no heartbeat is lost and tried again. A step that was sent and is not in the
broker any more, though it has not begun, is sent again. If steps wait and no worker is seen, the organizers are
notified, once. Examinations are watched in the same way: see `docvqa_site.evaluation.examining.requests`.

All times are the database's. After a pause of the watchdog itself, such as a restart of the site, every worker
gets the full silence limit again before its evaluation counts as lost.
"""

import logging
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Min, QuerySet
from kombu.exceptions import OperationalError

from docvqa_site.celery import EXAMINATIONS_QUEUE, app
from docvqa_site.evaluation import clock, notifications
from docvqa_site.evaluation.examining import requests
from docvqa_site.evaluation.intake.consequences import after_loss, is_last_loss
from docvqa_site.evaluation.intake.outcomes import carry_out
from docvqa_site.evaluation.models import (
    Evaluation,
    EvaluationState,
    Inventory,
    StepQueue,
    StepReport,
    Watch,
    Worker,
)
from docvqa_site.evaluation.queue import dispatch, places
from docvqa_site.evaluation.queue.waited import end_outage
from docvqa_site.liveness import outages
from docvqa_site.liveness.models import Cause
from docvqa_site.submissions.models import Run
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import Outcome

logger = logging.getLogger(__name__)

# Workers that are gone are shown to the organizers for so long.
FORGOTTEN = timedelta(days=1)


def watch(now: datetime | None = None) -> None:
    """Restart lost evaluations, send what waits, and notify the organizers of queues without workers."""
    now = now or clock.now()
    since = _watching_since(now)
    if since is None:
        return
    for evaluation_id in _silent(now, since).values_list("pk", flat=True):
        _end_lost(evaluation_id, now, since)
    for name in places.STEPS:
        _recall_lost_messages(name, now)
        _notify_unattended(name, now, since)
    for seen in (Worker, Inventory):
        seen._default_manager.filter(seen_at__lt=now - FORGOTTEN).delete()
    requests.watch(now, since, lambda: _messages(EXAMINATIONS_QUEUE))
    dispatch.dispatch()


@transaction.atomic
def _watching_since(now: datetime) -> datetime | None:
    """Return since when the watch has looked without a long pause; None if it has just looked.

    After the intake was away, its queue holds a message for every look that was due.
    """
    last, is_first = Watch.objects.select_for_update().get_or_create(
        pk=1, defaults={"watched_at": now, "since": now}
    )
    if is_first:
        return now
    elapsed_s = (now - last.watched_at).total_seconds()
    if elapsed_s < settings.WATCHDOG_SECONDS / 2:
        return None
    if elapsed_s > max(settings.EVALUATION_SILENCE_SECONDS / 2, 2 * settings.WATCHDOG_SECONDS):
        last.since = now
        outages.note_stop(last.watched_at, now)
    last.watched_at = now
    last.save()
    return last.since


def _silent(now: datetime, since: datetime) -> QuerySet[Evaluation]:
    silent_since = now - timedelta(seconds=settings.EVALUATION_SILENCE_SECONDS)
    if since >= silent_since:
        return Evaluation.objects.none()
    return Evaluation.objects.filter(state=EvaluationState.RUNNING, heartbeat_at__lt=silent_since)


@transaction.atomic
def _end_lost(evaluation_id: UUID, now: datetime, since: datetime) -> None:
    evaluation = _silent(now, since).select_for_update().filter(pk=evaluation_id).first()
    # The worker may have sent a heartbeat in the meantime.
    if evaluation is None:
        return
    run = Run.objects.select_for_update().get(pk=evaluation.run_id)
    logger.warning(
        "Lost %s in %s: worker %s stopped sending heartbeats.", evaluation, evaluation.step, evaluation.worker
    )
    code = ErrorCode.WORKERS_LOST if is_last_loss(evaluation) else ErrorCode.WORKER_LOST
    lost = ProblemError.of(code, where=f"step {evaluation.step}")
    StepReport.objects.create(
        evaluation=evaluation,
        step=evaluation.step,
        outcome=Outcome.FAILED,
        problems=[problem.model_dump(mode="json") for problem in lost.problems],
        received_at=now,
    )
    carry_out(after_loss(evaluation, now), evaluation, run, now)


def _recall_lost_messages(queue: str, now: datetime) -> None:
    """Put steps back whose messages the broker has lost; they are sent again in their order.

    The broker hands out the oldest message first. So of those that were sent and have not begun, as many as it no
    longer has are the oldest. A worker that is about to begin is given `EVALUATION_SILENCE_SECONDS`. While all
    workers are off, the broker has every message, and none is sent twice.
    """
    overdue = now - timedelta(seconds=settings.EVALUATION_SILENCE_SECONDS)
    sent = list(places.sent(queue))
    if not sent or sent[0].sent_at is None or sent[0].sent_at >= overdue:
        return
    in_broker = _messages(queue)
    if in_broker is None:
        return
    missing = sent[: max(0, len(sent) - in_broker)]
    lost = Evaluation.objects.filter(
        pk__in=[evaluation.pk for evaluation in missing], state=EvaluationState.QUEUED, sent_at__lt=overdue
    )
    if count := lost.update(sent_at=None):
        logger.warning("%d steps are sent again: the broker has no message of them in %s.", count, queue)


def _messages(queue: str) -> int | None:
    """Return how many messages wait in the broker's queue; None if it doesn't answer."""
    try:
        with app.connection_for_read() as connection:
            channel: Any = connection.default_channel
            try:
                count: int = channel.queue_declare(queue, passive=True).message_count
            except connection.channel_errors:
                # It doesn't exist: nothing was ever sent there, or, with Redis, everything was taken.
                return 0
            return count
    except (OperationalError, OSError):
        logger.warning("The broker doesn't say how many messages wait in %s.", queue)
        return None


@transaction.atomic
def _notify_unattended(name: str, now: datetime, since: datetime) -> None:
    queue = StepQueue.objects.select_for_update(no_key=True).filter(pk=name).first()
    if queue is None:
        return
    long_ago = now - timedelta(seconds=settings.EVALUATION_UNATTENDED_SECONDS)
    waiting = places.queued(name).filter(step_queued_at__lt=long_ago).exclude(not_before__gt=long_ago)
    is_seen = queue.workers.filter(seen_at__gte=long_ago).exists()
    oldest = None if is_seen else waiting.aggregate(Min("step_queued_at"))["step_queued_at__min"]
    if oldest is None:
        if queue.unattended_at is not None:
            queue.unattended_at = None
            queue.save(update_fields=["unattended_at"])
            end_outage(Cause.UNATTENDED, queue.pk, now)
        return
    if queue.unattended_at is not None or queue.paused_at is not None or since >= long_ago:
        return
    queue.unattended_at = now
    queue.save(update_fields=["unattended_at"])
    outages.begin(Cause.UNATTENDED, queue.pk, oldest)
    logger.error("No worker takes steps from %s; the oldest waits since %s.", queue, oldest)
    notifications.notify_unattended(queue, waiting.count(), oldest)
