from datetime import datetime, timedelta

import pytest
from celery import Celery
from django.conf import settings

from evaluator.contracts import EVALUATOR_QUEUE, SCORING_QUEUE, STEP_ARTIFACTS, STEP_TASK, ArtifactKind, Step
from portal.challenge.models import Ranking
from portal.evaluation import dispatch
from portal.evaluation.models import Evaluation, EvaluationState
from portal.submissions.models import RunState, SubmissionState
from portal.submissions.services import submit
from tests.portal.factories import make_artifact, make_run, make_submission, make_track
from tests.services.ports import free_port

pytestmark = pytest.mark.django_db


def with_artifacts(run):
    make_artifact(run, ArtifactKind.CHECKPOINT, b"weights", "model.safetensors")
    make_artifact(run, ArtifactKind.COMMUNICATION_LOG, b"log", "log.csv")
    return run


def test_submitting_sends_the_first_step_of_every_run_to_the_workers(broker, committed):
    submission = make_submission(track=make_track(Ranking.ANLS))
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, b"# Proof", "proof.md")
    for budget in (1.0, 4.0):
        run = make_run(submission, budget=budget)
        make_artifact(run, ArtifactKind.CHECKPOINT, f"weights {budget}".encode(), "model.safetensors")
        make_artifact(run, ArtifactKind.COMMUNICATION_LOG, b"log", "log.csv")
        make_artifact(run, ArtifactKind.TRAINING_RECORD, b"record", "record.jsonl")
        make_artifact(run, ArtifactKind.TRAINING_ANNEX, b"annex", "annex.jsonl")
    committed(submit, submission, submission.created_by)

    jobs = broker.jobs()
    assert {job.rules.privacy.epsilon for job in jobs} == {1.0, 4.0}
    assert {(job.step, job.attempt) for job in jobs} == {(Step.VALIDATE, 1)}
    assert (
        submission.runs.filter(state=RunState.QUEUED, evaluations__state=EvaluationState.QUEUED).count() == 2
    )


@pytest.mark.parametrize("step", Step)
def test_a_worker_gets_the_addresses_of_the_files_of_its_step_and_no_others(step):
    run = with_artifacts(make_run(state=RunState.QUEUED))
    make_artifact(run, ArtifactKind.TRAINING_RECORD, b"record", "record.jsonl")
    make_artifact(run, ArtifactKind.TRAINING_ANNEX, b"annex", "annex.jsonl")
    message = dispatch.job(Evaluation.objects.create(run=run, attempt=1, step=step))
    assert {ref.kind for ref in message.artifacts} == set(STEP_ARTIFACTS[step])
    assert (ArtifactKind.TRAINING_ANNEX in STEP_ARTIFACTS[step]) == (step is Step.ACCOUNTING)


def test_the_message_is_a_step_with_the_files_of_the_run_and_no_proof(broker, committed):
    run = with_artifacts(make_run(state=RunState.QUEUED))
    make_artifact(run.submission, ArtifactKind.PRIVACY_PROOF, b"# Proof", "proof.md")
    evaluation = committed(dispatch.start, run)

    (message,) = broker.take(EVALUATOR_QUEUE)
    assert message.headers["task"] == STEP_TASK
    (job,) = message.payload[0]
    assert (job["evaluation"], job["attempt"], job["step"]) == (str(evaluation.pk), 1, "validate")
    assert [(ref["kind"], ref["size_bytes"]) for ref in job["artifacts"]] == [
        ("checkpoint", 7),
    ]


def test_the_url_of_an_artifact_is_absolute_and_gives_out_the_file(broker, committed, client):
    committed(dispatch.start, with_artifacts(make_run(state=RunState.QUEUED)))
    (job,) = broker.jobs()
    url = job.artifact(ArtifactKind.CHECKPOINT).url
    assert url.startswith(settings.SITE_URL + "/")
    response = client.get(url.removeprefix(settings.SITE_URL))
    assert b"".join(response.streaming_content) == b"weights"


def test_a_message_expires_before_the_urls_in_it(broker, committed):
    evaluation = committed(dispatch.start, with_artifacts(make_run(state=RunState.QUEUED)))
    (message,) = broker.take(EVALUATOR_QUEUE)
    lifetime = datetime.fromisoformat(message.headers["expires"]) - evaluation.sent_at
    assert timedelta(0) < lifetime < timedelta(seconds=settings.DOWNLOAD_URL_SECONDS)


def test_scoring_goes_to_the_workers_with_a_gpu(broker, committed):
    run = make_run(state=RunState.QUEUED)
    evaluation = dispatch.start(run)
    evaluation.step = Step.SCORING
    evaluation.save()
    committed(dispatch.send_on_commit, evaluation)
    assert broker.take(EVALUATOR_QUEUE) == []
    assert [job.step for job in broker.jobs(SCORING_QUEUE)] == [Step.SCORING]


def test_nothing_is_sent_before_the_commit(broker, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks() as callbacks:
        dispatch.start(make_run(state=RunState.QUEUED))
    assert len(callbacks) == 1
    assert broker.take(EVALUATOR_QUEUE) == []


def test_a_broker_that_is_down_fails_no_submission(committed, monkeypatch, caplog):
    monkeypatch.setattr(dispatch, "app", Celery(broker=f"redis://127.0.0.1:{free_port()}/0"))
    evaluation = committed(dispatch.start, make_run(state=RunState.QUEUED))
    assert evaluation.state == EvaluationState.QUEUED
    assert "Error calling" in caplog.text


def test_attempts_are_counted_on(broker):
    run = make_run(make_submission(state=SubmissionState.SUBMITTED), state=RunState.QUEUED)
    first = dispatch.start(run)
    first.state = EvaluationState.PASSED
    first.save()
    assert (first.attempt, dispatch.start(run).attempt) == (1, 2)
