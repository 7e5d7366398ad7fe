"""What every broker does with a job: none is lost, and none is run twice while its worker lives."""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.messages.jobs import INTAKE_QUEUE, ArtifactRef, EvaluationJob, Outcome, Step
from tests.evaluator.worker.brokers import BROKERS, Broker, Brokers, kinds
from tests.evaluator.worker.office import PATIENCE_S, Office

QUICK = "tests.evaluator.worker.quick_worker"
# Longer than the brokers' patience with a consumer: twice the heartbeat and the consumer timeout of RabbitMQ, four
# times the visibility timeout of Redis and the lease of the embedded broker.
LONG_S = 12


@pytest.fixture(params=BROKERS)
def broker(request: pytest.FixtureRequest, brokers: Brokers) -> Broker:
    return brokers.get(request.param)


@pytest.fixture
def office(broker: Broker, new_office: Callable[[str], Office]) -> Office:
    return new_office(broker.url)


@pytest.fixture
def slow(office: Office) -> Iterator[ArtifactRef]:
    """A checkpoint whose bytes are held back, so that a step takes as long as the test wants."""
    shutil.rmtree(office.home / "cache", ignore_errors=True)
    ref = office.serve_checkpoint()
    office.servers[-1].released.clear()
    yield ref
    office.servers[-1].released.set()


def begins(office: Office, job: EvaluationJob) -> None:
    office.receive(lambda: bool(office.progress_of(job)))


@pytest.mark.parametrize("broker", kinds("redis"), indirect=True)
def test_a_step_longer_than_any_timeout_is_run_once_by_one_of_two_workers(
    office: Office, slow: ArtifactRef
) -> None:
    office.start_worker(QUICK)
    office.start_worker(QUICK)
    job = office.send(Step.VALIDATE, [slow])
    begins(office, job)
    office.receive_for(LONG_S)
    office.servers[-1].released.set()
    office.receive(lambda: bool(office.reports_on(job)))
    (report,) = office.reports_on(job)
    assert report.outcome is Outcome.PASSED
    assert {progress.worker for progress in office.progress_of(job)} == {report.provenance.worker}
    assert office.log().count("validate begins") == 1
    assert "handed out again" not in office.log()


def test_a_busy_worker_holds_no_message_that_another_could_take(office: Office, slow: ArtifactRef) -> None:
    office.start_worker(QUICK)
    first = office.send(Step.VALIDATE, [slow])
    begins(office, first)
    # One for each queue that the busy worker listens to.
    waiting = [office.send(Step.VALIDATE, []), office.send(Step.SCORING, [])]
    office.receive_for(1)
    office.start_worker(QUICK)
    office.receive(lambda: all(office.reports_on(job) for job in waiting))
    assert not office.reports_on(first)
    office.servers[-1].released.set()
    office.receive(lambda: bool(office.reports_on(first)))
    # Not all reports: a worker also delivers what one of an earlier test has kept in their folder.
    assert [len(office.reports_on(job)) for job in (first, *waiting)] == [1, 1, 1]


def test_a_job_whose_worker_is_killed_before_it_begins_is_taken_by_another(
    office: Office, tmp_path: Path
) -> None:
    holds = tmp_path / "holds"
    worker = office.start_worker(QUICK, STOPS_BEFORE_BEGINNING=str(holds))
    job = office.send(Step.VALIDATE, [office.serve_checkpoint()])
    office.wait_until(holds.exists)
    worker.kill()
    worker.wait()
    office.start_worker(QUICK)
    office.receive(lambda: bool(office.reports_on(job)))
    assert [report.outcome for report in office.reports_on(job)] == [Outcome.PASSED]
    assert "handed out again (delivery 2)" in office.log()


@pytest.mark.parametrize("broker", kinds("rabbitmq"), indirect=True)
def test_a_job_whose_worker_is_killed_after_it_began_is_left_to_the_watchdog(
    office: Office, slow: ArtifactRef
) -> None:
    worker = office.start_worker(QUICK)
    job = office.send(Step.VALIDATE, [slow])
    begins(office, job)
    # The acknowledgement follows the first heartbeat; the second comes later.
    office.receive(lambda: len(office.progress_of(job)) > 1)
    worker.kill()
    worker.wait()
    office.start_worker(QUICK)
    office.receive_for(5)
    assert office.log().count("validate begins") == 1


def test_a_worker_that_must_stop_reports_its_step_and_takes_no_other(
    office: Office, slow: ArtifactRef
) -> None:
    worker = office.start_worker(QUICK)
    first = office.send(Step.VALIDATE, [slow])
    begins(office, first)
    worker.send_signal(signal.SIGTERM)
    second = office.send(Step.VALIDATE, [])
    office.servers[-1].released.set()
    assert worker.wait(PATIENCE_S) == 0
    office.receive(lambda: bool(office.reports_on(first)))
    assert not office.progress_of(second)
    # Though the environment of these tests names the site's settings.
    assert "the site is loaded: False" in office.log()
    office.start_worker(QUICK)
    office.receive(lambda: bool(office.reports_on(second)))


@pytest.mark.parametrize("broker", kinds("redis")[1:], indirect=True)
def test_a_broker_that_was_away_during_a_step_gets_the_report(
    broker: Broker, office: Office, slow: ArtifactRef
) -> None:
    office.start_worker(QUICK)
    job = office.send(Step.VALIDATE, [slow])
    office.receive(lambda: len(office.progress_of(job)) > 1)
    assert broker.server is not None
    broker.server.kill()
    office.servers[-1].released.set()
    time.sleep(3)
    broker.server.start()
    office.receive(lambda: bool(office.reports_on(job)))
    assert [report.outcome for report in office.reports_on(job)] == [Outcome.PASSED]
    # It listens again.
    assert office.report_on(Step.VALIDATE, []).outcome is Outcome.REJECTED


@pytest.mark.parametrize("broker", ["rabbitmq"], indirect=True)
def test_a_worker_that_starts_before_its_site_reports_what_it_has_when_the_site_is_there(
    office: Office,
) -> None:
    with office.app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        channel.exchange_delete(INTAKE_QUEUE)
    worker_log = office.folder / "worker.log"
    office.start_worker(QUICK)
    office.wait_until(lambda: worker_log.exists() and "could not be reported" in office.log())
    office.declare()
    office.receive(lambda: bool(office.inventories))
