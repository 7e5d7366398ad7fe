"""What follows when an attempt ends. The caller holds the locks of the evaluation and of its run."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from evaluator.contracts import TrustLevel
from evaluator.errors import ErrorCode, Problem
from portal.accounts.models import User
from portal.evaluation import dispatch, notices
from portal.evaluation.models import Evaluation, EvaluationState
from portal.evaluation.states import move_evaluation
from portal.submissions.models import Run, RunState
from portal.submissions.services import refund
from portal.submissions.states import move_run

RESULTS = (
    *("anls", "accuracy", "bytes_total", "bytes_needed", "checks", "trust_level", "scored_at"),
    *("epsilon", "epsilon_two_stage", "epsilon_product", "epsilon_rdp", "accountant"),
    *("joint_epsilon", "joint_runs"),
)


def score(evaluation: Evaluation, run: Run, results: dict[str, Any], now: datetime) -> None:
    """All steps passed: every number of the run follows from its files."""
    move_evaluation(evaluation, EvaluationState.PASSED, finished_at=now)
    move_run(run, RunState.SCORED, scored_at=now, trust_level=TrustLevel.RECOMPUTED.value, **results)
    notices.tell_team(run, [])


def reject(evaluation: Evaluation, run: Run, problems: Sequence[Problem], now: datetime) -> None:
    """An artifact is at fault: the participant's to mend."""
    move_evaluation(evaluation, EvaluationState.REJECTED, finished_at=now)
    move_run(run, RunState.REJECTED)
    notices.tell_team(run, problems)


def break_off(evaluation: Evaluation, run: Run, state: EvaluationState, now: datetime) -> None:
    """The platform is at fault (`state` is failed or lost): try again, or give up and refund the quota slot."""
    move_evaluation(evaluation, state, finished_at=now)
    if evaluation.retry + 1 < settings.EVALUATION_ATTEMPTS:
        start_over(run, retry=evaluation.retry + 1)
        return
    move_run(run, RunState.FAILED)
    refund(run.submission)
    notices.tell_team(run, [Problem.of(ErrorCode.PLATFORM_FAULT)])


def start_over(run: Run, *, retry: int = 0, actor: User | None = None) -> Evaluation:
    """Queue the run again, without results, for another attempt."""
    move_run(run, RunState.QUEUED, actor=actor, **_no_results())
    return dispatch.start(run, retry=retry)


def _no_results() -> dict[str, Any]:
    """What `RESULTS` are before there are any."""
    blank = Run()
    return {name: getattr(blank, name) for name in RESULTS}
