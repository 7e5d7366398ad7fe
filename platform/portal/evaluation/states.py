"""The states of evaluations: the allowed transitions, which `portal.submissions.states.move` makes."""

from typing import Any

from portal.accounts.models import User
from portal.evaluation.models import Evaluation, EvaluationState
from portal.submissions.states import move

EVALUATION_TRANSITIONS: dict[str, frozenset[str]] = {
    EvaluationState.QUEUED: frozenset({EvaluationState.RUNNING}),
    EvaluationState.RUNNING: frozenset(
        {
            EvaluationState.QUEUED,  # a step passed and the next one waits for a worker
            EvaluationState.PASSED,
            EvaluationState.REJECTED,
            EvaluationState.FAILED,
            EvaluationState.LOST,
        }
    ),
    EvaluationState.PASSED: frozenset(),
    EvaluationState.REJECTED: frozenset(),
    EvaluationState.FAILED: frozenset(),
    EvaluationState.LOST: frozenset(),
}


def move_evaluation(
    evaluation: Evaluation, state: EvaluationState, *, actor: User | None = None, **fields: Any
) -> None:
    """Move an evaluation to `state`, setting `fields` with it. The caller holds the row's lock."""
    move(evaluation, state, EVALUATION_TRANSITIONS, actor, fields, step=fields.get("step", evaluation.step))
