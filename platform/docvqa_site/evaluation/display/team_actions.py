"""What a team reads about its own submission after it was submitted: what happens now, and what it can do."""

from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.humanize.templatetags.humanize import apnumber

from docvqa_site.evaluation.display.status import STEP_NAMES
from docvqa_site.evaluation.services import may_cancel
from docvqa_site.submissions.draft_files import DraftFile, proof_of
from docvqa_site.submissions.duplicates import competing_submission, would_repeat
from docvqa_site.submissions.models import Artifact, Refund, RunState, Submission, SubmissionState
from evaluator.messages.states import FINAL_STATES

ENDED_BADLY = {RunState.REJECTED, RunState.FAILED}
# A copy of the submission as a draft: the button, and what it is for.
AGAIN = ("Try again with these files", "Fix the problem in the draft and submit it.")
REUSE = (
    "Use these files again",
    "Change what you want and submit it.",
)
COMPETE = (
    "Compete with these files",
    "The new draft counts as a real submission: add anything missing and submit it.",
)


@dataclass(frozen=True)
class TeamActions:
    """What the team can do with its submission; `news` says in sentences what happens now.

    Attributes:
        copy: The words for copying it to a draft; None where that isn't offered.
        competes_as: Of a practice submission, what was submitted for a rank with its files; None if nothing was.
        proof: The privacy proof, which a revised one may replace; None where there is nothing to revise.
        version: The number of the proof's newest version.
        staged: The number of a revised version that isn't sent yet; 0 if there is none.
    """

    news: list[str]
    may_edit: bool
    may_cancel: bool
    copy: tuple[str, str] | None
    competes_as: Submission | None
    proof: DraftFile | None
    version: int
    staged: int

    @property
    def competes(self) -> bool:
        """Whether it is copied to be submitted for a rank."""
        return self.copy is COMPETE


def team_actions_on(submission: Submission) -> TeamActions:
    """Return what the team can do with a submission of its own that isn't a draft."""
    states = [RunState(run.state) for run in submission.runs.all()]
    is_submitted = submission.state == SubmissionState.SUBMITTED
    proof = submission.proof() if is_submitted else None
    staged = Artifact.staged.filter(submission=submission).first() if is_submitted else None
    return TeamActions(
        news=news_of(submission, states) if is_submitted else [],
        may_edit=is_submitted,
        may_cancel=is_submitted and may_cancel(submission),
        copy=_copy(submission, states),
        competes_as=competing_submission(submission) if submission.practice else None,
        proof=proof_of(submission) if proof else None,
        version=proof.version if proof else 0,
        staged=staged.version if staged else 0,
    )


def _copy(submission: Submission, states: Collection[RunState]) -> tuple[str, str] | None:
    if ENDED_BADLY.intersection(states):
        return AGAIN
    if submission.state != SubmissionState.SUBMITTED:
        return REUSE
    may_compete = submission.practice and RunState.SCORED in states and not would_repeat(submission)
    return COMPETE if may_compete else None


def _visibility(submission: Submission) -> str:
    if submission.practice:
        return "Practice scores are visible only to your team and the organizers."
    if submission.is_unpublished:
        return "Scored runs are unpublished."
    return ""


def news_of(submission: Submission, states: Collection[RunState]) -> list[str]:
    """Return what happens now with a submission whose runs are in these states."""
    track, news = submission.track, []
    if not FINAL_STATES.issuperset(states):
        *steps, last = (STEP_NAMES[step].lower() for step in track.rules(track.run_budgets()[0]).steps())
        news.append(
            f"Each run goes through {', '.join(steps)} and {last}. You'll be emailed when each run finishes; you can "
            "close this page."
        )
    elif RunState.SCORED in states:
        news.append(f"The evaluation is complete. {_visibility(submission)}".strip())
    elif submission.refunded_for == Refund.REJECTED:
        news.append(f"Every run was rejected. Nothing was published, and the {submission.slot} was returned.")
    elif RunState.REJECTED in states:
        news.append(
            "Every run was rejected. Nothing was published. The submission still counts against your quota, because "
            "several slots were already returned to your team in the past 24 hours."
        )
    elif RunState.FAILED in states:
        news.append(f"The evaluation failed because of a platform error. The {submission.slot} was returned.")
    if submission.proof_rejected:
        news.append(
            "The reviewers rejected the proof, so no run has a rank. “Reviews and messages” shows why. Upload a "
            "revised proof below, or appeal there."
        )
    elif _awaits_reviewers(submission) and set(states) - ENDED_BADLY:
        once = "Once published, a scored" if submission.is_unpublished else "A scored"
        news.append(
            f"{once} run stays under review until {apnumber(track.required_reviews)} reviewers have accepted the "
            "proof. If they reject it or request changes, you'll see why and can reply or upload a revised proof."
        )
    if track.kind.scored_note and RunState.SCORED in states:
        news.append(track.kind.scored_note)
    return news


def _awaits_reviewers(submission: Submission) -> bool:
    """Return whether the proof is neither accepted nor waits for the team."""
    required = submission.track.required_reviews or 0
    return (
        bool(submission.required_proofs)
        and not submission.change_requests
        and submission.acceptances < required
    )
