"""Watches over evaluations, so that none is silently stuck. Runs every `WATCHDOG_SECONDS`.

A running one whose worker sends no sign of life is lost and tried again. A queued one whose message has expired is
sent again: the message may have been lost, and its URLs have expired. If no worker takes it for
`EVALUATION_QUEUE_SECONDS`, the organizers are notified, once.
"""

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evaluator.contracts import Outcome
from evaluator.errors import ErrorCode, ProblemError
from portal.evaluation import notifications, outcomes
from portal.evaluation.dispatch import MESSAGE_LIFETIME, send_on_commit
from portal.evaluation.models import Evaluation, EvaluationState, StepReport
from portal.submissions.models import Run

logger = logging.getLogger(__name__)


def watch(now: datetime | None = None) -> None:
    """Restart lost evaluations, send expired messages again, and notify the organizers of stalled steps."""
    now = now or timezone.now()
    for evaluation_id in _silent(now).values_list("pk", flat=True):
        _end_lost(evaluation_id, now)
    for evaluation_id in _expired(now).order_by("step_queued_at").values_list("pk", flat=True):
        _send_again(evaluation_id, now)
    _notify_overdue(now)


def _silent(now: datetime) -> QuerySet[Evaluation]:
    silent_since = now - timedelta(seconds=settings.EVALUATION_SILENCE_SECONDS)
    return Evaluation.objects.filter(state=EvaluationState.RUNNING, heartbeat_at__lt=silent_since)


def _expired(now: datetime) -> QuerySet[Evaluation]:
    return Evaluation.objects.filter(state=EvaluationState.QUEUED, sent_at__lt=now - MESSAGE_LIFETIME)


@transaction.atomic
def _end_lost(evaluation_id: UUID, now: datetime) -> None:
    evaluation = _silent(now).select_for_update().filter(pk=evaluation_id).first()
    # The worker may have sent a sign of life in the meantime.
    if evaluation is None:
        return
    run = Run.objects.select_for_update().get(pk=evaluation.run_id)
    logger.warning(
        "Lost %s in %s: worker %s sends no sign of life.", evaluation, evaluation.step, evaluation.worker
    )
    lost = ProblemError.of(ErrorCode.WORKER_LOST, where=f"step {evaluation.step}")
    StepReport.objects.create(
        evaluation=evaluation,
        step=evaluation.step,
        outcome=Outcome.FAILED,
        problems=[problem.model_dump(mode="json") for problem in lost.problems],
        received_at=now,
    )
    outcomes.fail_or_retry(evaluation, run, EvaluationState.LOST, now)


@transaction.atomic
def _send_again(evaluation_id: UUID, now: datetime) -> None:
    evaluation = _expired(now).select_for_update().filter(pk=evaluation_id).first()
    if evaluation is None:
        return
    evaluation.sent_at = now
    evaluation.save(update_fields=["sent_at"])
    send_on_commit(evaluation)


@transaction.atomic
def _notify_overdue(now: datetime) -> None:
    overdue = list(
        Evaluation.objects.select_for_update(of=("self",))
        .select_related("run__submission")
        .filter(
            state=EvaluationState.QUEUED,
            overdue_at=None,
            step_queued_at__lt=now - timedelta(seconds=settings.EVALUATION_QUEUE_SECONDS),
        )
    )
    if not overdue:
        return
    Evaluation.objects.filter(pk__in=[evaluation.pk for evaluation in overdue]).update(overdue_at=now)
    logger.error(
        "%d evaluations wait for a worker; the oldest step since %s.", len(overdue), _oldest(overdue)
    )
    notifications.notify_stalled_evaluations(overdue)


def _oldest(evaluations: list[Evaluation]) -> datetime:
    return min(evaluation.step_queued_at for evaluation in evaluations)
