"""What the site knows of a run when a report on one of its steps arrives: all that is read to judge it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from docvqa_site.evaluation.examining.trust import Failure, Trust, earned, failure
from docvqa_site.evaluation.intake.accounting import TeamAccounting, look_up_team
from docvqa_site.evaluation.intake.challenge_checks import check_indexes
from docvqa_site.evaluation.inventories import stock
from docvqa_site.evaluation.models import Evaluation, TestSet
from docvqa_site.submissions.models import Run
from evaluator.errors import Problem
from evaluator.messages.jobs import (
    AccountingResult,
    ArtifactKind,
    Check,
    CommunicationResult,
    Outcome,
    ScoringResult,
    Step,
    TrackRules,
    WorkerReport,
)
from evaluator.messages.rankings import COUNTED
from evaluator.messages.results import RunResults


@dataclass(frozen=True)
class Facts:
    """What is known of a run and its attempt, apart from the report.

    Attributes:
        later_steps: The steps of the evaluation that follow this one.
        renewals: How often the step was sent again because its files' addresses had expired.
        rejections: What earlier steps of the attempt were rejected for; None if none was.
        results: Those of the attempt's earlier steps.
        published: The results with which the run is listed.
        checkpoint_sha256: None where the run has no checkpoint.
        trust: What the run has earned if it is scored now.
        failure: The examination that takes its rank; None if none does.
        test_set: The test set by its name; None unless the report is on a score.
        practice: Whether the submission is for practice.
        team: Of an accounting, what the team's other trainings add to it, or what is wrong with its token and key.
        indexes: Of counted bytes of which rounds were drawn, the check on the team's other indexes.
    """

    rules: TrackRules
    later_steps: Sequence[Step]
    renewals: int
    rejections: Sequence[Problem] | None
    results: RunResults
    published: RunResults
    checkpoint_sha256: str | None
    trust: Trust
    failure: Failure | None = None
    test_set: TestSet | None = None
    practice: bool = False
    team: TeamAccounting | Sequence[Problem] = ()
    indexes: Check | None = None


def gather(evaluation: Evaluation, run: Run, report: WorkerReport, now: datetime) -> Facts:
    """Return what is known when the report arrives. The caller holds the locks of the attempt and of its run.

    The first score on a test set fixes its content.
    """
    rules = TrackRules.model_validate(run.rules)
    result = report.result if report.outcome is Outcome.PASSED else None
    examinations = list(run.examinations.all())
    is_accounted = isinstance(result, AccountingResult) and rules.privacy is not None
    return Facts(
        rules=rules,
        later_steps=_later_steps(rules, report.step),
        renewals=evaluation.renewals,
        rejections=_rejections(evaluation),
        results=run.attempt_results,
        published=run.results,
        checkpoint_sha256=_checkpoint_sha256(run),
        trust=earned(now, examinations),
        failure=failure(examinations),
        test_set=_test_set(rules.test_set, result) if isinstance(result, ScoringResult) else None,
        practice=run.submission.practice,
        indexes=check_indexes(run)
        if isinstance(result, CommunicationResult) and result.counting == COUNTED
        else None,
        team=look_up_team(run, result) if is_accounted and isinstance(result, AccountingResult) else (),
    )


def _later_steps(rules: TrackRules, step: Step) -> list[Step]:
    steps = rules.steps()
    return steps[steps.index(step) + 1 :] if step in steps else []


def _rejections(evaluation: Evaluation) -> list[Problem] | None:
    rejected = list(evaluation.reports.filter(outcome=Outcome.REJECTED).values_list("problems", flat=True))
    if not rejected:
        return None
    return [Problem.model_validate(problem) for problems in rejected for problem in problems]


def _checkpoint_sha256(run: Run) -> str | None:
    if run.submission.track.is_draft:
        # The test of a draft: the workers' own base weights.
        held = stock().references.get(run.submission.track.reference)
        return held.sha256 if held else None
    checkpoints = run.artifacts.filter(kind=ArtifactKind.CHECKPOINT)
    return checkpoints.values_list("upload__sha256", flat=True).first()


def _test_set(name: str, result: ScoringResult) -> TestSet:
    split = result.split
    found = {
        "sha256": result.test_set_sha256,
        "split_sha256": split.sha256 if split else "",
        "private_fraction": split and split.private_fraction,
    }
    # Nobody reveals its private part meanwhile: that waits for the lock of the run, which the caller holds.
    test_set, _ = TestSet.objects.get_or_create(name=name, defaults=found)
    return test_set
