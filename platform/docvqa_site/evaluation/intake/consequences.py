"""What becomes of an attempt and of its run, as values: nothing here reads or writes the database.

`docvqa_site.evaluation.intake.outcomes.carry_out` writes a consequence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from docvqa_site.evaluation.intake.judging import Judgement
from docvqa_site.evaluation.models import Evaluation, EvaluationState
from docvqa_site.evaluation.queue.places import QUEUES
from docvqa_site.submissions.models import Run, RunState
from evaluator.errors import ErrorCode, Problem
from evaluator.messages.jobs import Step
from evaluator.messages.results import RunResults


@dataclass(frozen=True)
class Consequence:
    """What happens to an attempt, and with it to its run.

    Attributes:
        state: The attempt's new state, with the `fields` that change with it.
        run_state: The run's new state; None where it keeps its own.
        run_fields: The fields of the run that change.
        problems: What the team reads when the run has ended.
        retry: The counts of the attempt that follows; None where none does.
    """

    state: EvaluationState
    fields: Mapping[str, Any]
    run_state: RunState | None = None
    run_fields: Mapping[str, Any] = field(default_factory=dict)
    problems: Sequence[Problem] = ()
    retry: Mapping[str, Any] | None = None


def consequence_of(
    judgement: Judgement, evaluation: Evaluation, run: Run, now: datetime, *, is_excused: bool
) -> Consequence:
    """Return what follows from a report; `is_excused` says whether a fault doesn't count."""
    if judgement.renews:
        # The step is queued once more within its attempt, at the place that it had.
        fields = {"renewals": evaluation.renewals + 1, "sent_at": None, "worker": "", "heartbeat_at": None}
        return Consequence(EvaluationState.QUEUED, fields)
    if judgement.is_fault:
        return after_fault(evaluation, now, is_excused=is_excused)
    if judgement.report.step is Step.LEAKAGE:
        results = {"results": judgement.results}
        return Consequence(EvaluationState.PASSED, _finished(evaluation, now), run_fields=results)
    if judgement.next_step is not None:
        return _advanced(evaluation, run, judgement.next_step, judgement.results, now)
    if judgement.rejections is not None:
        return _rejected(judgement.results, judgement.rejections, now)
    return scored(evaluation, judgement.results, now)


def scored(evaluation: Evaluation, results: RunResults, now: datetime) -> Consequence:
    """Complete the run with its results after all steps have passed: every number follows from its files."""
    run_fields = {"scored_at": now, "results": results, "pending": RunResults()}
    return Consequence(EvaluationState.PASSED, _finished(evaluation, now), RunState.SCORED, run_fields)


def _finished(evaluation: Evaluation, now: datetime) -> dict[str, object]:
    """Return the fields of an evaluation that has passed; its last heartbeat came before the end of the step."""
    return {"finished_at": now, "done": evaluation.total}


def after_fault(evaluation: Evaluation, now: datetime, *, is_excused: bool) -> Consequence:
    """End an attempt that failed through the platform's fault; the run is tried again after a pause.

    The pauses grow. After the last one the next fault fails the run. One that is excused, because the platform fails
    for many, counts for neither.
    """
    pauses = settings.EVALUATION_BACKOFF_SECONDS
    faults = evaluation.faults if is_excused else evaluation.faults + 1
    not_before = (
        now + timedelta(seconds=pauses[max(0, faults - 1)]) if pauses and faults <= len(pauses) else None
    )
    retry = {**_counts(evaluation), "faults": faults, "not_before": not_before}
    code = ErrorCode.PLATFORM_FAULT if faults > len(pauses) else None
    return _ended(evaluation, EvaluationState.FAILED, now, retry, code)


def after_loss(evaluation: Evaluation, now: datetime) -> Consequence:
    """End an attempt whose worker fell silent; the run is tried again at once, unless it has lost too many workers."""
    retry = {**_counts(evaluation), "losses": evaluation.losses + 1}
    code = ErrorCode.WORKERS_LOST if is_last_loss(evaluation) else None
    return _ended(evaluation, EvaluationState.LOST, now, retry, code)


def is_last_loss(evaluation: Evaluation) -> bool:
    """Return whether the run fails if this attempt is lost."""
    return bool(evaluation.losses + 1 >= settings.EVALUATION_LOSSES)


def _counts(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "retry": evaluation.retry + 1,
        "faults": evaluation.faults,
        "losses": evaluation.losses,
    }


def _ended(
    evaluation: Evaluation,
    state: EvaluationState,
    now: datetime,
    retry: Mapping[str, Any],
    code: ErrorCode | None,
) -> Consequence:
    """Return the end of an attempt through no fault of the participant's; with a code no other attempt follows."""
    fields = {"finished_at": now}
    if code is None:
        return Consequence(state, fields, retry=retry)
    if evaluation.step == Step.LEAKAGE:
        # The run has its score; `manage.py measure_leakage` tries again.
        return Consequence(state, fields)
    return Consequence(state, fields, RunState.FAILED, problems=[Problem.of(code)])


def _rejected(results: RunResults, problems: Sequence[Problem], now: datetime) -> Consequence:
    # Results of an earlier attempt are off the boards from now on.
    run_fields = {"results": results, "pending": RunResults(), "scored_at": None}
    return Consequence(
        EvaluationState.REJECTED, {"finished_at": now}, RunState.REJECTED, run_fields, problems
    )


def _advanced(
    evaluation: Evaluation, run: Run, step: Step, results: RunResults, now: datetime
) -> Consequence:
    """Queue the next step of the attempt, and store what the attempt has found so far."""
    queue_changes = QUEUES[Step(evaluation.step)] != QUEUES[step]
    fields = {
        "step": step,
        "done": 0,
        "total": 0,
        "remaining_s": None,
        "worker": "",
        "heartbeat_at": None,
        "step_queued_at": now,
        "sent_at": None,
        "renewals": 0,
        # In the same queue it keeps its place; in another one it takes a turn.
        "turn": None if queue_changes else evaluation.turn,
        "ticket": None if queue_changes else evaluation.ticket,
    }
    # A run that was scored before keeps its results until all are new.
    run_fields = {"results" if run.scored_at is None else "pending": results}
    return Consequence(EvaluationState.QUEUED, fields, run_fields=run_fields)
