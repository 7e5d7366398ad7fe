"""The consequences of the end of an attempt. The caller holds the locks of the evaluation and of its run."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from evaluator.errors import ErrorCode, Problem
from evaluator.messages.jobs import Step
from evaluator.messages.results import RunResults
from portal.accounts.models import User
from portal.evaluation import notifications
from portal.evaluation.examining import leakage
from portal.evaluation.examining.trust import earned, with_trust
from portal.evaluation.models import Evaluation, EvaluationState
from portal.evaluation.queue import dispatch
from portal.evaluation.states import move_evaluation
from portal.submissions.models import Run, RunState
from portal.submissions.services import refund, refund_rejected
from portal.submissions.states import move_run


def score(evaluation: Evaluation, run: Run, results: RunResults, now: datetime) -> None:
    """Complete the run with its results after all steps have passed: every number follows from its files."""
    move_evaluation(evaluation, EvaluationState.PASSED, finished_at=now)
    # The files are the same, so what was examined and measured of them stays.
    results = with_trust(results, earned(now, run.examinations.all()))
    results = results.model_copy(update={"leakage": run.results.leakage})
    move_run(run, RunState.SCORED, scored_at=now, results=results, pending=RunResults())
    notifications.notify_team(run, [])
    if leakage.qualifies(run, results):
        leakage.begin(run)


def reject(evaluation: Evaluation, run: Run, problems: Sequence[Problem], now: datetime) -> None:
    """Reject the run for an artifact that the participant must fix."""
    move_evaluation(evaluation, EvaluationState.REJECTED, finished_at=now)
    # Results of an earlier attempt are off the boards from now on.
    results = run.attempt_results
    move_run(run, RunState.REJECTED, results=results, pending=RunResults(), scored_at=None)
    refund_rejected(run.submission, now)
    notifications.notify_team(run, problems)


def fail_or_retry(evaluation: Evaluation, run: Run, now: datetime, *, is_excused: bool) -> None:
    """End an attempt that failed through the platform's fault; the run is tried again after a pause.

    The pauses grow. After the last one the next fault fails the run. One that is excused, because the platform fails
    for many, counts for neither.
    """
    pauses = settings.EVALUATION_BACKOFF_SECONDS
    faults = evaluation.faults if is_excused else evaluation.faults + 1
    move_evaluation(evaluation, EvaluationState.FAILED, finished_at=now)
    if faults > len(pauses):
        _fail(evaluation, run, ErrorCode.PLATFORM_FAULT)
        return
    not_before = now + timedelta(seconds=pauses[max(0, faults - 1)]) if pauses else None
    _retry(evaluation, run, faults=faults, not_before=not_before)


def lose(evaluation: Evaluation, run: Run, now: datetime) -> None:
    """End an attempt whose worker fell silent; the run is tried again at once, unless it has lost too many workers."""
    move_evaluation(evaluation, EvaluationState.LOST, finished_at=now)
    if is_last_loss(evaluation):
        _fail(evaluation, run, ErrorCode.WORKERS_LOST)
    else:
        _retry(evaluation, run, losses=evaluation.losses + 1)


def is_last_loss(evaluation: Evaluation) -> bool:
    """Return whether the run fails if this attempt is lost."""
    return evaluation.losses + 1 >= settings.EVALUATION_LOSSES


def send_again(evaluation: Evaluation) -> None:
    """Queue a step once more within its attempt, at the place that it had, because its files' addresses had expired."""
    move_evaluation(
        evaluation,
        EvaluationState.QUEUED,
        renewals=evaluation.renewals + 1,
        sent_at=None,
        worker="",
        heartbeat_at=None,
    )
    dispatch.dispatch_on_commit()


def requeue(run: Run, *, actor: User | None = None, **fields: Any) -> Evaluation:
    """Queue the run again, and return its next attempt with `fields` of its row.

    A run that has a score keeps its results, and its row on the boards, until the new ones are complete.
    """
    leakage.cancel(run, actor=actor)
    results = RunResults() if run.scored_at is None else run.results
    move_run(run, RunState.QUEUED, actor=actor, results=results, pending=RunResults())
    return dispatch.start(run, **fields)


def _retry(evaluation: Evaluation, run: Run, **fields: Any) -> None:
    counts: dict[str, Any] = {
        "retry": evaluation.retry + 1,
        "faults": evaluation.faults,
        "losses": evaluation.losses,
    }
    if evaluation.step == Step.LEAKAGE:
        leakage.begin(run, **{**counts, **fields})
    else:
        requeue(run, **{**counts, **fields})


def _fail(evaluation: Evaluation, run: Run, code: ErrorCode) -> None:
    if evaluation.step == Step.LEAKAGE:
        # The run has its score; `manage.py measure_leakage` tries again.
        return
    move_run(run, RunState.FAILED)
    refund(run.submission)
    notifications.notify_team(run, [Problem.of(code)])
