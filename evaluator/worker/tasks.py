"""The one task of a worker: run a step of an evaluation and report how it ended."""

import contextlib
import logging
import threading
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from celery import Task
from celery.exceptions import Reject
from celery.signals import worker_init, worker_ready
from kombu.exceptions import OperationalError
from pydantic import ValidationError

from evaluator.errors import ErrorCode, Problem
from evaluator.messages.jobs import (
    STEP_TASK,
    EvaluationJob,
    JobHead,
    Outcome,
    Provenance,
    Step,
    WorkerReport,
    evaluator_version,
)
from evaluator.worker import reports
from evaluator.worker.broker import delivery_number
from evaluator.worker.celery import WORKER_NAME, app
from evaluator.worker.consuming import Consumer, NotAcknowledgedError
from evaluator.worker.heartbeat import Heartbeat
from evaluator.worker.home import sandbox_is_required
from evaluator.worker.inventory import report_regularly
from evaluator.worker.step_process import StepEnding
from evaluator.worker.steps import default_runner

logger = logging.getLogger(__name__)

LIBRARIES = {
    Step.VALIDATE: ["numpy"],
    Step.COMMUNICATION: [],
    Step.ACCOUNTING: ["dp-accounting", "numpy", "scipy"],
    Step.SCORING: ["torch", "transformers", "tokenizers", "rapidfuzz"],
    Step.LEAKAGE: ["torch", "transformers", "tokenizers", "scikit-learn"],
}
# How long a worker that can't begin a step waits before it gives the message back.
GIVE_BACK_S = 5.0


runner = default_runner()


@worker_init.connect
def _require_protection(**_: object) -> None:
    """Take no job on a kernel that doesn't confine steps, where that is required."""
    Consumer.takes_messages = not (runner.sandbox.probe().missing and sandbox_is_required())


@worker_ready.connect
def _log_protection(**_: object) -> None:
    """Write to the log what the kernel enforces around each step."""
    protection = runner.sandbox.protection
    logger.info("steps are confined by: %s", protection)
    for missing in protection.missing if protection else ():
        logger.warning("this machine can't enforce on steps: %s", missing)
    if not Consumer.takes_messages:
        logger.error(
            "this worker takes no job, because PFL_SANDBOX is `required`: run it on a kernel with seccomp and Landlock "
            "(Linux 5.13 or later); with `warn`, a hostile file could read the test set"
        )


@worker_ready.connect
def _report_inventory(**_: object) -> None:
    """Report from now on what this worker has, also while it waits for its first job."""
    protection = runner.sandbox.protection
    unenforced = protection.missing if protection else []
    threading.Thread(
        target=report_regularly,
        args=(runner.folder, unenforced, threading.Event()),
        name="inventory",
        daemon=True,
    ).start()


@worker_ready.connect
def _deliver_kept_reports(**_: object) -> None:
    """Send what this folder's worker couldn't before it ended, while new jobs are taken."""
    threading.Thread(
        target=reports.deliver_kept, args=(runner.folder,), name="kept reports", daemon=True
    ).start()


@app.task(name=STEP_TASK, bind=True, Request="evaluator.worker.consuming:HeldRequest")
def take_job(self: "Task[Any, None]", message: dict[str, Any]) -> None:
    """Run one step of an evaluation and report how it ended.

    The message is acknowledged when the site has been sent a first heartbeat, before the step begins. From then on
    the site's watchdog notices the end of this process, and no broker cares how long the step takes.
    """
    try:
        head = JobHead.of(message)
    except ValidationError as error:
        # There is nobody to report to: the message names no evaluation that could be trusted.
        logger.error("dropped a malformed job: %s", [detail["loc"] for detail in error.errors()])
        return
    heartbeat = Heartbeat(head)
    _begin(self.request, head, heartbeat)
    # Until the report is sent: a broker that comes back sees a heartbeat at once.
    with heartbeat.beating():
        started_at = datetime.now(UTC)
        report = _report(head, _ending(message, heartbeat), started_at)
        reports.deliver(runner.folder, report, head.secret)
    logger.info("%s %s", _name(head), report.outcome)


def _begin(request: Any, job: JobHead, heartbeat: Heartbeat) -> None:
    """Report that the step begins, and acknowledge its message. Raises `Reject` to give the message back."""
    redelivered = bool((request.delivery_info or {}).get("redelivered"))
    delivery = delivery_number(request.headers or {}, redelivered=redelivered)
    if delivery > 1:
        logger.warning("%s: handed out again (delivery %d)", _name(job), delivery)
    try:
        heartbeat.announce()
        request.held.acknowledge_now()
    except (OperationalError, NotAcknowledgedError) as error:
        # Others may have more luck, or this worker later.
        time.sleep(GIVE_BACK_S)
        raise Reject("the broker was away when the step was to begin", requeue=True) from error
    logger.info("%s begins", _name(job))


def _name(job: JobHead) -> str:
    return f"evaluation {job.evaluation}, attempt {job.attempt}: {job.step}"


def _ending(message: dict[str, Any], heartbeat: Heartbeat) -> StepEnding:
    """Run the job's step, and return how it ended."""
    try:
        job = EvaluationJob.model_validate(message)
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, detail["loc"])) for detail in error.errors(include_input=False))
        return StepEnding(
            outcome=Outcome.FAILED,
            problems=[Problem.of(ErrorCode.PLATFORM_FAULT)],
            operator_trace=f"Evaluator {evaluator_version()} can't read these fields of the site's job: {fields}. "
            "Start workers of the site's version.",
        )
    return runner.run(job, heartbeat.set)


def _report(job: JobHead, ending: StepEnding, started_at: datetime) -> WorkerReport:
    if ending.outcome is Outcome.FAILED:
        logger.error("%s\n%s", _name(job), ending.operator_trace)
    return WorkerReport(
        evaluation=job.evaluation,
        attempt=job.attempt,
        step=job.step,
        outcome=ending.outcome,
        problems=ending.problems,
        result=ending.result,
        detail=ending.detail,
        sample=ending.sample,
        drawn_means=ending.drawn_means,
        provenance=_provenance(job.step, ending.hardware, started_at),
        operator_trace=ending.operator_trace,
    )


def _provenance(step: Step, hardware: str, started_at: datetime) -> Provenance:
    libraries = {}
    for name in LIBRARIES[step]:
        # A missing package may be why the step failed.
        with contextlib.suppress(PackageNotFoundError):
            libraries[name] = version(name)
    return Provenance(
        worker=WORKER_NAME,
        evaluator_version=evaluator_version(),
        libraries=libraries,
        hardware=hardware,
        sandbox=str(runner.sandbox.protection or "none"),
        started_at=started_at,
        finished_at=datetime.now(UTC),
    )
