"""The states of evaluations and examinations: the allowed transitions, which `audit.transitions.move` makes.

The movers set `fields` with the state. Their callers hold the row's lock, and they raise `IllegalTransitionError` as
`move`.
"""

from typing import Any

from docvqa_site.accounts.models import User
from docvqa_site.audit.transitions import Transitions, move
from docvqa_site.evaluation.models import Evaluation, EvaluationState, Examination, ExaminationState

EVALUATION_TRANSITIONS: Transitions = {
    EvaluationState.QUEUED: frozenset({EvaluationState.RUNNING, EvaluationState.CANCELED}),
    EvaluationState.RUNNING: frozenset(
        {
            # A step has passed, and the next one waits for a worker.
            EvaluationState.QUEUED,
            EvaluationState.PASSED,
            EvaluationState.REJECTED,
            EvaluationState.FAILED,
            EvaluationState.LOST,
            # Leakage is measured, and the run is evaluated again.
            EvaluationState.CANCELED,
        }
    ),
    EvaluationState.PASSED: frozenset(),
    EvaluationState.REJECTED: frozenset(),
    EvaluationState.FAILED: frozenset(),
    EvaluationState.LOST: frozenset(),
    EvaluationState.CANCELED: frozenset(),
}

EXAMINATION_TRANSITIONS: Transitions = {
    ExaminationState.QUEUED: frozenset({ExaminationState.RUNNING, ExaminationState.CANCELED}),
    ExaminationState.RUNNING: frozenset(
        {
            ExaminationState.PASSED,
            ExaminationState.FAILED,
            ExaminationState.BROKEN,
            ExaminationState.CANCELED,
        }
    ),
    ExaminationState.PASSED: frozenset(),
    ExaminationState.FAILED: frozenset(),
    ExaminationState.BROKEN: frozenset(),
    ExaminationState.CANCELED: frozenset(),
}


def move_evaluation(
    evaluation: Evaluation, state: EvaluationState, *, actor: User | None = None, **fields: Any
) -> None:
    move(evaluation, state, EVALUATION_TRANSITIONS, actor, fields, step=fields.get("step", evaluation.step))


def move_examination(
    examination: Examination, state: ExaminationState, *, actor: User | None = None, **fields: Any
) -> None:
    move(examination, state, EXAMINATION_TRANSITIONS, actor, fields, level=examination.level)
