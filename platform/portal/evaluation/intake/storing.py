"""Stores a report, and what it says of the run's weights and token and of its worker."""

from datetime import datetime

from evaluator.messages.jobs import AccountingResult, Outcome, Step
from portal.evaluation.intake import near_copies
from portal.evaluation.intake.accounting import TeamAccounting
from portal.evaluation.intake.facts import Facts
from portal.evaluation.intake.judging import Judgement
from portal.evaluation.models import Evaluation, StepReport
from portal.evaluation.queue import breaker
from portal.submissions.models import Run
from portal.submissions.tokens import claim_token


def store(judgement: Judgement, facts: Facts, evaluation: Evaluation, run: Run, now: datetime) -> bool:
    """Store the report of a step that has ended; return whether its fault doesn't count against the run.

    The caller holds the locks of evaluation and run, which are as they were when the step ended.
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
    return breaker.note_end(evaluation, report, now, is_fault=judgement.is_fault)
