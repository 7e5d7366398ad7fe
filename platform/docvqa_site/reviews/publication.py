"""When a privacy proof and its checklist are public, and what everybody reads of the checklist then."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from docvqa_site.reviews.checklist import CHECKLIST, Answer, Group, Item
from docvqa_site.reviews.models import Decision
from docvqa_site.reviews.selectors import verdict_on
from docvqa_site.reviews.verdict import ResultStatus
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.submissions.selectors import visible_submissions


def is_public(
    *, consents: bool, status: ResultStatus, state: SubmissionState, is_visible: bool, is_named: bool
) -> bool:
    """Return whether everybody may read the newest proof of a submission, and the answers to the checklist.

    Args:
        consents: The team agrees.
        status: That of its results, which a revised proof takes back to provisional.
        state: Of the submission.
        is_visible: Whether everybody may see the submission itself.
        is_named: Whether its team is, which the proof may name too.
    """
    may_be = consents and is_visible and is_named
    return may_be and state is SubmissionState.SUBMITTED and status is ResultStatus.VERIFIED


def public_proof_url(submission: Submission, status: ResultStatus) -> str:
    """Return the address of the public proof; empty unless it is public. At most one query."""
    public = is_public(
        consents=submission.publishes_proof,
        status=status,
        state=SubmissionState(submission.state),
        is_visible=submission.publishes_proof and _is_visible(submission),
        is_named=not submission.anonymous,
    )
    return reverse("submissions:proof", args=[submission.pk]) if public else ""


def proof_note(submission: Submission) -> str:
    """Return who may read a proof that isn't public, and whether it will be; empty where no proof is required."""
    if submission.track.reviews_needed is None or submission.practice:
        return ""
    if not submission.publishes_proof:
        return (
            "Only reviewers and organizers can read the proof submitted with this method; the team has not agreed to "
            "publish it."
        )
    return (
        "Only reviewers and organizers can read the proof submitted with this method until enough reviewers have "
        "accepted it; the team has agreed to publish it then."
    )


def has_public_proof(submission: Submission) -> bool:
    """Return whether everybody may read the proof now."""
    return bool(public_proof_url(submission, verdict_on(submission).status))


@dataclass(frozen=True)
class PublicItem:
    """An item of the checklist with the answer of each reviewer who accepted the proof; empty for none."""

    item: Item
    answers: Sequence[str]


@dataclass(frozen=True)
class PublicChecklist:
    """The checklist by groups. Of reviewers it has their number alone, of what they wrote the answers alone."""

    reviewers: Sequence[str]
    groups: Sequence[tuple[Group, Sequence[PublicItem]]]


def public_checklist(submission: Submission) -> PublicChecklist:
    """Return what everybody reads of the checklist; who is Reviewer 1 follows from the time of their decisions."""
    accepted = submission.reviews.filter(decision=Decision.ACCEPTED).order_by("decided_at", "pk")
    answers = [_answers(found) for found in accepted.values_list("checklist", flat=True)]
    groups = [
        (
            group,
            [
                PublicItem(item, [given.get(item.key, "") for given in answers])
                for item in CHECKLIST
                if item.group == group
            ],
        )
        for group in Group
    ]
    return PublicChecklist([f"Reviewer {number}" for number, _ in enumerate(answers, 1)], groups)


def _answers(checklist: object) -> dict[str, str]:
    """Return the answers of one reviewer. Whatever else is stored with them stays where it is."""
    if not isinstance(checklist, dict):
        return {}
    known = set(Answer)
    return {key: value for key, value in checklist.items() if isinstance(value, str) and value in known}


def _is_visible(submission: Submission) -> bool:
    return visible_submissions(AnonymousUser()).filter(pk=submission.pk).exists()
