"""What reviewers decided, as others read it: by the reviewer's number, with the reason and the notes."""

from dataclasses import dataclass
from datetime import date, datetime

from portal.accounts.models import User
from portal.reviews.drafts import decided_draft
from portal.reviews.models import Decision
from portal.reviews.selectors import has_decided, reviewer_numbers
from portal.reviews.services import DECIDED
from portal.submissions.models import Submission


@dataclass(frozen=True)
class ShownDecision:
    """One reviewer's decision; `remarks` are question, answer and note of each item with a note."""

    reviewer: str
    words: str
    at: datetime | None
    reason: str
    changes_due: date | None
    remarks: list[tuple[str, str, str]]


def decisions_for_team(submission: Submission) -> list[ShownDecision]:
    """Return the decisions on the newest version of the proof, as its team reads them."""
    numbers = reviewer_numbers(submission)
    return [
        ShownDecision(
            f"Reviewer {numbers[review.reviewer_id]}",
            f"{DECIDED[Decision(review.decision)]} the proof",
            review.decided_at,
            review.reason,
            review.changes_due,
            decided_draft(review).remarks,
        )
        for review in submission.reviews.exclude(decision=Decision.PENDING).order_by("decided_at", "pk")
    ]


def decisions_for_reviewer(submission: Submission, reviewer: User) -> list[ShownDecision]:
    """Return the same for a reviewer who has decided; nothing before that, so that each judges alone."""
    return decisions_for_team(submission) if has_decided(submission, reviewer) else []
