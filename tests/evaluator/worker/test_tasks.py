"""The worker as it runs in production: a Celery process on a real broker, artifacts over HTTP."""

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.communication.log import LogEntry, write_log
from evaluator.docvqa.dataset import Dataset
from evaluator.errors import ErrorCode
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import (
    EVALUATOR_QUEUE,
    STEP_TASK,
    ArtifactKind,
    ArtifactRef,
    CommunicationResult,
    Outcome,
    ScoringResult,
    Step,
    ValidationResult,
)
from evaluator.pipeline import WEIGHTS
from tests.evaluator.worker import old_kernel
from tests.evaluator.worker.brokers import Brokers, kinds
from tests.evaluator.worker.office import RULES, Office


# What a step reports doesn't depend on the broker; `test_delivery` has each of them.
@pytest.fixture(
    scope="module",
    params=kinds("redis"),
)
def office(
    request: pytest.FixtureRequest, home: Path, brokers: Brokers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Office]:
    """A worker on each kind of broker."""
    office = Office(brokers.get(request.param).url, home, tmp_path_factory.mktemp(request.param))
    office.start_worker()
    yield office
    office.close()


@pytest.fixture
def unmanned(new_office: Callable[[str], Office], tmp_path: Path) -> Office:
    """An embedded broker that no worker listens to yet."""
    return new_office(f"sqlite:///{tmp_path}/broker.sqlite3")


@pytest.fixture
def checkpoint(office: Office) -> ArtifactRef:
    return office.serve_checkpoint()


def test_a_good_checkpoint_passes_validation(office: Office, checkpoint: ArtifactRef) -> None:
    report = office.report_on(Step.VALIDATE, [checkpoint])
    assert report.outcome is Outcome.PASSED, report
    assert report.result is not None
    assert report.result.kind == "validate"
    assert report.provenance.started_at <= report.provenance.finished_at


def test_an_idle_worker_reports_what_it_has(office: Office) -> None:
    office.receive(lambda: bool(office.inventories))
    inventory = office.inventories[0]
    assert (list(inventory.references), list(inventory.test_sets)) == (["tiny"], ["secret"])
    assert inventory.references["tiny"] == sha256_of(office.home / "references" / "tiny" / WEIGHTS)
    assert inventory.test_sets["secret"] == Dataset(office.home / "test_sets" / "secret", "test").sha256()


def test_a_worker_without_landlock_takes_no_job_where_the_sandbox_is_required_and_reports_it(
    unmanned: Office,
) -> None:
    unmanned.send(Step.VALIDATE, [])
    worker = unmanned.start_worker(program=old_kernel.main, PFL_SANDBOX="required")
    unmanned.receive(lambda: bool(unmanned.inventories))
    assert unmanned.inventories[0].unenforced == ["no files but its own"]
    # What it has taken, it would report first.
    worker.terminate()
    assert worker.wait(60) == 0, unmanned.log()
    with unmanned.app.connection_for_read() as connection:
        channel: Any = connection.default_channel
        assert channel.queue_declare(EVALUATOR_QUEUE, passive=True).message_count == 1
    assert "takes no job" in unmanned.log()


def test_a_rehearsal_takes_the_worker_s_own_base_weights_through_every_step(office: Office) -> None:
    jobs = [office.send(step, [], is_rehearsal=True) for step in RULES.steps()]
    office.receive(lambda: all(office.reports_on(job) for job in jobs))
    results = [office.reports_on(job)[0].result for job in jobs]
    assert all(results), office.log()
    sha256 = sha256_of(office.home / "references" / "tiny" / WEIGHTS)
    validated, counted, scored = results
    assert isinstance(validated, ValidationResult)
    assert isinstance(counted, CommunicationResult)
    assert isinstance(scored, ScoringResult)
    assert (validated.sha256, validated.changed, counted.bytes_total) == (sha256, [], 0)
    assert (scored.checkpoint_sha256, scored.questions) == (sha256, 3)


def test_a_worker_of_an_earlier_version_reports_a_job_that_it_can_t_read(office: Office) -> None:
    job = office.send(Step.VALIDATE, [], judged_by="a rule that this worker doesn't know")
    office.receive(lambda: bool(office.reports_on(job)))
    (report,) = office.reports_on(job)
    assert (report.outcome, [problem.code for problem in report.problems]) == (
        Outcome.FAILED,
        [ErrorCode.PLATFORM_FAULT],
    )
    assert "can't read these fields of the site's job: judged_by" in report.operator_trace
    assert "Start workers of the site's version" in report.operator_trace


def test_scoring_reports_means_and_where_they_come_from(office: Office, checkpoint: ArtifactRef) -> None:
    report = office.report_on(Step.SCORING, [checkpoint])
    assert report.outcome is Outcome.PASSED, report.operator_trace
    assert isinstance(report.result, ScoringResult)
    assert report.result.questions == 3
    assert report.result.checkpoint_sha256 == checkpoint.sha256
    assert set(report.provenance.libraries) == {"torch", "transformers", "tokenizers", "rapidfuzz"}


def test_the_site_hears_from_a_step_before_it_ends(office: Office, checkpoint: ArtifactRef) -> None:
    report = office.report_on(Step.SCORING, [checkpoint])
    beats = [beat for beat in office.progress if beat.evaluation == report.evaluation]
    assert beats
    assert {beat.step for beat in beats} == {Step.SCORING}


def test_single_answers_stay_with_the_worker(office: Office, checkpoint: ArtifactRef) -> None:
    report = office.report_on(Step.SCORING, [checkpoint])
    kept = office.home / "answers" / f"{report.evaluation}.jsonl"
    assert len(kept.read_text().splitlines()) == 3
    # The digits of a time may be those of an answer.
    assert "9.00" not in report.model_dump_json(exclude={"started_at", "finished_at"})


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
    result = report.result.model_dump()
    assert (result["bytes_sent"], result["first_download_bytes"], result["bytes_total"]) == (15, 10, 5)


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
    office.receive(lambda: bool(office.progress_of(job)))
    worker.send_signal(signal.SIGTERM)
    office.receive(lambda: bool(office.reports_on(job)))
    assert worker.wait(30) == 0
    office.start_worker()


def test_a_broken_test_set_is_our_fault_and_is_not_quoted(unmanned: Office, tmp_path: Path) -> None:
    shutil.copytree(unmanned.home, tmp_path / "broken")
    unmanned.home = tmp_path / "broken"
    questions = unmanned.home / "test_sets" / "secret" / "test" / "questions.jsonl"
    questions.write_text(
        questions.read_text().replace("9.00", "4711.0815.4711").replace('"page":', '"sheet":')
    )
    unmanned.start_worker()
    report = unmanned.report_on(Step.SCORING, [unmanned.serve_checkpoint()])
    assert report.outcome is Outcome.FAILED
    assert [problem.code for problem in report.problems] == [ErrorCode.PLATFORM_FAULT]
    assert "questions.jsonl, line 1" in report.operator_trace
    assert "4711.0815.4711" not in report.model_dump_json() + (tmp_path / "worker.log").read_text()


def test_neither_url_nor_argument_of_a_job_is_logged(office: Office, checkpoint: ArtifactRef) -> None:
    office.report_on(Step.VALIDATE, [checkpoint])
    assert "signature" not in office.log()
