"""Stores a report, and carries out what follows from it, or from its absence.

The caller holds the locks of evaluation and run.
"""

from datetime import datetime
from typing import Any

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.evaluation import notifications
from docvqa_site.evaluation.examining import leakage
from docvqa_site.evaluation.intake import judgments, near_copies
from docvqa_site.evaluation.intake.accounting import TeamAccounting
from docvqa_site.evaluation.intake.consequences import Consequence
from docvqa_site.evaluation.intake.facts import Facts
from docvqa_site.evaluation.intake.judging import Judgement
from docvqa_site.evaluation.models import Evaluation, EvaluationState, StepReport
from docvqa_site.evaluation.queue import breaker, dispatch
from docvqa_site.evaluation.states import move_evaluation
from docvqa_site.evaluation.test_sets import drawn_means
from docvqa_site.submissions.models import Run, RunState
from docvqa_site.submissions.services import refund, refund_rejected
from docvqa_site.submissions.states import move_run, update_results
from docvqa_site.submissions.tokens import claim_token
from evaluator.messages.jobs import AccountingResult, Outcome, Step
from evaluator.messages.results import RunResults


def store(judgement: Judgement, facts: Facts, evaluation: Evaluation, run: Run, now: datetime) -> bool:
    """Store the report of a step that has ended; return whether its fault doesn't count against the run.

    Evaluation and run are as they were when the step ended.
    """
    report = judgement.report
    StepReport.objects.create(
        evaluation=evaluation,
        step=report.step,
        outcome=report.outcome,
        problems=[problem.model_dump(mode="json") for problem in report.problems],
        result=report.result and report.result.model_dump(mode="json"),
        detail=report.detail and report.detail.model_dump(mode="json"),
        provenance=report.provenance.model_dump(mode="json"),
        operator_trace=report.operator_trace,
        received_at=now,
    )
    match report.outcome, report.result, facts.team:
        case Outcome.PASSED, AccountingResult() as result, TeamAccounting() as team:
            claim_token(team.token, run, result.events)
    if report.sample and report.step is Step.VALIDATE and report.outcome is Outcome.PASSED:
        near_copies.store(run, report.sample, now)
    if report.step is Step.SCORING and report.outcome is Outcome.PASSED and not facts.practice:
        drawn_means.store(run, report.drawn_means)
    return breaker.note_end(evaluation, report, now, is_fault=judgement.is_fault)


def carry_out(consequence: Consequence, evaluation: Evaluation, run: Run, now: datetime) -> None:
    """Move the attempt and its run, notify the team if the run has ended, and begin what follows."""
    move_evaluation(evaluation, consequence.state, **consequence.fields)
    match consequence.run_state:
        case None:
            update_results(run, **consequence.run_fields)
        case state:
            judged = judgments.judged_before(run) if state is RunState.SCORED else ""
            inherited: dict[str, Any] = {"disqualified_because": judged} if judged else {}
            move_run(run, state, **consequence.run_fields, **inherited)
            if judged:
                record(None, "run.disqualified", run, reason=judged)
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
