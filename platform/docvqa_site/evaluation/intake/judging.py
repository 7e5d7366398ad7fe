"""What a report means for its run: functions of values, which neither read nor write the database."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from docvqa_site.evaluation.examining.trust import with_trust
from docvqa_site.evaluation.intake.accounting import TeamAccounting
from docvqa_site.evaluation.intake.challenge_checks import with_index_check
from docvqa_site.evaluation.intake.facts import Facts
from docvqa_site.evaluation.intake.report_checks import faults
from docvqa_site.evaluation.test_sets.parts import stored_scores, with_practice_scores
from evaluator.errors import ErrorCode, Problem
from evaluator.messages.jobs import (
    AccountingResult,
    CommunicationResult,
    Outcome,
    ScoringResult,
    Step,
    WorkerReport,
)
from evaluator.messages.results import RunResults

logger = logging.getLogger(__name__)

# A step whose addresses are rejected more often than this failed: the store doesn't take them at all.
MAX_RENEWALS = 3
CHECKPOINT_CODES = "E_CHECKPOINT"


@dataclass(frozen=True)
class Judgement:
    """What a report means.

    Attributes:
        report: The report as it is stored: with the site's own outcome and problems where they differ.
        results: Those of the attempt, with the step's.
        rejections: What the participant must fix, in this step and earlier ones; None if nothing was rejected.
        next_step: The step that follows; None after the last one, and where the attempt ends.
        renews: Whether the step is sent again as it is, with new addresses of its files; then nothing is stored.
    """

    report: WorkerReport
    results: RunResults
    rejections: Sequence[Problem] | None = None
    next_step: Step | None = None
    renews: bool = False

    @property
    def is_fault(self) -> bool:
        """Whether the step is tried again: nothing about leakage is for the team of a scored run to fix."""
        outcome = self.report.outcome
        return outcome is Outcome.FAILED or (
            self.report.step is Step.LEAKAGE and outcome is not Outcome.PASSED
        )


def judge(report: WorkerReport, facts: Facts) -> Judgement:
    """Return what the report means for a run of which the site knows these facts."""
    if _has_expired_address(report, facts):
        return Judgement(report, facts.results, renews=True)
    report = _with_own_outcome(_without_faults(report, facts), facts)
    rejections = _rejections(report, facts)
    step = _next_step(report, facts, is_rejected=rejections is not None)
    is_last = step is None and rejections is None
    return Judgement(report, _results(report, facts, is_last=is_last), rejections, step)


def _has_expired_address(report: WorkerReport, facts: Facts) -> bool:
    codes = {problem.code for problem in report.problems}
    is_expired = report.outcome is Outcome.FAILED and ErrorCode.ARTIFACT_URL in codes
    return is_expired and facts.renewals < MAX_RENEWALS


def _without_faults(report: WorkerReport, facts: Facts) -> WorkerReport:
    """Return the report, as one of a platform fault if its result can't be true of the run."""
    found = faults(report, facts) if report.outcome is Outcome.PASSED else []
    if not found:
        return report
    text = f"The site doesn't believe {report.provenance.worker}: " + "; ".join(found)
    logger.error("Evaluation %s, step %s: %s", report.evaluation, report.step, text)
    return report.model_copy(
        update={
            "outcome": Outcome.FAILED,
            "problems": [Problem.of(ErrorCode.PLATFORM_FAULT)],
            "result": None,
            "detail": None,
            "operator_trace": text,
        }
    )


def _with_own_outcome(report: WorkerReport, facts: Facts) -> WorkerReport:
    """Return the report with what its outcome and problems are for the run.

    The site may reject what the worker accepted. A step of a run that is rejected already has run only to find what
    else is wrong. It says nothing of the checkpoint, which the validation has reported on, and what it can't do with
    rejected files is no platform fault. Leakage is measured of a run that has its score, so none of this applies.
    """
    if report.outcome is Outcome.PASSED:
        if isinstance(report.result, AccountingResult) and not isinstance(facts.team, TeamAccounting):
            return _rejected(report, facts.team)
        return report
    if facts.rejections is None or report.step is Step.LEAKAGE:
        return report
    if report.outcome is Outcome.FAILED:
        return _rejected(report, [])
    new = [problem for problem in report.problems if not problem.code.startswith(CHECKPOINT_CODES)]
    return _rejected(report, new)


def _rejected(report: WorkerReport, problems: Sequence[Problem]) -> WorkerReport:
    return report.model_copy(update={"outcome": Outcome.REJECTED, "problems": list(problems)})


def _rejections(report: WorkerReport, facts: Facts) -> list[Problem] | None:
    if report.step is Step.LEAKAGE or report.outcome is Outcome.FAILED:
        return None
    if report.outcome is Outcome.PASSED and facts.rejections is None:
        return None
    # One that passed may have problems to no effect.
    return [*(facts.rejections or []), *report.problems]


def _next_step(report: WorkerReport, facts: Facts, *, is_rejected: bool) -> Step | None:
    """Return the step that follows.

    After a rejection every step that only reads files runs, so that one notification names all that is wrong.
    """
    if report.outcome is Outcome.FAILED or not facts.later_steps:
        return None
    step = facts.later_steps[0]
    return None if is_rejected and step is Step.SCORING else step


def _results(report: WorkerReport, facts: Facts, *, is_last: bool) -> RunResults:
    """Return the results with those of the step, if it has passed."""
    before = facts.published if report.step is Step.LEAKAGE else facts.results
    if report.outcome is not Outcome.PASSED or report.result is None:
        return before
    results = before.including(report.result)
    match report.result, facts.team:
        case AccountingResult() as result, TeamAccounting() as team:
            return results.model_copy(
                update={
                    "joint_epsilon": team.joint.epsilon,
                    "joint_runs": team.joint.trainings,
                    "checks": [*results.checks, team.challenges, team.joint.check(result.delta)],
                }
            )
        case CommunicationResult(), _ if facts.indexes is not None:
            results = with_index_check(results, facts.indexes)
        case ScoringResult(), _:
            is_revealed = facts.test_set is not None and facts.test_set.revealed_at is not None
            results = stored_scores(results, report.scoring_detail, is_revealed=is_revealed)
            if facts.practice:
                results = with_practice_scores(results)
    if not is_last or report.step is Step.LEAKAGE:
        return results
    # The files are the same, so what was examined and measured of them stays.
    examined = with_trust(results, facts.trust, facts.failure)
    return examined.model_copy(update={"leakage": facts.published.leakage})
