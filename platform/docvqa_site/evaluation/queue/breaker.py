"""Pauses a queue when steps of many runs fail in it, and names a worker at which they fail while others work.

A paused queue tries one step at a time, one each `EVALUATION_PROBE_SECONDS`, until a step that was sent since then
passes or an organizer resumes it. No fault in a paused queue, and none at a sick worker, counts against the tries of
a run. All of this is kept in the database, so it holds for all processes. The organizers are mailed once for each
outage and sick worker.
"""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.evaluation import clock, notifications
from docvqa_site.evaluation.models import (
    ACTIVE_STATES,
    Evaluation,
    EvaluationState,
    StepQueue,
    StepReport,
    Worker,
)
from docvqa_site.evaluation.queue import places
from docvqa_site.evaluation.queue.diagnosis import Ending, Outage, SickWorker, diagnose
from docvqa_site.evaluation.queue.dispatch import ALIVE, dispatch_on_commit
from docvqa_site.evaluation.queue.waited import end_outage
from docvqa_site.liveness import outages
from docvqa_site.liveness.models import Cause
from evaluator.errors import shorten
from evaluator.messages.jobs import Outcome, Step, WorkerReport

logger = logging.getLogger(__name__)

# The diagnosis needs no older endings than these.
MOST_ENDINGS = 200


def note_heartbeat(step: Step, worker: str, now: datetime) -> None:
    """Store that the worker is alive and works for the step's queue."""
    name = places.QUEUES[step]
    if not Worker.objects.filter(queue=name, name=worker).update(seen_at=now):
        StepQueue.objects.get_or_create(pk=name)
        Worker.objects.bulk_create([Worker(queue_id=name, name=worker, seen_at=now)], ignore_conflicts=True)


def note_end(evaluation: Evaluation, report: WorkerReport, now: datetime, *, is_fault: bool) -> bool:
    """Store what the end of a step, whose report is stored, says of its worker and queue.

    Return whether a fault is excused: whether it doesn't count against its run. `evaluation` is as it was when the step
    ended.
    """
    worker = shorten(report.provenance.worker)
    note_heartbeat(report.step, worker, now)
    if report.outcome is not Outcome.FAILED:
        _note_health(evaluation, report.step, worker)
    return is_fault and _excuses_fault(report.step, worker, report.operator_trace, now)


def _note_health(evaluation: Evaluation, step: Step, worker: str) -> None:
    """Store that a step ended without a platform fault: the worker is well, and a probe ends an outage."""
    name = places.QUEUES[step]
    Worker.objects.filter(queue=name, name=worker, sick_at__isnull=False).update(sick_at=None, reason="")
    if evaluation.sent_at is None:
        return
    queue = StepQueue.objects.filter(pk=name, paused_at__lte=evaluation.sent_at).first()
    if queue is not None:
        resume(queue)


@transaction.atomic
def resume(queue: StepQueue, actor: User | None = None) -> bool:
    """End the pause of a queue; return whether it was paused."""
    paused = StepQueue.objects.filter(pk=queue.pk, paused_at__isnull=False)
    if not paused.update(paused_at=None, probe_at=None, reason=""):
        return False
    end_outage(Cause.PAUSED, queue.pk, clock.now())
    record(actor, "stepqueue.resumed", queue)
    logger.warning("Steps of the queue %s are sent again.", queue)
    dispatch_on_commit()
    return True


def _excuses_fault(step: Step, worker: str, trace: str, now: datetime) -> bool:
    """Return whether a fault doesn't count against its run, and pause the queue if need be."""
    name = places.QUEUES[step]
    queue, _ = StepQueue.objects.get_or_create(pk=name)
    if queue.paused_at is not None:
        _delay_probe(queue, now)
        return True
    workers = Worker.objects.filter(queue=name)
    working = workers.filter(seen_at__gt=now - ALIVE, sick_at=None).values_list("name", flat=True)
    endings, teams = _endings(name, now), _teams(name)
    match diagnose(endings, working, teams):
        case Outage():
            _pause(queue, trace, now)
            return True
        case SickWorker(sick):
            _name_sick(queue, sick, trace, now)
    return workers.filter(name=worker, sick_at__isnull=False).exists()


def _endings(queue: str, now: datetime) -> list[Ending]:
    """Return how the queue's steps ended lately, the newest first. A lost attempt says nothing about the platform."""
    reports = (
        StepReport.objects.filter(
            step__in=places.STEPS[queue],
            received_at__gt=now - timedelta(seconds=settings.EVALUATION_OUTAGE_SECONDS),
        )
        .exclude(evaluation__state=EvaluationState.LOST)
        .order_by("-received_at", "-pk")
        .values_list("evaluation__run", "evaluation__run__submission__team", "provenance__worker", "outcome")
    )
    return [
        Ending(run, team, worker or "", outcome != Outcome.FAILED)
        for run, team, worker, outcome in reports[:MOST_ENDINGS]
    ]


def _teams(queue: str) -> set[int]:
    """Return the teams that have a step in the queue, whether it waits, was sent or runs."""
    active = Evaluation.objects.filter(state__in=ACTIVE_STATES, step__in=places.STEPS[queue])
    return set(active.order_by().values_list("run__submission__team", flat=True).distinct())


def _pause(queue: StepQueue, trace: str, now: datetime) -> None:
    probe_at = now + timedelta(seconds=settings.EVALUATION_PROBE_SECONDS)
    reason = reason_of(trace)
    unpaused = StepQueue.objects.filter(pk=queue.pk, paused_at__isnull=True)
    if not unpaused.update(paused_at=now, probe_at=probe_at, reason=reason):
        return
    outages.begin(Cause.PAUSED, queue.pk, now)
    record(None, "stepqueue.paused", queue, reason=reason)
    logger.error("The queue %s is paused, because steps of many runs fail: %s", queue, reason)
    notifications.notify_outage(queue, reason)


def _delay_probe(queue: StepQueue, now: datetime) -> None:
    probe_at = now + timedelta(seconds=settings.EVALUATION_PROBE_SECONDS)
    StepQueue.objects.filter(pk=queue.pk, paused_at__isnull=False).update(probe_at=probe_at)


def _name_sick(queue: StepQueue, worker: str, trace: str, now: datetime) -> None:
    reason = reason_of(trace)
    well = Worker.objects.filter(queue=queue, name=worker, sick_at__isnull=True)
    if not well.update(sick_at=now, reason=reason):
        return
    record(None, "worker.sick", Worker.objects.get(queue=queue, name=worker), worker=worker, reason=reason)
    logger.error("The worker %s fails steps of many runs while others work: %s", worker, reason)
    notifications.notify_sick_worker(worker, queue, reason)


def reason_of(trace: str) -> str:
    """Return the last line of an operator's trace, which names the error."""
    lines = trace.strip().splitlines()
    return lines[-1].strip() if lines else "no reason given"
