"""Every decision that was ever made on a proof, as the audit record has it: a revised proof takes them all back."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Q

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import AuditEntry
from docvqa_site.reviews.checklist import Answer
from docvqa_site.reviews.drafts import Draft
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.reviews.selectors import hidden_reviews

DECISIONS = {f"proof_review.{decision}": decision for decision in Decision if decision != Decision.PENDING}
REOPENED = "proof_review.reopened"
STANDS = "proof_review.rejection_stands"
LIFTED = "proof_review.recusal_lifted"
OBJECT_TYPE = "reviews.proofreview"


@dataclass(frozen=True)
class PastDecision:
    """A decision with what its reviewer wrote, on a version of the proof; None where the record doesn't say which.

    Attributes:
        withdrawn_at: When the reviewer declared a conflict of interest; None unless they did.
        readmitted_at: When the organizers let them review the proof again after that; None unless they did.
    """

    review: ProofReview
    decision: Decision
    at: datetime
    version: int | None
    written: Draft
    withdrawn_at: datetime | None = None
    readmitted_at: datetime | None = None


@dataclass(frozen=True)
class History:
    """The decisions on some proofs, oldest first, and when a rejection that nobody contradicted took effect."""

    decisions: list[PastDecision]
    stood: list[datetime]


def history_of(reviews: Collection[ProofReview]) -> History:
    """Return what these reviewers have decided, in one query."""
    by_key = {str(review.pk): review for review in reviews}
    entries = list(
        AuditEntry.objects.filter(
            object_type=OBJECT_TYPE, object_id__in=by_key, action__in=[*DECISIONS, REOPENED, STANDS, LIFTED]
        ).order_by("at", "pk")
    )
    made: list[PastDecision] = []
    for entry in entries:
        if entry.action in DECISIONS:
            made.append(_decision(by_key[entry.object_id], entry))
        elif entry.action == REOPENED and "version" not in entry.details:
            # Not by a revised proof, which takes all decisions back.
            last = max(at for at, one in enumerate(made) if one.review == by_key[entry.object_id])
            made[last] = replace(made[last], withdrawn_at=entry.at)
        elif entry.action == LIFTED:
            own = [at for at, one in enumerate(made) if one.review == by_key[entry.object_id]]
            if own and made[own[-1]].withdrawn_at:
                made[own[-1]] = replace(made[own[-1]], readmitted_at=entry.at)
    return History(made, [entry.at for entry in entries if entry.action == STANDS])


def hidden_decisions(*, reader: User, **_: object) -> Q | None:
    """Return the condition of the entries on decisions that `reader` may not read, or not yet; None without any.

    Receives `audit.hiding.entries_asked`. Whoever judges alone doesn't read from the audit trail either what others
    decided, or that they did.
    """
    keys = [str(key) for key in hidden_reviews(reader)]
    if not keys:
        return None
    return Q(object_type=OBJECT_TYPE, object_id__in=keys, action__in=[*DECISIONS, REOPENED, STANDS])


def last_decision(review: ProofReview) -> PastDecision | None:
    """Return what this reviewer decided last, also on an earlier version of the proof; None if they never did."""
    return next(reversed(history_of([review]).decisions), None)


def _decision(review: ProofReview, entry: AuditEntry) -> PastDecision:
    found = entry.details
    written = Draft(
        answers={key: Answer(answer) for key, answer in found.get("checklist", {}).items()},
        notes=found.get("notes", {}),
        reason=found.get("reason", ""),
        change_reason=found.get("change_reason", ""),
        changes_due=found.get("changes_due"),
        declares_no_conflict=found.get("declares_no_conflict", False),
    )
    return PastDecision(review, DECISIONS[entry.action], entry.at, found.get("version"), written)
