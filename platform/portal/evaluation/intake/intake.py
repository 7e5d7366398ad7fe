"""Receives what workers report on an evaluation: signs of life, and how its steps ended.

Messages may come twice, late or out of order. Only those about the step that an active evaluation is at have
an effect; all others are logged and dropped, so that a dead attempt never overwrites a live one.
"""

import logging
import math
from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from django.db import transaction

from evaluator.errors import ErrorCode, Problem, ProblemError, shorten
from evaluator.messages.jobs import (
    AccountingResult,
    Outcome,
    Progress,
    ScoringDetail,
    ScoringResult,
    Step,
    StepReport,
    TrackRules,
)
from evaluator.messages.leakage import LeakageResult
from evaluator.messages.results import RunResults
from evaluator.messages.signed import SignedMessage
from evaluator.worker.time_left import MAX_REMAINING_S
from portal.evaluation import clock, models
from portal.evaluation.examining import leakage
from portal.evaluation.intake import near_copies, outcomes, report_checks
from portal.evaluation.intake.accounted import accept_accounting
from portal.evaluation.intake.parts import official
from portal.evaluation.intake.step_secrets import is_authentic
from portal.evaluation.intake.truncation import truncate_for_storage
from portal.evaluation.models import ACTIVE_STATES, Evaluation, EvaluationState
from portal.evaluation.queue import breaker
from portal.evaluation.queue.dispatch import dispatch_on_commit
from portal.evaluation.queue.places import QUEUES
from portal.evaluation.states import move_evaluation
from portal.submissions.models import Run, RunState
from portal.submissions.states import move_run

Content = TypeVar("Content", Progress, StepReport)

logger = logging.getLogger(__name__)

# The largest numbers that the database's columns can store.
LARGEST_UNITS = 2**31 - 1
LARGEST_NUMBER = 2**63 - 1
# A step whose addresses are rejected more often than this failed: the store doesn't take them at all.
MAX_RENEWALS = 3
CHECKPOINT_CODES = "E_CHECKPOINT"


def parse_progress(message: object) -> Progress:
    """Return the progress that a message reports. Raises `ValueError` unless one of our workers could send it."""
    progress = _opened(message, Progress)
    if not (0 <= progress.done <= LARGEST_UNITS and 0 <= progress.total <= LARGEST_UNITS):
        raise ValueError(f"{progress.done} of {progress.total} is not progress")
    if progress.remaining_s is not None and not 0 <= progress.remaining_s <= MAX_REMAINING_S:
        raise ValueError(f"{progress.remaining_s} s is not a time left")
    return progress


def parse_report(message: object) -> StepReport:
    """Return the report that a message holds. Raises `ValueError` unless one of our workers could send it."""
    report = _opened(message, StepReport)
    if report.outcome is Outcome.PASSED and (report.result is None or report.result.kind != report.step):
        raise ValueError(f"the step {report.step} passed without a result of its own")
    for name, value in report.result or ():
        if isinstance(value, int | float) and not (math.isfinite(value) and 0 <= value <= LARGEST_NUMBER):
            raise ValueError(f"{name} = {value} is not a result")
    if report.scoring_detail is not None:
        _require_plausible(report.scoring_detail)
    return report


def _opened(message: object, kind: type[Content]) -> Content:
    """Return the content of a signed message. Raises `ValueError` unless its job's secret has signed it."""
    signed = SignedMessage.model_validate(message)
    content = kind.model_validate_json(signed.content)
    if not is_authentic(signed, content):
        raise ValueError(
            f"evaluation {content.evaluation}, {content.step}: it isn't signed by the job's worker"
        )
    return content


def _require_plausible(detail: ScoringDetail) -> None:
    counts = [detail.pages_without_image, *(group.questions for group in detail.groups)]
    scores = [
        value
        for group in detail.groups
        for value in (group.anls, group.anls_low, group.anls_high, group.accuracy)
    ]
    if not (
        all(0 <= count <= LARGEST_NUMBER for count in counts) and all(0 <= score <= 1 for score in scores)
    ):
        raise ValueError("the detail of a score has numbers out of range")


def receive_progress(progress: Progress, now: datetime | None = None) -> None:
    """Store a worker's sign of life."""
    now = now or clock.now()
    with transaction.atomic():
        evaluation = _lock_current(progress)
        if evaluation is None:
            return
        if evaluation.state == EvaluationState.QUEUED:
            _begin(evaluation, Run.objects.select_for_update().get(pk=evaluation.run_id))
        evaluation.done = progress.done
        evaluation.total = progress.total
        evaluation.remaining_s = progress.remaining_s
        evaluation.worker = shorten(progress.worker)
        evaluation.heartbeat_at = now
        evaluation.save(update_fields=["done", "total", "remaining_s", "worker", "heartbeat_at"])
        breaker.note_sign_of_life(progress.step, evaluation.worker, now)


def receive_report(report: StepReport, now: datetime | None = None) -> None:
    """Store how a step ended, and begin what follows: the next step, the end of the run, or another attempt."""
    now = now or clock.now()
    with transaction.atomic():
        evaluation = _lock_current(report)
        if evaluation is None:
            return
        run = Run.objects.select_for_update().get(pk=evaluation.run_id)
        if evaluation.state == EvaluationState.QUEUED:
            _begin(evaluation, run)
        if _has_expired_address(evaluation, report):
            outcomes.send_again(evaluation)
            return
        report = _without_faults(run, truncate_for_storage(report))
        if report.outcome is not Outcome.FAILED:
            breaker.note_health(evaluation, report.step, shorten(report.provenance.worker))
        if report.step is Step.LEAKAGE:
            _end_leakage(evaluation, run, report, now)
            return
        earlier = _rejections(evaluation)
        outcome, problems, results = _judged(run, report, is_rejected=earlier is not None)
        _store(evaluation, report, outcome, problems, now)
        if report.sample and report.step is Step.VALIDATE and outcome is Outcome.PASSED:
            near_copies.store(run, report.sample, now)
        match outcome:
            case Outcome.FAILED:
                _fail_or_retry(evaluation, run, report, now)
            case Outcome.PASSED if earlier is None:
                _advance(evaluation, run, results, now)
            case _:
                _save_results(run, results)
                _reject(evaluation, run, [*(earlier or []), *problems], now)


def _end_leakage(evaluation: Evaluation, run: Run, report: StepReport, now: datetime) -> None:
    """Store what was measured of a run that has its score: nothing that went wrong is for its team to fix."""
    _store(evaluation, report, report.outcome, report.problems, now)
    if isinstance(report.result, LeakageResult):
        leakage.accept(evaluation, run, report.result, now)
    else:
        _fail_or_retry(evaluation, run, report, now)


def _judged(run: Run, report: StepReport, *, is_rejected: bool) -> tuple[Outcome, list[Problem], RunResults]:
    """Return the outcome of a step for its run, what the participant must fix, and the run's results with the step's.

    A step of a run that `is_rejected` already has run only to find what else is wrong. It says nothing of the
    checkpoint, which the validation has reported on, and what it can't do with rejected files is no platform fault.
    """
    outcome, problems = report.outcome, report.problems
    if outcome is Outcome.PASSED:
        try:
            return outcome, problems, _results(run, report)
        except ProblemError as error:
            return Outcome.REJECTED, error.problems, run.attempt_results
    if is_rejected:
        new = [problem for problem in problems if not problem.code.startswith(CHECKPOINT_CODES)]
        return Outcome.REJECTED, new if outcome is Outcome.REJECTED else [], run.attempt_results
    return outcome, problems, run.attempt_results


def _store(
    evaluation: Evaluation, report: StepReport, outcome: Outcome, problems: Sequence[Problem], now: datetime
) -> None:
    models.StepReport.objects.create(
        evaluation=evaluation,
        step=report.step,
        outcome=outcome,
        problems=[problem.model_dump(mode="json") for problem in problems],
        result=report.result and report.result.model_dump(mode="json"),
        detail=report.detail and report.detail.model_dump(mode="json"),
        provenance=report.provenance.model_dump(mode="json"),
        operator_trace=report.operator_trace,
        received_at=now,
    )
    breaker.note_sign_of_life(report.step, shorten(report.provenance.worker), now)


def _fail_or_retry(evaluation: Evaluation, run: Run, report: StepReport, now: datetime) -> None:
    worker = shorten(report.provenance.worker)
    is_excused = breaker.excuses_fault(report.step, worker, report.operator_trace, now)
    outcomes.fail_or_retry(evaluation, run, now, is_excused=is_excused)


def _without_faults(run: Run, report: StepReport) -> StepReport:
    """Return the report, as one of a platform fault if its result can't be true of the run."""
    faults = report_checks.faults(run, report) if report.outcome is Outcome.PASSED else []
    if not faults:
        return report
    text = f"The site doesn't believe {report.provenance.worker}: " + "; ".join(faults)
    logger.error("Evaluation %s, step %s: %s", report.evaluation, report.step, text)
    return report.model_copy(
        update={
            "outcome": Outcome.FAILED,
            "problems": [Problem.of(ErrorCode.PLATFORM_FAULT)],
            "result": None,
            "detail": None,
            "operator_trace": text,
        }
    )


def _lock_current(message: Progress | StepReport) -> Evaluation | None:
    """Return the evaluation that the message is about, its row locked, unless it has moved past the message."""
    evaluation = Evaluation.objects.select_for_update().filter(pk=message.evaluation).first()
    if (
        evaluation is not None
        and evaluation.state in ACTIVE_STATES
        and (evaluation.attempt, evaluation.step) == (message.attempt, message.step)
    ):
        return evaluation
    logger.info(
        "Dropped a %s about attempt %d, step %s of evaluation %s: it is %s.",
        type(message).__name__,
        message.attempt,
        message.step,
        message.evaluation,
        f"{evaluation.state} at attempt {evaluation.attempt}, {evaluation.step}" if evaluation else "unknown",
    )
    return None


def _begin(evaluation: Evaluation, run: Run) -> None:
    move_evaluation(evaluation, EvaluationState.RUNNING)
    if run.state == RunState.QUEUED:
        move_run(run, RunState.RUNNING)
    # There is room for another step in the broker.
    dispatch_on_commit()


def _has_expired_address(evaluation: Evaluation, report: StepReport) -> bool:
    """Return whether the step should be sent again as it is, with new addresses of its files."""
    codes = {problem.code for problem in report.problems}
    is_expired = report.outcome is Outcome.FAILED and ErrorCode.ARTIFACT_URL in codes
    return is_expired and evaluation.renewals < MAX_RENEWALS


def _rejections(evaluation: Evaluation) -> list[Problem] | None:
    """Return what earlier steps of the attempt were rejected for; None if none was."""
    rejected = list(evaluation.reports.filter(outcome=Outcome.REJECTED).values_list("problems", flat=True))
    if not rejected:
        return None
    return [Problem.model_validate(problem) for problems in rejected for problem in problems]


def _reject(evaluation: Evaluation, run: Run, problems: Sequence[Problem], now: datetime) -> None:
    """Reject the run once every step that only reads its files has run, so that one report names all that is wrong."""
    later = _later_steps(evaluation, run)
    if later and later[0] is not Step.SCORING:
        _queue(evaluation, later[0], now)
    else:
        outcomes.reject(evaluation, run, problems, now)


def _advance(evaluation: Evaluation, run: Run, results: RunResults, now: datetime) -> None:
    later = _later_steps(evaluation, run)
    if not later:
        outcomes.score(evaluation, run, results, now)
        return
    _save_results(run, results)
    _queue(evaluation, later[0], now)


def _save_results(run: Run, results: RunResults) -> None:
    """Store what the attempt has found so far; a run that was scored before keeps its results until all are new."""
    field = "results" if run.scored_at is None else "pending"
    setattr(run, field, results)
    run.save(update_fields=[field])


def _later_steps(evaluation: Evaluation, run: Run) -> list[Step]:
    steps = TrackRules.model_validate(run.rules).steps()
    return steps[steps.index(Step(evaluation.step)) + 1 :]


def _queue(evaluation: Evaluation, step: Step, now: datetime) -> None:
    """Queue the next step of the attempt."""
    queue_changes = QUEUES[Step(evaluation.step)] != QUEUES[step]
    move_evaluation(
        evaluation,
        EvaluationState.QUEUED,
        step=step,
        done=0,
        total=0,
        remaining_s=None,
        worker="",
        heartbeat_at=None,
        step_queued_at=now,
        sent_at=None,
        renewals=0,
        # In the same queue it keeps its place; in another one it takes a turn.
        turn=None if queue_changes else evaluation.turn,
        ticket=None if queue_changes else evaluation.ticket,
    )
    dispatch_on_commit()


def _results(run: Run, report: StepReport) -> RunResults:
    """Return the run's results with those of a passed step.

    Raises `ProblemError` where the site rejects what the worker accepted.
    """
    match report.result:
        case None:
            return run.attempt_results
        case AccountingResult() as result:
            return accept_accounting(run, result)
        case ScoringResult() as result:
            return official(run, run.attempt_results.including(result), report.scoring_detail)
        case result:
            return run.attempt_results.including(result)
