"""The reviewers' queue: what needs a reviewer, what waits for others, and what is decided."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from uuid import UUID

from django.db.models import Prefetch, QuerySet

from portal.accounts.models import User
from portal.reviews.models import Decision, ProofReview
from portal.reviews.selectors import awaiting_review, open_appeals, reviewable_submissions, verdict_on
from portal.reviews.tallies import tallied
from portal.reviews.verdict import ResultStatus, Tally, Verdict, verdict_of
from portal.submissions.models import Run, Submission, SubmissionState
from portal.submissions.results_field import FlaggedChecks

PART_LENGTH = 50


class Part(StrEnum):
    """The parts of the queue, in the order of the page."""

    NEEDS_ME = "needs me"
    WAITING_FOR_REVIEWERS = "waiting for reviewers"
    WAITING_FOR_TEAM = "waiting for the team"
    DECIDED = "decided"


TITLES = {
    Part.NEEDS_ME: "Needs your review",
    Part.WAITING_FOR_REVIEWERS: "Waiting for other reviewers",
    Part.WAITING_FOR_TEAM: "Waiting for the team",
    Part.DECIDED: "Accepted",
}


@dataclass(frozen=True)
class Entry:
    """A submission in the queue, with its verdict and the number of flagged checks of its runs.

    Attributes:
        reviewers: The names of those to whom the review is assigned.
        due: Until when the reviewer whose queue it is was asked to decide.
        shows_verdict: Whether what others decided may be shown: only once it can no longer sway the reviewer.
    """

    submission: Submission
    verdict: Verdict
    flagged: int
    reviewers: Sequence[str]
    due: date | None
    changes_due: date | None
    shows_verdict: bool


@dataclass(frozen=True)
class Section:
    """One part of the queue: all of it counted, at most `PART_LENGTH` of it listed."""

    part: Part
    entries: Sequence[Entry]
    total: int

    @property
    def title(self) -> str:
        """The heading of the part."""
        return TITLES[self.part]

    @property
    def unlisted(self) -> int:
        """How many of the part the page doesn't list."""
        return self.total - len(self.entries)


def part_of(found: Verdict, *, has_decided: bool, is_appealed: bool = False) -> Part:
    """Return the part of a reviewer's queue that a proof with this verdict belongs to.

    `selectors.awaiting_decisions` has the same rule in SQL.

    Args:
        has_decided: Whether the reviewer has.
        is_appealed: Whether an appeal of the team is open.
    """
    waits_for_reviewers = Part.WAITING_FOR_REVIEWERS if has_decided else Part.NEEDS_ME
    match found.status:
        case ResultStatus.PROVISIONAL:
            return Part.WAITING_FOR_TEAM if found.asks_changes else waits_for_reviewers
        case ResultStatus.VERIFIED | ResultStatus.SCORED:
            return Part.DECIDED
        case _:
            return waits_for_reviewers if is_appealed else Part.WAITING_FOR_TEAM


def queue_of(reviewer: User) -> list[Section]:
    """Return the parts of the reviewer's queue, by a number of queries that doesn't grow with the submissions."""
    decided = _decided_by(reviewer)
    parts = _parts(_without_reasons(reviewer), decided)
    shown = [pk for pks in parts.values() for pk in pks[:PART_LENGTH]]
    listed, flagged = _listed(shown), _flagged(shown)
    return [
        Section(
            part,
            [
                _entry(listed[pk], flagged[pk], reviewer, has_decided=pk in decided)
                for pk in pks[:PART_LENGTH]
            ],
            len(pks),
        )
        for part, pks in parts.items()
    ]


def waiting_for(reviewer: User) -> int:
    """Return how many proofs need the reviewer's decision."""
    return awaiting_review(reviewer).count()


def _without_reasons(reviewer: User) -> dict[UUID, Verdict]:
    """Return the verdict on each proof, oldest first, from counts: the reasons of thousands are read by nobody."""
    scored = reviewable_submissions(reviewer).filter(state=SubmissionState.SUBMITTED, pk__in=_scored())
    rows = tallied(scored).order_by("submitted_at", "pk")
    columns = ("pk", "track__required_reviews", "accepted", "rejected", "changes")
    return {
        pk: verdict_of(Tally(accepted, rejected, changes), required, [])
        for pk, required, accepted, rejected, changes in rows.values_list(*columns)
    }


def _parts(verdicts: Mapping[UUID, Verdict], decided: Collection[UUID]) -> dict[Part, list[UUID]]:
    """Return the submissions of every part, those that wait oldest first, the accepted ones newest first."""
    parts: dict[Part, list[UUID]] = {part: [] for part in Part}
    appealed = set(open_appeals().values_list("submission_id", flat=True))
    for pk, found in verdicts.items():
        parts[part_of(found, has_decided=pk in decided, is_appealed=pk in appealed)].append(pk)
    parts[Part.DECIDED].reverse()
    return parts


def _scored() -> "QuerySet[Run, UUID]":
    return Run.objects.filter(scored_at__isnull=False).values_list("submission", flat=True)


def _decided_by(reviewer: User) -> set[UUID]:
    reviews = ProofReview.objects.filter(reviewer=reviewer).exclude(decision=Decision.PENDING)
    return set(reviews.values_list("submission_id", flat=True))


def _listed(submissions: Collection[UUID]) -> dict[UUID, Submission]:
    rows = Submission.objects.filter(pk__in=submissions).select_related("team", "track")
    rows = rows.defer("description", "track__description")
    reviews = ProofReview.objects.select_related("reviewer").defer("checklist", "notes", "draft")
    rows = rows.prefetch_related(Prefetch("reviews", reviews.order_by("pk")))
    return {submission.pk: submission for submission in rows}


def _flagged(submissions: Collection[UUID]) -> Counter[UUID]:
    """Return how many checks of each submission's runs are flagged, without loading what the checks found."""
    flagged: Counter[UUID] = Counter()
    runs = Run.objects.filter(submission__in=submissions).values_list("submission", FlaggedChecks("results"))
    for submission, count in runs:
        flagged[submission] += count or 0
    return flagged


def _entry(submission: Submission, flagged: int, reviewer: User, *, has_decided: bool) -> Entry:
    reviews, found = list(submission.reviews.all()), verdict_on(submission)
    own = next((review for review in reviews if review.reviewer_id == reviewer.pk), None)
    return Entry(
        submission,
        found,
        flagged=flagged,
        reviewers=[str(review.reviewer) for review in reviews if review.assigned_at],
        due=own.due if own and not own.is_decided else None,
        changes_due=max((review.changes_due for review in reviews if review.changes_due), default=None),
        shows_verdict=has_decided or found.status is ResultStatus.VERIFIED,
    )
