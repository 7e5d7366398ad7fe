"""Sends evaluations to the workers, one step at a time, in the order of `docvqa_site.evaluation.queue.places`.

The queue is in the database. The broker holds only what is about to be taken: about as many steps as there are workers,
so that the order is decided late, and a team that joins now waits for what fairness asks and no more. Steps are sent
when something has changed that may make room: a run was queued, a step began or ended, the watchdog looked.
"""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urljoin
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from kombu.exceptions import OperationalError

from docvqa_site.celery import app
from docvqa_site.evaluation import clock
from docvqa_site.evaluation.models import ACTIVE_STATES, Evaluation, EvaluationState, StepQueue, Worker
from docvqa_site.evaluation.queue import places
from docvqa_site.evaluation.queue.step_secrets import sample_key, step_secret
from docvqa_site.evaluation.states import move_evaluation
from docvqa_site.submissions.models import Run
from docvqa_site.uploads.stores import current_store
from evaluator.messages.jobs import (
    INTAKE_QUEUE,
    STEP_ARTIFACTS,
    STEP_TASK,
    ArtifactKind,
    ArtifactRef,
    EvaluationJob,
    Step,
    TrackRules,
)

logger = logging.getLogger(__name__)

# A worker that runs a step sends a heartbeat every two seconds.
ALIVE = timedelta(minutes=1)


def start(run: Run, step: Step | None = None, **fields: Any) -> Evaluation:
    """Begin the next attempt at a run, with its first step or this one, and `fields` of its row.

    The caller holds the run's lock.
    """
    last = run.evaluations.aggregate(Max("attempt"))["attempt__max"] or 0
    first = step or TrackRules.model_validate(run.rules).steps()[0]
    now = clock.now()
    evaluation = Evaluation.objects.create(
        run=run, attempt=last + 1, step=first, created_at=now, step_queued_at=now, **fields
    )
    dispatch_on_commit()
    return evaluation


def start_all(*, runs: Iterable[Run], **_: object) -> None:
    """Begin to evaluate runs that have just been queued; receives `submissions.signals.runs_queued`."""
    for run in runs:
        start(run)


def dispatch_on_commit() -> None:
    # Robust: whatever goes wrong is logged, and the watchdog's next look sends the steps.
    transaction.on_commit(dispatch, robust=True)


def dispatch() -> None:
    """Send the next steps of every queue, as many as there is room for."""
    for name in places.STEPS:
        if places.queued(name).filter(sent_at__isnull=True).exists():
            _send_next(name)


@transaction.atomic
def _send_next(name: str) -> None:
    # Held to the end of the transaction, so nobody else fills the same room. Nothing below waits for another lock.
    queue, _ = StepQueue.objects.select_for_update(no_key=True).get_or_create(pk=name)
    now = clock.now()
    places.take_turns(queue)
    room = _room(queue, now)
    if room <= 0:
        return
    waiting = places.waiting(name, now)
    if queue.paused_at is not None:
        # Runs that always fail, which are tried again before all that wait, must not be all that is ever tried.
        waiting = waiting.order_by("retry", *places.ORDER)
    waiting = waiting.select_related("run__submission__track")
    for evaluation in waiting.select_for_update(skip_locked=True, of=("self",))[:room]:
        if not _is_wanted(evaluation):
            move_evaluation(evaluation, EvaluationState.CANCELED, finished_at=now)
            continue
        queue.turn = max(queue.turn, evaluation.turn or 0)
        evaluation.sent_at = now
        evaluation.save(update_fields=["sent_at"])
        _send_on_commit(evaluation.pk, now)
    queue.save(update_fields=["turn"])


def _is_wanted(evaluation: Evaluation) -> bool:
    """Return whether the step has what it needs: a track may name no leakage set any more."""
    return evaluation.step != Step.LEAKAGE or bool(evaluation.run.submission.track.leakage_set)


def _send_on_commit(evaluation_id: UUID, sent_at: datetime) -> None:
    # Not a `partial`, whose name Django would look for in vain if this failed.
    transaction.on_commit(lambda: _send(evaluation_id, sent_at), robust=True)


def _room(queue: StepQueue, now: datetime) -> int:
    if queue.paused_at is None:
        most = max(settings.EVALUATION_SENT_STEPS, workers_alive(queue.pk, now) + 1)
        return most - places.sent(queue.pk).count()
    if queue.probe_at is not None and now < queue.probe_at:
        return 0
    probes = Evaluation.objects.filter(
        state__in=ACTIVE_STATES, step__in=places.STEPS[queue.pk], sent_at__gte=queue.paused_at
    )
    return 0 if probes.exists() else 1


def workers_alive(queue: str, now: datetime) -> int:
    return Worker.objects.filter(queue=queue, seen_at__gt=now - ALIVE).count()


def _send(evaluation_id: UUID, sent_at: datetime) -> None:
    evaluation = Evaluation.objects.select_related("run__submission__track").get(pk=evaluation_id)
    message = job(evaluation)
    try:
        app.send_task(
            STEP_TASK,
            # A worker of an earlier version can read what uses nothing that is new.
            [message.model_dump(mode="json", exclude_defaults=True)],
            queue=places.QUEUES[message.step],
            # A broker that lost its queues has them again.
            declare=_queues(),
            # The message itself has signed URLs, which no log needs.
            argsrepr="(job)",
        )
    except (OperationalError, OSError):
        logger.exception("The broker took no %s of %s; it is sent later.", message.step, evaluation)
        # If the broker has it all the same, the worker runs it and its report is taken.
        unsent = Evaluation.objects.filter(pk=evaluation_id, state=EvaluationState.QUEUED, sent_at=sent_at)
        unsent.update(sent_at=None)


def declare_queues() -> None:
    """Make the queues that don't exist yet: workers may make none, and wait for every one that they listen to."""
    try:
        with app.connection_for_write() as connection:
            for queue in _queues():
                queue(connection.default_channel).declare()
    except (OperationalError, OSError):
        logger.warning("The broker doesn't answer; the queues are made when a step is sent.")


def _queues() -> list[Any]:
    return [app.amqp.queues[name] for name in (*places.STEPS, INTAKE_QUEUE)]


def _rules(run: Run, step: Step) -> TrackRules:
    """Return the rules of the run's submission; leakage is measured as the track says now."""
    rules = TrackRules.model_validate(run.rules)
    if step is not Step.LEAKAGE:
        return rules
    return rules.model_copy(update={"leakage_set": run.submission.track.measured_leakage_set()})


def job(evaluation: Evaluation) -> EvaluationJob:
    """Return the message for the evaluation's current step, with URLs of the files that it needs, valid from now on."""
    run, step, store = evaluation.run, Step(evaluation.step), current_store()
    is_rehearsal = run.submission.track.is_draft
    return EvaluationJob(
        evaluation=evaluation.pk,
        attempt=evaluation.attempt,
        step=step,
        secret=step_secret(evaluation.pk, evaluation.attempt, step),
        rules=_rules(run, step),
        challenge=run.challenge or None,
        sample_key=sample_key(run.rules["reference"]) if step is Step.VALIDATE and not is_rehearsal else None,
        is_rehearsal=is_rehearsal,
        artifacts=[
            ArtifactRef(
                kind=ArtifactKind(artifact.kind),
                upload=artifact.upload_id,
                url=urljoin(
                    settings.SITE_URL,
                    store.download_url(
                        artifact.upload.store_key, artifact.upload.filename, settings.DOWNLOAD_URL_SECONDS
                    ),
                ),
                size_bytes=artifact.upload.size_bytes,
                sha256=artifact.upload.sha256,
            )
            for artifact in run.artifacts.filter(kind__in=STEP_ARTIFACTS[step]).select_related("upload")
        ],
    )
