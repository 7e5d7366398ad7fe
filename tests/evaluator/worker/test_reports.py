import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery

from evaluator.messages.jobs import INTAKE_QUEUE, REPORT_TASK, Outcome, Provenance, Step, WorkerReport
from evaluator.messages.signed import SignedMessage, is_signed_with
from evaluator.worker import reports
from evaluator.worker.broker import MessageFile, worker_settings

SECRET = "secret of the job"
PATIENCE_S = 30


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "PAUSE_S", 0.05)


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """The file of an embedded broker, which nobody has opened."""
    return tmp_path / "broker.sqlite3"


@pytest.fixture
def send(broker: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    app = Celery("worker", fixups=[], set_as_current=False)
    app.conf.update(worker_settings(f"sqlite:///{broker}"))

    def send(signed: dict[str, Any]) -> None:
        app.send_task(REPORT_TASK, [signed], queue=INTAKE_QUEUE, retry=False)

    yield send
    app.close()


@pytest.fixture
def report() -> WorkerReport:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return WorkerReport(
        evaluation=uuid4(),
        attempt=1,
        step=Step.SCORING,
        outcome=Outcome.FAILED,
        provenance=Provenance(worker="gpu-1", evaluator_version="1", started_at=moment, finished_at=moment),
    )


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "reports").glob("*.json"))


def wait_for(condition: Callable[[], object]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_a_report_waits_on_disk_for_a_broker_that_is_away(
    tmp_path: Path,
    broker: Path,
    send: Callable[[dict[str, Any]], None],
    report: WorkerReport,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # No file can be opened there.
    broker.mkdir()
    delivery = threading.Thread(
        target=reports.deliver, args=(tmp_path, report, SECRET, send), name="delivery", daemon=True
    )
    delivery.start()
    wait_for(lambda: "the broker is away; the report is kept" in caplog.text)
    (path,) = kept(tmp_path)
    assert path.stat().st_mode & 0o077 == 0
    signed = SignedMessage.model_validate_json(path.read_text())
    assert is_signed_with(SECRET, signed)
    assert WorkerReport.model_validate_json(signed.content) == report
    broker.rmdir()
    delivery.join(PATIENCE_S)
    assert not kept(tmp_path)
    assert MessageFile(broker).size(INTAKE_QUEUE) == 1


def test_a_worker_that_begins_sends_what_one_before_it_kept(
    tmp_path: Path, broker: Path, send: Callable[[dict[str, Any]], None], report: WorkerReport
) -> None:
    def stopped(_signed: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reports.deliver(tmp_path, report, SECRET, stopped)
    assert len(kept(tmp_path)) == 1
    reports.deliver_kept(tmp_path, send)
    assert not kept(tmp_path)
    assert MessageFile(broker).size(INTAKE_QUEUE) == 1


def test_a_report_that_no_disk_takes_is_sent_all_the_same(
    tmp_path: Path, broker: Path, send: Callable[[dict[str, Any]], None], report: WorkerReport
) -> None:
    (tmp_path / "reports").write_text("This isn't a folder.")
    reports.deliver(tmp_path, report, SECRET, send)
    assert MessageFile(broker).size(INTAKE_QUEUE) == 1
