"""Carries out what follows from a report, or from its absence. The caller holds the locks of evaluation and run."""

from datetime import datetime
from typing import Any

from evaluator.messages.jobs import Step
from evaluator.messages.results import RunResults
from portal.accounts.models import User
from portal.evaluation import notifications
from portal.evaluation.examining import leakage
from portal.evaluation.intake.consequences import Consequence
from portal.evaluation.models import Evaluation, EvaluationState
from portal.evaluation.queue import dispatch
from portal.evaluation.states import move_evaluation
from portal.submissions.models import Run, RunState
from portal.submissions.services import refund, refund_rejected
from portal.submissions.states import move_run, update_results


def carry_out(consequence: Consequence, evaluation: Evaluation, run: Run, now: datetime) -> None:
    """Move the attempt and its run, notify the team if the run has ended, and begin what follows."""
    move_evaluation(evaluation, consequence.state, **consequence.fields)
    match consequence.run_state:
        case None:
            update_results(run, **consequence.run_fields)
        case state:
            move_run(run, state, **consequence.run_fields)
            if state is RunState.REJECTED:
                refund_rejected(run.submission, now)
            elif state is RunState.FAILED:
                refund(run.submission)
            notifications.notify_team(run, consequence.problems)
    if consequence.run_state is RunState.SCORED and leakage.qualifies(run, run.results):
        leakage.begin(run)
    if consequence.retry is not None:
        again = leakage.begin if evaluation.step == Step.LEAKAGE else requeue
        again(run, **consequence.retry)
    elif consequence.state is EvaluationState.QUEUED:
        dispatch.dispatch_on_commit()


def requeue(run: Run, *, actor: User | None = None, **fields: Any) -> Evaluation:
    """Queue the run again, and return its next attempt with `fields` of its row.

    A run that has a score keeps its results, and its row on the boards, until the new ones are complete.
    """
    leakage.cancel(run, actor=actor)
    results = RunResults() if run.scored_at is None else run.results
    move_run(run, RunState.QUEUED, actor=actor, results=results, pending=RunResults())
    return dispatch.start(run, **fields)
