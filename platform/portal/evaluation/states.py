"""The states of evaluations: the allowed transitions, and the one function that makes them."""

from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.audit.models import record
from portal.evaluation.models import Evaluation, EvaluationState
from portal.submissions.states import IllegalTransitionError

EVALUATION_TRANSITIONS: dict[str, frozenset[str]] = {
    EvaluationState.QUEUED: frozenset({EvaluationState.RUNNING}),
    EvaluationState.RUNNING: frozenset(
        {
            EvaluationState.QUEUED,  # a step passed and the next one waits for a worker
            EvaluationState.PASSED,
            EvaluationState.REFUSED,
            EvaluationState.FAILED,
            EvaluationState.LOST,
        }
    ),
    EvaluationState.PASSED: frozenset(),
    EvaluationState.REFUSED: frozenset(),
    EvaluationState.FAILED: frozenset(),
    EvaluationState.LOST: frozenset(),
}


def move_evaluation(
    evaluation: Evaluation, state: EvaluationState, *, actor: User | None = None, **fields: Any
) -> None:
    """Move an evaluation to `state`, setting `fields` with it. The caller holds the row's lock."""
    if not transaction.get_connection().in_atomic_block:
        raise IllegalTransitionError("States change inside a transaction only.")
    before = evaluation.state
    if state not in EVALUATION_TRANSITIONS[before]:
        raise IllegalTransitionError(f"Evaluation {evaluation.pk} can't go from {before} to {state}.")
    evaluation.state = state
    for name, value in fields.items():
        setattr(evaluation, name, value)
    evaluation.save(update_fields=["state", *fields])
    record(actor, f"evaluation.{state}", evaluation, before=before, step=evaluation.step)
