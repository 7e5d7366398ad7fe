from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries, Settings

from docvqa_site.evaluation.inventories import receive
from docvqa_site.evaluation.models import Evaluation, EvaluationState, StepQueue, StepReport, Worker
from docvqa_site.liveness.models import Process, note_backup, show_life
from docvqa_site.mail.models import OutgoingMail
from docvqa_site.submissions.models import RunState
from docvqa_site.uploads.models import UploadState
from evaluator.messages.inventories import Inventory
from evaluator.messages.jobs import Outcome, Step
from tests.docvqa_site.factories import make_run, make_team, make_upload

pytestmark = pytest.mark.django_db


def metrics(client: Client, **headers: str) -> dict[tuple[str, ...], float]:
    """The samples by name and the values of their labels, which come in alphabetical order."""
    text = client.get("/metrics", headers=headers).content.decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def make_evaluation(state: EvaluationState, step: Step = Step.VALIDATE, **fields) -> Evaluation:
    run = make_run(state=RunState.QUEUED)
    return Evaluation.objects.create(run=run, attempt=1, state=state, step=step, **fields)


def test_runs_and_attempts_are_counted_by_state(client: Client) -> None:
    make_run(state=RunState.SCORED)
    make_evaluation(EvaluationState.LOST, Step.SCORING)
    found = metrics(client)
    assert found["pfl_runs", "scored"] == 1
    assert found["pfl_runs", "queued"] == 1
    assert found["pfl_attempts", "lost", "scoring"] == 1


def test_a_queue_shows_its_length_and_how_long_the_oldest_step_waits(client: Client) -> None:
    make_evaluation(EvaluationState.QUEUED, Step.SCORING)
    waiting_since = timezone.now() - timedelta(hours=2)
    make_evaluation(EvaluationState.QUEUED, Step.SCORING, step_queued_at=waiting_since)
    found = metrics(client)
    assert found["pfl_queue_steps", "evaluator.scoring"] == 2
    assert found["pfl_queue_steps", "evaluator"] == 0
    assert found["pfl_queue_oldest_seconds", "evaluator.scoring"] == pytest.approx(7200, abs=60)


def test_failed_steps_and_refunds_are_counted(client: Client) -> None:
    evaluation = make_evaluation(EvaluationState.FAILED)
    StepReport.objects.create(evaluation=evaluation, step=Step.VALIDATE, outcome=Outcome.FAILED)
    submission = evaluation.run.submission
    submission.refunded_at = timezone.now()
    submission.save()
    found = metrics(client)
    assert found["pfl_step_reports", "failed", "validate"] == 1
    assert found["pfl_submissions_refunded",] == 1


def test_workers_are_counted_by_their_heartbeats_and_paused_queues_shown(client: Client) -> None:
    now = timezone.now()
    queue = StepQueue.objects.create(name="evaluator.scoring", paused_at=now)
    for name, seen_at, sick_at in [
        ("gpu-1", now, None),
        ("gpu-2", now, now),
        ("old", now - timedelta(hours=1), None),
    ]:
        Worker.objects.create(queue=queue, name=name, seen_at=seen_at, sick_at=sick_at)
    found = metrics(client)
    assert found["pfl_workers_alive", "evaluator.scoring"] == 2
    assert found["pfl_workers_sick", "evaluator.scoring"] == 1
    assert found["pfl_queue_paused", "evaluator.scoring"] == 1
    assert found["pfl_queue_paused", "evaluator"] == 0


def test_a_worker_that_reports_an_incomplete_sandbox_is_counted(client: Client) -> None:
    receive(Inventory(worker="gpu-1"))
    receive(Inventory(worker="old", unenforced=["no new processes"]), timezone.now() - timedelta(hours=1))
    assert metrics(client)["pfl_workers_unconfined",] == 0
    receive(Inventory(worker="gpu-2", unenforced=["no new processes"]))
    assert metrics(client)["pfl_workers_unconfined",] == 1


def test_uploads_mails_disk_and_processes_are_shown(client: Client) -> None:
    team = make_team()
    make_upload(team, b"1234")
    make_upload(team, b"12345678", state=UploadState.OPEN)
    make_upload(team, b"123", state=UploadState.ABORTED)
    OutgoingMail.objects.create(subject="a", body="b", sender="c", recipients=["d"])
    OutgoingMail.objects.create(subject="a", body="b", sender="c", recipients=["d"], failed_at=timezone.now())
    for _ in range(2):
        OutgoingMail.objects.create(recipients=["d"], delivered_at=timezone.now())
    show_life(Process.CLOCK)
    found = metrics(client)
    assert (found["pfl_store_files",], found["pfl_store_bytes",]) == (1, 4)
    assert (found["pfl_uploads_open",], found["pfl_uploads_open_bytes",]) == (1, 8)
    assert (found["pfl_mails_waiting",], found["pfl_mails_failed",]) == (1, 1)
    assert 0 < found["pfl_disk_free_bytes",] <= found["pfl_disk_bytes",]
    assert 0 <= found["pfl_process_silence_seconds", "clock"] < 60


def test_the_newest_backup_has_an_age_and_is_no_process(client: Client) -> None:
    assert ("pfl_backup_age_seconds",) not in metrics(client)
    note_backup()
    found = metrics(client)
    assert 0 <= found["pfl_backup_age_seconds",] < 60
    assert ("pfl_process_silence_seconds", "backup") not in found


def test_the_number_of_queries_is_constant(
    client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for step in Step:
        make_evaluation(EvaluationState.QUEUED, step)
    with django_assert_max_num_queries(12):
        assert client.get("/metrics").status_code == 200


class TestAccess:
    def test_an_address_outside_reads_nothing(self, client: Client) -> None:
        assert client.get("/metrics", REMOTE_ADDR="8.8.8.8").status_code == 404

    def test_what_a_proxy_passes_on_reads_nothing(self, client: Client) -> None:
        assert client.get("/metrics", headers={"X-Forwarded-For": "10.0.0.1"}).status_code == 404

    def test_with_a_token_set_only_the_token_opens_it(self, client: Client, settings: Settings) -> None:
        settings.METRICS_TOKEN = "correct-horse"
        assert client.get("/metrics").status_code == 404
        assert client.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 404
        allowed = {"Authorization": "Bearer correct-horse", "X-Forwarded-For": "8.8.8.8"}
        assert client.get("/metrics", headers=allowed).status_code == 200
