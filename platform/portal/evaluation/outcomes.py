"""The consequences of the end of an attempt. The caller holds the locks of the evaluation and of its run."""

from collections.abc import Sequence
from datetime import datetime

from django.conf import settings

from evaluator.contracts import TrustLevel
from evaluator.errors import ErrorCode, Problem
from evaluator.results import RunResults
from portal.accounts.models import User
from portal.evaluation import dispatch, notifications
from portal.evaluation.models import Evaluation, EvaluationState
from portal.evaluation.states import move_evaluation
from portal.submissions.models import Run, RunState
from portal.submissions.services import refund
from portal.submissions.states import move_run


def score(evaluation: Evaluation, run: Run, results: RunResults, now: datetime) -> None:
    """Complete the run with its results after all steps have passed: every number follows from its files."""
    move_evaluation(evaluation, EvaluationState.PASSED, finished_at=now)
    results = results.model_copy(update={"trust_level": TrustLevel.RECOMPUTED})
    move_run(run, RunState.SCORED, scored_at=now, results=results)
    notifications.notify_team(run, [])


def reject(evaluation: Evaluation, run: Run, problems: Sequence[Problem], now: datetime) -> None:
    """Reject the run for an artifact that the participant must fix."""
    move_evaluation(evaluation, EvaluationState.REJECTED, finished_at=now)
    move_run(run, RunState.REJECTED)
    notifications.notify_team(run, problems)


def fail_or_retry(evaluation: Evaluation, run: Run, state: EvaluationState, now: datetime) -> None:
    """End an attempt that the platform has spoiled (`state` is failed or lost).

    The run is tried again, or fails after the last attempt, which gives its quota slot back.
    """
    move_evaluation(evaluation, state, finished_at=now)
    if evaluation.retry + 1 < settings.EVALUATION_ATTEMPTS:
        requeue(run, retry=evaluation.retry + 1)
        return
    move_run(run, RunState.FAILED)
    refund(run.submission)
    notifications.notify_team(run, [Problem.of(ErrorCode.PLATFORM_FAULT)])


def requeue(run: Run, *, retry: int = 0, actor: User | None = None) -> Evaluation:
    """Queue the run again, without results, and return its next attempt."""
    move_run(run, RunState.QUEUED, actor=actor, results=RunResults(), scored_at=None)
    return dispatch.start(run, retry=retry)
