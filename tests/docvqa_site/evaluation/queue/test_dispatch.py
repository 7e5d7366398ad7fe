import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.evaluation import tasks
from docvqa_site.evaluation.intake.receiving import receive_progress
from docvqa_site.evaluation.models import Evaluation, EvaluationState, StepQueue, Worker
from docvqa_site.evaluation.queue import dispatch, places
from docvqa_site.submissions.models import RunState, SubmissionState
from docvqa_site.submissions.services import submit
from evaluator.messages.jobs import (
    EVALUATOR_QUEUE,
    INTAKE_QUEUE,
    OPTIONAL_ARTIFACTS,
    SCORING_QUEUE,
    STEP_ARTIFACTS,
    STEP_TASK,
    ArtifactKind,
    Step,
)
from evaluator.worker.broker import broker_settings
from tests.docvqa_site.evaluation.messages import make_progress
from tests.docvqa_site.factories import make_artifact, make_run, make_submission, make_track
from tests.services.ports import free_port

pytestmark = pytest.mark.django_db


def fresh(row):
    return type(row).objects.get(pk=row.pk)


def with_artifacts(run):
    make_artifact(run, ArtifactKind.CHECKPOINT, b"weights", "model.safetensors")
    make_artifact(run, ArtifactKind.COMMUNICATION_LOG, b"log", "log.csv")
    return run


def test_submitting_sends_the_first_step_of_every_run_to_the_workers(broker, committed):
    submission = make_submission(track=make_track(BEST_ANLS_AT_BUDGET))
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
    submission = make_submission(track=make_track(leakage_set="red-team"))
    run = with_artifacts(make_run(submission, state=RunState.QUEUED))
    make_artifact(run, ArtifactKind.TRAINING_RECORD, b"record", "record.jsonl")
    make_artifact(run, ArtifactKind.TRAINING_ANNEX, b"annex", "annex.jsonl")
    message = dispatch.job(Evaluation.objects.create(run=run, attempt=1, step=step))
    assert {ref.kind for ref in message.artifacts} == set(STEP_ARTIFACTS[step]) - OPTIONAL_ARTIFACTS
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


def test_a_message_never_expires_by_the_clock_of_a_worker(broker, committed):
    committed(dispatch.start, with_artifacts(make_run(state=RunState.QUEUED)))
    (message,) = broker.take(EVALUATOR_QUEUE)
    assert message.headers["expires"] is None
    assert message.headers["eta"] is None


def test_scoring_goes_to_the_workers_with_a_gpu(broker, committed):
    evaluation = dispatch.start(make_run(state=RunState.QUEUED))
    evaluation.step = Step.SCORING
    evaluation.save()
    committed(dispatch.dispatch_on_commit)
    assert broker.take(EVALUATOR_QUEUE) == []
    assert [job.step for job in broker.jobs(SCORING_QUEUE)] == [Step.SCORING]


def test_nothing_is_sent_before_the_commit(broker, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks() as callbacks:
        dispatch.start(make_run(state=RunState.QUEUED))
    assert len(callbacks) == 1
    assert broker.take(EVALUATOR_QUEUE) == []


def test_a_broker_that_is_down_fails_no_submission_and_gets_the_step_later(
    broker, committed, monkeypatch, caplog
):
    with monkeypatch.context() as away:
        away.setattr(dispatch, "app", Celery(broker=f"redis://127.0.0.1:{free_port()}/0"))
        evaluation = committed(dispatch.start, make_run(state=RunState.QUEUED))
    assert "The broker took no validate" in caplog.text
    assert fresh(evaluation).state == EvaluationState.QUEUED
    assert fresh(evaluation).sent_at is None
    committed(dispatch.dispatch)
    assert [job.evaluation for job in broker.jobs()] == [evaluation.pk]


@pytest.mark.xdist_group("brokers of the site")
def test_the_intake_makes_the_queues_that_workers_wait_for(rabbitmq_server, monkeypatch):
    site = Celery()
    site.conf.update(broker_settings(rabbitmq_server.url))
    monkeypatch.setattr(dispatch, "app", site)
    names = (EVALUATOR_QUEUE, SCORING_QUEUE, INTAKE_QUEUE)
    with site.connection_for_read() as connection:
        channel: Any = connection.default_channel
        for name in names:
            channel.queue_delete(name)
        tasks.make_queues()
        for name in names:
            # Fails where there is none.
            channel.queue_declare(name, passive=True)


def test_attempts_are_counted_on(broker):
    run = make_run(make_submission(state=SubmissionState.SUBMITTED), state=RunState.QUEUED)
    first = dispatch.start(run)
    first.state = EvaluationState.PASSED
    first.save()
    assert (first.attempt, dispatch.start(run).attempt) == (1, 2)


class TestRoom:
    def queued(self, count):
        return [dispatch.start(make_run(state=RunState.QUEUED)) for _ in range(count)]

    def begin(self, job, worker="w1"):
        evaluation = Evaluation.objects.get(pk=job.evaluation)
        receive_progress(make_progress(evaluation, worker=worker))

    def test_the_broker_holds_only_what_is_about_to_be_taken(self, broker, committed):
        evaluations = committed(self.queued, 5)
        assert [job.evaluation for job in broker.jobs()] == [evaluation.pk for evaluation in evaluations[:2]]
        committed(dispatch.dispatch)
        assert broker.jobs() == []

    def test_a_step_that_begins_makes_room_for_the_next(self, broker, committed):
        evaluations = committed(self.queued, 5)
        first, _ = broker.jobs()
        committed(self.begin, first)
        assert [job.evaluation for job in broker.jobs()] == [evaluations[2].pk]

    def test_there_is_room_for_every_worker_and_one_more(self, broker, committed):
        committed(self.queued, 20)
        for number, job in enumerate(broker.jobs() + broker.jobs()):
            committed(self.begin, job, f"w{number}")
        for number, job in enumerate(broker.jobs(), start=2):
            committed(self.begin, job, f"w{number}")
        seen = Worker.objects.count()
        assert seen >= 4
        assert places.sent(EVALUATOR_QUEUE).count() == seen + 1

    def test_workers_that_were_not_seen_lately_take_no_room(self, broker, committed):
        queue = StepQueue.objects.create(name=EVALUATOR_QUEUE)
        long_ago = timezone.now() - timedelta(hours=1)
        Worker.objects.bulk_create(Worker(queue=queue, name=f"w{n}", seen_at=long_ago) for n in range(9))
        committed(self.queued, 5)
        assert len(broker.jobs()) == settings.EVALUATION_SENT_STEPS

    def test_what_may_not_begin_yet_is_left_out(self, broker, committed):
        later = timezone.now() + timedelta(minutes=10)
        committed(dispatch.start, make_run(state=RunState.QUEUED), not_before=later)
        ready = committed(dispatch.start, make_run(state=RunState.QUEUED))
        assert [job.evaluation for job in broker.jobs()] == [ready.pk]


@pytest.mark.django_db(transaction=True)
def test_of_many_who_dispatch_at_once_none_sends_more_than_there_is_room_for(broker):
    with transaction.atomic():
        for _ in range(6):
            dispatch.start(make_run(state=RunState.QUEUED))
    broker.take(EVALUATOR_QUEUE)
    Evaluation.objects.update(sent_at=None)
    together = threading.Barrier(6)

    def send(_):
        together.wait()
        try:
            dispatch.dispatch()
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(send, range(6)))
    sent = [job.evaluation for job in broker.jobs()]
    assert len(sent) == len(set(sent)) == settings.EVALUATION_SENT_STEPS
    tickets = Evaluation.objects.values_list("ticket", flat=True)
    assert set(tickets) == {1, 2, 3, 4, 5, 6}
