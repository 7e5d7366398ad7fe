"""The one task of a worker: run a step of an evaluation and report how it ended."""

import contextlib
import logging
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from celery import Task
from celery.exceptions import Reject
from kombu.exceptions import OperationalError
from pydantic import ValidationError

from evaluator.contracts import (
    REPORT_TASK,
    STEP_TASK,
    EvaluationJob,
    Outcome,
    Provenance,
    Step,
    StepReport,
    StepResult,
    evaluator_version,
)
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.pipeline import StepOutput, run_step
from evaluator.traces import trace_of
from evaluator.worker.artifacts import FetchError
from evaluator.worker.broker import delivery_number
from evaluator.worker.celery import app, send_to_site, worker_name
from evaluator.worker.folder import WorkerFolder
from evaluator.worker.heartbeat import Heartbeat

logger = logging.getLogger(__name__)

# A job that has killed so many workers is reported as failed, not tried again.
MAX_DELIVERIES = 5
# A problem with the worker's own folders is the organizers' to fix, and would reveal something of the test set.
OPERATOR_ERRORS = {ErrorCode.DATASET_FORMAT, ErrorCode.DATASET_FOLDER, ErrorCode.REFERENCE_FORMAT}
LIBRARIES = {
    Step.VALIDATE: ["numpy"],
    Step.COMMUNICATION: [],
    Step.ACCOUNTING: ["dp-accounting", "numpy", "scipy"],
    Step.SCORING: ["torch", "transformers", "tokenizers", "rapidfuzz"],
}
# A report is worth ten minutes of a broker's absence; a heartbeat is not, the next one follows.
REPORT_RETRIES = {"max_retries": 60, "interval_start": 1, "interval_step": 1, "interval_max": 10}


@app.task(name=STEP_TASK, bind=True)
def take_job(self: "Task[Any, None]", message: dict[str, Any]) -> None:
    """Run one step of an evaluation and report how it ended."""
    try:
        job = EvaluationJob.model_validate(message)
    except ValidationError as error:
        # There is nobody to report to: the message names no evaluation that could be trusted.
        logger.error("dropped a malformed job: %s", [detail["loc"] for detail in error.errors()])
        return
    started_at = datetime.now(UTC)
    logger.info("evaluation %s, attempt %d: %s begins", job.evaluation, job.attempt, job.step)
    report = _report(job, started_at, delivery_number(self.request.headers or {}))
    try:
        send_to_site(REPORT_TASK, report, retry=True, retry_policy=REPORT_RETRIES)
    except OperationalError as error:
        raise Reject("the report could not be sent", requeue=True) from error
    logger.info("evaluation %s, attempt %d: %s %s", job.evaluation, job.attempt, job.step, report.outcome)


def _report(job: EvaluationJob, started_at: datetime, deliveries: int) -> StepReport:
    outcome, output, problems, trace = Outcome.PASSED, None, [], ""
    try:
        if deliveries > MAX_DELIVERIES:
            raise RuntimeError(f"this job has ended {deliveries - 1} workers before it could be reported")
        output = _run(job)
    except Exception as error:  # noqa: BLE001 - the boundary: whatever went wrong is reported, never lost
        if isinstance(error, ProblemError) and not OPERATOR_ERRORS & {
            problem.code for problem in error.problems
        }:
            outcome, problems = Outcome.REJECTED, error.problems
        else:
            code = error.code if isinstance(error, FetchError) else ErrorCode.PLATFORM_FAULT
            outcome, problems = Outcome.FAILED, [Problem.of(code)]
            trace = trace_of(error, quoted=job.step is not Step.SCORING)
            logger.error("evaluation %s, attempt %d: %s\n%s", job.evaluation, job.attempt, job.step, trace)
    return StepReport(
        evaluation=job.evaluation,
        attempt=job.attempt,
        step=job.step,
        outcome=outcome,
        problems=problems,
        result=output and output.result,
        detail=output and output.detail,
        provenance=_provenance(job.step, started_at),
        operator_trace=trace,
    )


def _run(job: EvaluationJob) -> StepOutput[StepResult]:
    folder = WorkerFolder(Path(os.environ.get("PFL_EVALUATOR_HOME") or Path.cwd() / "var" / "evaluator"))
    with Heartbeat(job).beating() as heartbeat:
        return run_step(job.step, folder.step_inputs(job, heartbeat.set), heartbeat.set)


def _provenance(step: Step, started_at: datetime) -> Provenance:
    libraries = {}
    for name in LIBRARIES[step]:
        # A missing package may be why the step failed.
        with contextlib.suppress(PackageNotFoundError):
            libraries[name] = version(name)
    return Provenance(
        worker=worker_name(),
        evaluator_version=evaluator_version(),
        libraries=libraries,
        hardware=_hardware(step),
        started_at=started_at,
        finished_at=datetime.now(UTC),
    )


def _hardware(step: Step) -> str:
    # It is absent if scoring failed because it can't be imported.
    torch = sys.modules.get("torch")
    if step is Step.SCORING and torch is not None and torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return f"{platform.machine()}, {os.cpu_count()} cores"
