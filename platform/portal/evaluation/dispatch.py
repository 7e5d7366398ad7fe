"""Sends evaluations to the workers, one step at a time.

A message carries URLs that expire, so it expires with them: half of their lifetime is for waiting in the queue,
the other half for the download. A message that still waits then is sent again by the watchdog, with new URLs.
"""

from collections.abc import Iterable
from datetime import timedelta
from urllib.parse import urljoin
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from evaluator.contracts import (
    EVALUATOR_QUEUE,
    INTAKE_QUEUE,
    SCORING_QUEUE,
    STEP_ARTIFACTS,
    STEP_TASK,
    ArtifactKind,
    ArtifactRef,
    EvaluationJob,
    Step,
    TrackRules,
)
from portal.celery import app
from portal.evaluation.models import Evaluation
from portal.evaluation.step_secrets import step_secret
from portal.submissions.models import Run
from portal.uploads.stores import current_store

QUEUES = {step: SCORING_QUEUE if step is Step.SCORING else EVALUATOR_QUEUE for step in Step}
MESSAGE_LIFETIME = timedelta(seconds=settings.DOWNLOAD_URL_SECONDS / 2)


def start(run: Run, *, retry: int = 0) -> Evaluation:
    """Begin the next attempt at a queued run. The caller holds the run's lock."""
    last = run.evaluations.aggregate(Max("attempt"))["attempt__max"] or 0
    steps = TrackRules.model_validate(run.rules).steps()
    evaluation = Evaluation.objects.create(run=run, attempt=last + 1, retry=retry, step=steps[0])
    send_on_commit(evaluation)
    return evaluation


def start_all(*, runs: Iterable[Run], **_: object) -> None:
    """Begin to evaluate runs that have just been queued; receives `submissions.signals.runs_queued`."""
    for run in runs:
        start(run)


def send_on_commit(evaluation: Evaluation) -> None:
    """Send the evaluation's current step to the workers when the transaction is committed."""
    # Robust: if the broker can't be reached, the failure is logged and the watchdog sends the step later.
    transaction.on_commit(lambda: _send(evaluation.pk), robust=True)


def _send(evaluation_id: UUID) -> None:
    evaluation = Evaluation.objects.select_related("run").get(pk=evaluation_id)
    message = job(evaluation)
    app.send_task(
        STEP_TASK,
        [message.model_dump(mode="json")],
        queue=QUEUES[message.step],
        # Workers may declare no queue, and answer to the intake's.
        declare=[app.amqp.queues[name] for name in (QUEUES[message.step], INTAKE_QUEUE)],
        expires=evaluation.sent_at + MESSAGE_LIFETIME,
        # The message itself has signed URLs, which no log needs.
        argsrepr="(job)",
    )


def job(evaluation: Evaluation) -> EvaluationJob:
    """Return the message for the evaluation's current step, with URLs of the files that it needs, valid from now on."""
    run, step, store = evaluation.run, Step(evaluation.step), current_store()
    return EvaluationJob(
        evaluation=evaluation.pk,
        attempt=evaluation.attempt,
        step=step,
        secret=step_secret(evaluation.pk, evaluation.attempt, step),
        rules=TrackRules.model_validate(run.rules),
        artifacts=[
            ArtifactRef(
                kind=ArtifactKind(artifact.kind),
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
