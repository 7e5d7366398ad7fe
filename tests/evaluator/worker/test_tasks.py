"""The worker as it runs in production: a Celery process on a real broker, artifacts over HTTP."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery

from evaluator.checkpoints.contents import sha256_of
from evaluator.communication.log import LogEntry, write_log
from evaluator.contracts import (
    EVALUATOR_QUEUE,
    INTAKE_QUEUE,
    PROGRESS_TASK,
    REPORT_TASK,
    SCORING_QUEUE,
    STEP_TASK,
    ArtifactKind,
    ArtifactRef,
    EvaluationJob,
    Outcome,
    ScoringResult,
    Step,
    StepReport,
    TrackRules,
)
from evaluator.errors import ErrorCode
from evaluator.worker.broker import broker_settings
from evaluator.worker.tasks import MAX_DELIVERIES
from tests.evaluator.tiny_track import write_reference, write_test_set
from tests.evaluator.worker.artifact_server import ArtifactServer
from tests.services.redis import Redis

RULES = TrackRules(reference="tiny", test_set="secret", clients=2)
QUEUES = f"{EVALUATOR_QUEUE},{SCORING_QUEUE}"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("evaluator")
    write_reference(home / "references" / "tiny")
    write_test_set(home / "test_sets" / "secret")
    return home


@dataclass
class Office:
    """Takes the place of the site: sends jobs, receives reports and progress, over the broker at `url`."""

    url: str
    home: Path
    folder: Path
    servers: list[ArtifactServer] = field(default_factory=list)
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    progress: list[dict[str, Any]] = field(default_factory=list)
    reports: list[StepReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.app = Celery("office")
        self.app.conf.update(broker_settings(self.url))

    def start_worker(self) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "PFL_BROKER_URL": self.url, "PFL_EVALUATOR_HOME": str(self.home)}
        log = (self.folder / "worker.log").open("ab")
        command = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "evaluator.worker",
            "worker",
            "-P",
            "solo",
            "-Q",
            QUEUES,
        ]
        worker = subprocess.Popen(command, env=environment, cwd=self.folder, stdout=log, stderr=log)
        self.workers.append(worker)
        return worker

    def serve(self, kind: ArtifactKind, path: Path) -> ArtifactRef:
        server = ArtifactServer(path.read_bytes())
        self.servers.append(server)
        return ArtifactRef(kind=kind, url=server.url, size_bytes=path.stat().st_size, sha256=sha256_of(path))

    def send(self, step: Step, artifacts: list[ArtifactRef], rules: TrackRules = RULES) -> EvaluationJob:
        job = EvaluationJob(evaluation=uuid4(), attempt=1, step=step, rules=rules, artifacts=artifacts)
        queue = SCORING_QUEUE if step is Step.SCORING else EVALUATOR_QUEUE
        self.app.send_task(STEP_TASK, [job.model_dump(mode="json")], queue=queue)
        return job

    def receive(self, until: Callable[[], bool], timeout_s: float = 90) -> None:
        """Take messages of the intake queue until `until` is true."""
        deadline = time.monotonic() + timeout_s
        with self.app.connection_for_read() as connection, connection.SimpleQueue(INTAKE_QUEUE) as queue:
            while not until():
                assert time.monotonic() < deadline, (self.folder / "worker.log").read_text()
                try:
                    message = queue.get(timeout=0.5)
                except queue.Empty:
                    continue
                arguments = message.payload[0]
                if message.headers["task"] == REPORT_TASK:
                    self.reports.append(StepReport.model_validate(arguments[0]))
                else:
                    assert message.headers["task"] == PROGRESS_TASK
                    self.progress.append(arguments[0])
                message.ack()

    def report_on(self, step: Step, artifacts: list[ArtifactRef], rules: TrackRules = RULES) -> StepReport:
        job = self.send(step, artifacts, rules)
        self.receive(lambda: any(report.evaluation == job.evaluation for report in self.reports))
        return self.reports[-1]

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()
        for server in self.servers:
            server.stop()
        self.app.close()


@pytest.fixture(scope="module", params=["embedded", "redis"])
def office(
    request: pytest.FixtureRequest, home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Office]:
    """A worker on each kind of broker."""
    folder = tmp_path_factory.mktemp(request.param)
    redis = Redis() if request.param == "redis" else None
    office = Office(redis.url if redis else f"sqlite:///{folder}/broker.sqlite3", home, folder)
    office.start_worker()
    yield office
    office.close()
    if redis:
        redis.stop()


@pytest.fixture
def unmanned(home: Path, tmp_path: Path) -> Iterator[Office]:
    """An embedded broker that no worker listens to yet."""
    office = Office(f"sqlite:///{tmp_path}/broker.sqlite3", home, tmp_path)
    yield office
    office.close()


@pytest.fixture
def checkpoint(office: Office) -> ArtifactRef:
    return serve_checkpoint(office)


def serve_checkpoint(office: Office) -> ArtifactRef:
    return office.serve(ArtifactKind.CHECKPOINT, office.home / "references" / "tiny" / "model.safetensors")


def test_a_good_checkpoint_passes_validation(office: Office, checkpoint: ArtifactRef) -> None:
    report = office.report_on(Step.VALIDATE, [checkpoint])
    assert report.outcome is Outcome.PASSED, report
    assert report.result is not None
    assert report.result.kind == "validate"
    assert report.provenance.started_at <= report.provenance.finished_at


def test_scoring_reports_means_and_where_they_come_from(office: Office, checkpoint: ArtifactRef) -> None:
    report = office.report_on(Step.SCORING, [checkpoint])
    assert report.outcome is Outcome.PASSED, report.operator_trace
    assert isinstance(report.result, ScoringResult)
    assert report.result.questions == 3
    assert report.result.checkpoint_sha256 == checkpoint.sha256
    assert set(report.provenance.libraries) == {"torch", "transformers", "tokenizers", "rapidfuzz"}


def test_the_site_hears_from_a_step_before_it_ends(office: Office, checkpoint: ArtifactRef) -> None:
    report = office.report_on(Step.SCORING, [checkpoint])
    beats = [beat for beat in office.progress if beat["evaluation"] == str(report.evaluation)]
    assert beats
    assert {beat["step"] for beat in beats} == {"scoring"}


def test_single_answers_stay_with_the_worker(office: Office, checkpoint: ArtifactRef) -> None:
    report = office.report_on(Step.SCORING, [checkpoint])
    kept = office.home / "answers" / f"{report.evaluation}.jsonl"
    assert len(kept.read_text().splitlines()) == 3
    assert "9.00" not in report.model_dump_json()


def test_a_bad_log_is_rejected_with_its_code(office: Office, tmp_path: Path, checkpoint: ArtifactRef) -> None:
    path = tmp_path / "log.csv"
    path.write_text("federated_round,sender,receiver,amount_of_bytes\n1,-1,7,10\n")
    log = office.serve(ArtifactKind.COMMUNICATION_LOG, path)
    report = office.report_on(Step.COMMUNICATION, [log, checkpoint])
    assert report.outcome is Outcome.REJECTED
    assert [problem.code for problem in report.problems] == [ErrorCode.LOG_PARTY]


def test_a_good_log_is_totalled(office: Office, tmp_path: Path, checkpoint: ArtifactRef) -> None:
    path = tmp_path / "log.csv"
    write_log(path, [LogEntry(1, -1, 0, 10), LogEntry(1, 0, -1, 5)])
    log = office.serve(ArtifactKind.COMMUNICATION_LOG, path)
    report = office.report_on(Step.COMMUNICATION, [log, checkpoint])
    assert report.result is not None
    assert report.result.model_dump()["bytes_total"] == 15


def test_what_the_worker_lacks_is_reported_to_the_operators_only(
    office: Office, checkpoint: ArtifactRef
) -> None:
    rules = RULES.model_copy(update={"test_set": "not-here"})
    report = office.report_on(Step.SCORING, [checkpoint], rules)
    assert report.outcome is Outcome.FAILED
    assert [problem.code for problem in report.problems] == [ErrorCode.PLATFORM_FAULT]
    assert "not-here" in report.operator_trace
    assert "not-here" not in report.problems[0].model_dump_json()


def test_an_address_that_has_expired_is_our_fault_and_is_not_written_down(
    office: Office, checkpoint: ArtifactRef
) -> None:
    office.servers[-1].status = 403
    fresh = checkpoint.model_copy(update={"sha256": "0" * 64})
    report = office.report_on(Step.VALIDATE, [fresh])
    assert report.outcome is Outcome.FAILED
    assert "signature=secret" not in report.operator_trace
    assert "403" in report.operator_trace


def test_a_malformed_job_is_dropped_and_the_next_one_runs(office: Office, checkpoint: ArtifactRef) -> None:
    office.app.send_task(STEP_TASK, [{"evaluation": "nonsense"}], queue=EVALUATOR_QUEUE)
    assert office.report_on(Step.VALIDATE, [checkpoint]).outcome is Outcome.PASSED


def test_a_worker_that_must_stop_finishes_its_step_first(office: Office, checkpoint: ArtifactRef) -> None:
    worker = office.workers[-1]
    job = office.send(Step.SCORING, [checkpoint])
    office.receive(lambda: any(beat["evaluation"] == str(job.evaluation) for beat in office.progress))
    worker.send_signal(signal.SIGTERM)
    office.receive(lambda: any(report.evaluation == job.evaluation for report in office.reports))
    assert worker.wait(30) == 0
    office.start_worker()


def test_a_step_whose_worker_was_killed_is_run_again_by_another(unmanned: Office) -> None:
    worker = unmanned.start_worker()
    job = unmanned.send(Step.SCORING, [serve_checkpoint(unmanned)])
    unmanned.receive(lambda: bool(unmanned.progress))
    worker.kill()
    worker.wait()
    assert not unmanned.reports
    unmanned.start_worker()
    unmanned.receive(lambda: bool(unmanned.reports))
    (report,) = unmanned.reports
    assert (report.evaluation, report.outcome) == (job.evaluation, Outcome.PASSED)


def test_a_job_that_keeps_killing_its_worker_is_reported_and_not_run_again(unmanned: Office) -> None:
    job = unmanned.send(Step.VALIDATE, [serve_checkpoint(unmanned)])
    with closing(sqlite3.connect(unmanned.folder / "broker.sqlite3")) as database, database:
        database.execute("UPDATE messages SET deliveries = ?", [MAX_DELIVERIES])
    unmanned.start_worker()
    unmanned.receive(lambda: bool(unmanned.reports))
    (report,) = unmanned.reports
    assert (report.evaluation, report.outcome) == (job.evaluation, Outcome.FAILED)
    assert not unmanned.servers[0].ranges  # nothing was even fetched


def test_a_broken_test_set_is_our_fault_and_is_not_quoted(unmanned: Office, tmp_path: Path) -> None:
    shutil.copytree(unmanned.home, tmp_path / "broken")
    unmanned.home = tmp_path / "broken"
    questions = unmanned.home / "test_sets" / "secret" / "test" / "questions.jsonl"
    questions.write_text(questions.read_text().replace("9.00", "4711").replace('"page":', '"sheet":'))
    unmanned.start_worker()
    report = unmanned.report_on(Step.SCORING, [serve_checkpoint(unmanned)])
    assert report.outcome is Outcome.FAILED
    assert [problem.code for problem in report.problems] == [ErrorCode.PLATFORM_FAULT]
    assert "questions.jsonl, line 1" in report.operator_trace
    assert "4711" not in report.model_dump_json() + (tmp_path / "worker.log").read_text()


def test_neither_url_nor_argument_of_a_job_is_logged(office: Office, checkpoint: ArtifactRef) -> None:
    office.report_on(Step.VALIDATE, [checkpoint])
    assert "signature" not in (office.folder / "worker.log").read_text()
