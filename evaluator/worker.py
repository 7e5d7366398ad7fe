"""The workers: they take jobs from the broker, run one step each and send one report.

Start one with ``celery -A evaluator.worker worker -P solo -Q evaluator,evaluator.scoring``; a GPU machine may
listen on `evaluator.scoring` alone. A worker has a broker and a folder of its own, `PFL_EVALUATOR_HOME`, with the base
weights and the secret test sets. It has no database and no secret of the site.

What leaves a worker is a report: means over the test set, coded problems, and for the operators where an error
arose. Nothing that could quote the test set or open an artifact is sent or logged.
"""

import contextlib
import logging
import os
import platform
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from celery import Celery, Task
from celery.exceptions import Reject
from kombu.exceptions import OperationalError
from pydantic import ValidationError

from evaluator import evaluator_version
from evaluator.artifacts import fetch
from evaluator.broker import broker_settings, delivery_number
from evaluator.contracts import (
    EVALUATOR_QUEUE,
    INTAKE_QUEUE,
    NEEDS,
    PROGRESS_TASK,
    REPORT_TASK,
    STEP_TASK,
    EvaluationJob,
    Outcome,
    Progress,
    Provenance,
    Step,
    StepReport,
    StepResult,
)
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.pipeline import Bench, Findings, run_step
from evaluator.time_left import Pace
from evaluator.traces import trace_of

logger = logging.getLogger(__name__)

HEARTBEAT_S = 2.0
MAX_DELIVERIES = 5  # a job that killed its worker so often is reported, not tried again
# What is wrong with the worker's own folders says something of the test set, and is not for participants.
OURS = {ErrorCode.DATASET_FORMAT, ErrorCode.DATASET_FOLDER, ErrorCode.REFERENCE_FORMAT}
LIBRARIES = {
    Step.VALIDATE: ["numpy"],
    Step.COMMUNICATION: [],
    Step.ACCOUNTING: ["dp-accounting", "numpy", "scipy"],
    Step.SCORING: ["torch", "transformers", "tokenizers", "rapidfuzz"],
}
# A report is worth ten minutes of a broker's absence; a heartbeat is not, the next one follows.
REPORT_RETRIES = {"max_retries": 60, "interval_start": 1, "interval_step": 1, "interval_max": 10}

app = Celery("evaluator")
app.conf.update(
    broker_settings(os.environ.get("PFL_BROKER_URL") or f"sqlite:///{Path.cwd()}/var/broker.sqlite3")
)
app.conf.update(task_default_queue=EVALUATOR_QUEUE, worker_send_task_events=False)


class Home:
    """The worker's folder: `references/`, `test_sets/`, `cache/`, `scoring/` and `answers/`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def bench(self, job: EvaluationJob, progress: "Heartbeat") -> Bench:
        """Fetch what the job's step needs and lay it out."""
        files = {}
        for kind in NEEDS[job.step]:
            ref = job.artifact(kind)
            if ref is None:
                raise ProblemError.of(ErrorCode.ARTIFACT_MISSING, where=kind)
            files[kind] = fetch(ref, self.folder / "cache", on_progress=progress.set)
        bench = Bench(files, job.rules, self._existing("references", job.rules.reference))
        if job.step is not Step.SCORING:
            return bench
        return replace(
            bench,
            test_set=self._existing("test_sets", job.rules.test_set),
            kept=self.folder / "scoring",
            answers=self.folder / "answers" / f"{job.evaluation}.jsonl",
        )

    def _existing(self, kind: str, name: str) -> Path:
        folder = self.folder / kind / name
        if not folder.is_dir():
            raise FileNotFoundError(f"this worker has no {kind}/{name} under PFL_EVALUATOR_HOME")
        return folder


class Heartbeat:
    """Tells the site, every few seconds, that the worker lives and how far it is, whatever the step is doing."""

    def __init__(self, job: EvaluationJob) -> None:
        self.job = job
        self.pace = Pace()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def set(self, done: int, total: int) -> None:
        self.pace = self.pace.at(done, total, time.monotonic())

    @contextlib.contextmanager
    def beating(self) -> Iterator["Heartbeat"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()

    def _beat(self) -> None:
        while True:
            pace, job = self.pace, self.job
            message = Progress(
                evaluation=job.evaluation,
                attempt=job.attempt,
                step=job.step,
                done=pace.done,
                total=pace.total,
                remaining_s=pace.remaining_s(time.monotonic()),
                worker=_name(),
            )
            try:
                _send(PROGRESS_TASK, message, retry=False)
            except OperationalError:
                logger.warning("a heartbeat could not be sent; the next one follows")
            if self._stop.wait(HEARTBEAT_S):
                return


@app.task(name=STEP_TASK, bind=True)
def take_job(self: "Task[Any, None]", message: dict[str, Any]) -> None:
    """Run one step of an evaluation and report how it ended."""
    try:
        job = EvaluationJob.model_validate(message)
    except ValidationError as error:
        # Nobody to report to: the message names no evaluation that could be trusted.
        logger.error("dropped a malformed job: %s", [detail["loc"] for detail in error.errors()])
        return
    started_at = datetime.now(UTC)
    logger.info("evaluation %s, attempt %d: %s begins", job.evaluation, job.attempt, job.step)
    report = _report(job, started_at, delivery_number(self.request.headers or {}))
    try:
        _send(REPORT_TASK, report, retry=True, retry_policy=REPORT_RETRIES)
    except OperationalError as error:
        raise Reject("the report could not be sent", requeue=True) from error
    logger.info("evaluation %s, attempt %d: %s %s", job.evaluation, job.attempt, job.step, report.outcome)


def _report(job: EvaluationJob, started_at: datetime, deliveries: int) -> StepReport:
    outcome, findings, problems, trace = Outcome.PASSED, None, [], ""
    try:
        if deliveries > MAX_DELIVERIES:
            raise RuntimeError(f"this job has ended {deliveries - 1} workers before it could be reported")
        findings = _run(job)
    except Exception as error:  # noqa: BLE001 - the boundary: whatever went wrong is reported, never lost
        if isinstance(error, ProblemError) and not OURS & {problem.code for problem in error.problems}:
            outcome, problems = Outcome.REJECTED, error.problems
        else:
            outcome, problems = Outcome.FAILED, [Problem.of(ErrorCode.PLATFORM_FAULT)]
            trace = trace_of(error, quoted=job.step is not Step.SCORING)
            logger.error("evaluation %s, attempt %d: %s\n%s", job.evaluation, job.attempt, job.step, trace)
    return StepReport(
        evaluation=job.evaluation,
        attempt=job.attempt,
        step=job.step,
        outcome=outcome,
        problems=problems,
        result=findings and findings.result,
        detail=findings and findings.detail,
        provenance=_provenance(job.step, started_at),
        operator_trace=trace,
    )


def _run(job: EvaluationJob) -> Findings[StepResult]:
    home = Home(Path(os.environ.get("PFL_EVALUATOR_HOME") or Path.cwd() / "var" / "evaluator"))
    with Heartbeat(job).beating() as heartbeat:
        return run_step(job.step, home.bench(job, heartbeat), heartbeat.set)


def _provenance(step: Step, started_at: datetime) -> Provenance:
    libraries = {}
    for name in LIBRARIES[step]:
        with contextlib.suppress(PackageNotFoundError):  # which may be why the step failed
            libraries[name] = version(name)
    return Provenance(
        worker=_name(),
        evaluator_version=evaluator_version(),
        libraries=libraries,
        hardware=_hardware(step),
        started_at=started_at,
        finished_at=datetime.now(UTC),
    )


def _hardware(step: Step) -> str:
    torch = sys.modules.get("torch")  # absent where scoring failed because it can't be imported
    if step is Step.SCORING and torch is not None and torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return f"{platform.machine()}, {os.cpu_count()} cores"


def _name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _send(task: str, message: Progress | StepReport, **options: Any) -> None:
    app.send_task(task, [message.model_dump(mode="json")], queue=INTAKE_QUEUE, **options)
