"""The reviewers' queue: what needs a reviewer, what waits for others, and what is decided."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from uuid import UUID

from django.db.models import Case, CharField, F, Prefetch, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Cast

from docvqa_site.accounts.models import User
from docvqa_site.proofs.named_code import named_codes
from docvqa_site.reviews import tallies
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.conflicts import Conflicts
from docvqa_site.reviews.drafts import draft_of, version_of
from docvqa_site.reviews.eligibility import may_organize
from docvqa_site.reviews.models import Decision, ProofReview, Recusal
from docvqa_site.reviews.selectors import (
    awaiting_review,
    open_appeals,
    opinions_due,
    reads_decisions,
    reviewable_submissions,
    verdict_of_counts,
    waits_for_reviewers,
)
from docvqa_site.reviews.verdict import Tally, Verdict
from docvqa_site.submissions.models import Artifact, Submission, SubmissionState
from docvqa_site.submissions.selectors import is_scored
from docvqa_site.teams.models import Team
from evaluator.messages.jobs import ArtifactKind

# How many proofs of a part are listed: the settled ones only for orientation.
PART_LENGTH, SETTLED_LENGTH = 50, 10


class Part(StrEnum):
    """The parts of the queue, in the order of the page."""

    NEEDS_ME = "needs me"
    WAITING_FOR_REVIEWERS = "waiting for reviewers"
    WAITING_FOR_TEAM = "waiting for the team"
    REJECTED = "rejected"
    DECIDED = "decided"


TITLES = {
    Part.NEEDS_ME: "Needs your review",
    Part.WAITING_FOR_REVIEWERS: "Waiting for other reviewers",
    Part.WAITING_FOR_TEAM: "Waiting for the team",
    Part.REJECTED: "Rejected",
    Part.DECIDED: "Accepted",
}
SETTLED = frozenset({Part.REJECTED, Part.DECIDED})


# What the queue says of a reviewer who stepped aside.
ASIDE: Mapping[str, str] = {
    Recusal.Why.TIME: "declined",
    Recusal.Why.FIELD: "declined",
    Recusal.Why.COORDINATION: "coordinating",
}


@dataclass(frozen=True)
class QueueEntry:
    """A submission in the queue, with its verdict and the number of flagged checks of its runs.

    Attributes:
        different: How many files that its proof cites differ from the kit's.
        reviewers: The names of those to whom the review is assigned, and, if this may be shown, who have decided.
        revision: The version of the proof, if the team has revised it.
        own: What the reviewer whose queue it is has done, in words; empty if nothing.
        due: Until when they were asked to decide, if the proof needs their decision now.
        opinion_due: Until when another reviewer can contradict its only decision, a rejection.
        changes_due: Until when the team was asked to revise the proof, if this may be shown.
        shows_verdict: Whether what others decided may be shown: only once it can no longer sway the reviewer.
        is_appealed: Whether the team's appeal is open, which its desk shows to everybody.
    """

    submission: Submission
    verdict: Verdict
    flagged: int
    different: int
    reviewers: Sequence[str]
    revision: Artifact | None
    own: str
    due: date | None
    opinion_due: date | None
    changes_due: date | None
    shows_verdict: bool
    is_appealed: bool

    @property
    def needs_another(self) -> bool:
        """Whether those who have decided don't settle it, as all who can decide were informed by email."""
        return self.verdict.is_proposal or self.verdict.is_split


@dataclass(frozen=True)
class Section:
    """One part of the queue: all of it counted, of which the first ones are listed.

    Where reviewers are still needed, its reader `may_assign` them.
    """

    part: Part
    entries: Sequence[QueueEntry]
    total: int
    may_assign: bool

    @property
    def title(self) -> str:
        """The heading of the part."""
        return TITLES[self.part]

    @property
    def unlisted(self) -> int:
        """How many of the part the page doesn't list."""
        return self.total - len(self.entries)


def queue_of(reviewer: User) -> list[Section]:
    """Return the parts of the reviewer's queue, by a number of queries that doesn't grow with the submissions."""
    conflicts = Conflicts(reviewer)
    opinions = opinions_due()
    parts = _parts(reviewer, conflicts, opinions)
    shown = [pk for first, _ in parts.values() for pk in first]
    listed = _listed(shown, reviewer)
    different = _different(listed.values())
    with_appeal = set(open_appeals().values_list("submission", flat=True))
    recused = {key: one.why for key, one in conflicts.recusals.items()}
    return [
        Section(
            part,
            [
                _entry(
                    listed[pk],
                    different[pk],
                    has_appeal=pk in with_appeal,
                    aside=recused.get(pk, ""),
                    needs_me=part is Part.NEEDS_ME,
                    opinion_due=opinions.get(pk),
                )
                for pk in first
            ],
            total,
            may_assign=may_organize(reviewer) and part not in SETTLED,
        )
        for part, (first, total) in parts.items()
    ]


def conflicts_of(reviewer: User) -> list[str]:
    """Return the titles of the submissions that the queue leaves out, since the reviewer reported a conflict."""
    reported = reviewer.recusals.filter(why=Recusal.Why.CONFLICT, submission__state=SubmissionState.SUBMITTED)
    return list(reported.values_list("submission__title", flat=True))


def waiting_for(reviewer: User, conflicts: Conflicts | None = None) -> int:
    """Return how many proofs need the reviewer's decision."""
    return awaiting_review(reviewer, conflicts).count()


def _parts(
    reviewer: User, conflicts: Conflicts, opinions: Mapping[UUID, date]
) -> dict[Part, tuple[list[UUID], int]]:
    """Return the first of every part, and how many it has; the accepted ones newest first, all others oldest first.

    What the reviewer was asked to decide by some day comes before the rest; `opinions` has the days of second opinions.
    """
    scored = reviewable_submissions(reviewer, conflicts).filter(is_scored(), state=SubmissionState.SUBMITTED)
    ordered = scored.annotate(part=_part(reviewer)).order_by("submitted_at", "pk")
    found: dict[str, list[str]] = {part: [] for part in Part}
    # As text: to make identifiers of thousands, of which the page shows few, takes longer than the query. So does to
    # let the database number them: Django writes the expression of the part once more for each use.
    for part, pk in ordered.values_list("part", Cast("pk", CharField())):
        found[part].append(pk)
    found[Part.DECIDED].reverse()
    assigned = reviewer.proof_reviews.filter(due__isnull=False)
    due = {str(pk): day for pk, day in opinions.items()}
    due |= dict(assigned.values_list(Cast("submission", CharField()), "due"))
    found[Part.NEEDS_ME].sort(key=lambda pk: due.get(pk, date.max))
    return {part: ([UUID(pk) for pk in found[part][: _length(part)]], len(found[part])) for part in Part}


def _length(part: Part) -> int:
    return SETTLED_LENGTH if part in SETTLED else PART_LENGTH


def _part(reviewer: User) -> Case:
    """Return the part of a reviewer's queue that a proof belongs to."""
    waits = waits_for_reviewers()
    done = Q(pk__in=_decided_by(reviewer).values("submission")) | Q(
        pk__in=reviewer.recusals.values("submission")
    )
    return Case(
        When(tallies.verified(F("track__required_reviews")), then=Value(Part.DECIDED.value)),
        When(waits & done, then=Value(Part.WAITING_FOR_REVIEWERS.value)),
        When(waits, then=Value(Part.NEEDS_ME.value)),
        When(tallies.rejected(), then=Value(Part.REJECTED.value)),
        default=Value(Part.WAITING_FOR_TEAM.value),
    )


def _decided_by(reviewer: User) -> QuerySet[ProofReview]:
    return ProofReview.objects.filter(reviewer=reviewer).exclude(decision=Decision.PENDING).order_by()


@dataclass(frozen=True)
class _Listed:
    """A submission that the page lists, with its reviews in the order of their numbers, and its proof.

    `own` is the review of the reviewer whose queue it is, the only one with its draft.
    """

    submission: Submission
    reviews: list[ProofReview]
    own: ProofReview | None
    proof: Artifact | None
    flagged: int


def _listed(submissions: Collection[UUID], reviewer: User) -> dict[UUID, _Listed]:
    # Of teams, tracks and reviewers there are fewer than of the rows that name them. What belongs to a submission is
    # put together here: a prefetch makes a query of its own for each of them, even though it doesn't send it.
    found = Submission.objects.filter(pk__in=submissions).annotate(
        flagged=Sum("runs__flagged_checks", default=0)
    )
    rows = found.only("title", "team", "track", "submitted_at", "practice", "proof_rejected", *Tally._fields)
    reviews, own = _reviews_of(submissions, reviewer)
    proofs = Artifact.objects.filter(
        submission__in=submissions, kind=ArtifactKind.PRIVACY_PROOF, superseded_at__isnull=True
    )
    newest = {proof.submission_id: proof for proof in proofs.select_related("upload")}
    return {
        row.pk: _Listed(
            row,
            reviews[row.pk],
            own.get(row.pk),
            newest.get(row.pk),
            row.flagged,
        )
        for row in rows.prefetch_related(Prefetch("team", Team.objects.only("name")), "track")
    }


def _reviews_of(
    submissions: Collection[UUID], reviewer: User
) -> tuple[dict[UUID, list[ProofReview]], dict[UUID, ProofReview]]:
    """Return all reviews of the submissions, and the reviewer's own, which have their drafts."""
    drafts = dict(reviewer.proof_reviews.filter(draft__isnull=False).values_list("submission", "draft"))
    written = ProofReview.objects.filter(submission__in=submissions).defer("checklist", "notes", "draft")
    reviews: dict[UUID, list[ProofReview]] = {pk: [] for pk in submissions}
    own = {}
    for review in written.prefetch_related("reviewer").order_by("pk"):
        reviews[review.submission_id].append(review)
        if review.reviewer_id == reviewer.pk:
            review.draft = drafts.get(review.submission_id)
            own[review.submission_id] = review
    return reviews, own


def _different(listed: Iterable[_Listed]) -> Counter[UUID]:
    """Return how many files that each submission's proof cites differ from the kit's."""
    uploads = {one.submission.pk: one.proof.upload for one in listed if one.proof}
    named = named_codes(uploads.values())
    return Counter({pk: len(named[one.pk].different) for pk, one in uploads.items() if one.pk in named})


def _entry(
    listed: _Listed,
    different: int,
    *,
    has_appeal: bool,
    aside: str,
    needs_me: bool,
    opinion_due: date | None,
) -> QueueEntry:
    submission, reviews, own = listed.submission, listed.reviews, listed.own
    rejections = [one.reason for one in reviews if one.decision == Decision.REJECTED]
    found = verdict_of_counts(submission, rejections)
    shows_verdict = aside == Recusal.Why.COORDINATION or reads_decisions(found, own, has_appeal=has_appeal)
    # The date would reveal that somebody requested changes.
    days = [one.changes_due for one in reviews if one.changes_due and shows_verdict and found.asks_changes]
    return QueueEntry(
        submission,
        found,
        flagged=listed.flagged,
        different=different,
        revision=listed.proof if version_of(listed.proof) > 1 else None,
        reviewers=[
            str(one.reviewer) for one in reviews if one.assigned_at or (shows_verdict and one.is_decided)
        ],
        own=ASIDE.get(aside) or _in_words(own, version_of(listed.proof)),
        due=own.due if own and needs_me else None,
        opinion_due=opinion_due if needs_me or shows_verdict else None,
        changes_due=max(days, default=None),
        shows_verdict=shows_verdict,
        is_appealed=has_appeal,
    )


def _in_words(own: ProofReview | None, version: int) -> str:
    """Return what a reviewer has done about this version of the proof: decided, begun a draft, or nothing."""
    if own is None:
        return ""
    if own.is_decided:
        return own.get_decision_display()
    if own.draft is None:
        return ""
    draft = draft_of(own, version)
    confirming = f", {draft.unconfirmed} to confirm" if draft.unconfirmed else ""
    return f"draft {draft.answered}/{len(CHECKLIST)}{confirming}"
