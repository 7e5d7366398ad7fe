"""The rules of `portal.reviews.verdict` in SQL, for boards and queues that select by a verdict."""

from typing import Any

from django.db.models import Count, F, Q, QuerySet

from portal.challenge.models import Track
from portal.reviews.models import Decision, ProofReview
from portal.submissions.models import Submission


def tallied(submissions: "QuerySet[Submission, Any]") -> "QuerySet[Submission, Any]":
    """Return the submissions with the counts of a `Tally`: `accepted`, `rejected` and `changes`."""

    def count(decision: Decision) -> Count:
        return Count("reviews", filter=Q(reviews__decision=decision))

    return submissions.annotate(
        accepted=count(Decision.ACCEPTED),
        rejected=count(Decision.REJECTED),
        changes=count(Decision.CHANGES_REQUESTED),
    )


def rejected() -> Q:
    """Return the condition on a tally that the proof is rejected, as `status_of` decides it."""
    return Q(rejected__gte=1, accepted=0, changes=0) | Q(Q(rejected__gte=2), rejected__gte=F("accepted"))


def verified(required: int | F) -> Q:
    """Return the condition on a tally that the result is verified, as `status_of` decides it."""
    outnumbers = Q(accepted__gt=F("rejected") + F("changes")) | Q(rejected=0, changes=0)
    return Q(~rejected(), outnumbers, accepted__gte=required)


def rejected_in(track: Track) -> "QuerySet[Submission, Any]":
    """Return the keys of the track's submissions whose proof is rejected."""
    return tallied(_with(track, Decision.REJECTED)).filter(rejected()).values("pk")


def verified_in(track: Track) -> "QuerySet[Submission, Any]":
    """Return the keys of the track's submissions whose results are verified."""
    found = _with(track, Decision.ACCEPTED) if track.required_reviews else _all_in(track)
    return tallied(found).filter(verified(track.required_reviews)).values("pk")


def _with(track: Track, decision: Decision) -> "QuerySet[Submission, Any]":
    """Return those without which there is no such verdict, so that the reviews of few are counted."""
    decided = ProofReview.objects.filter(decision=decision).values("submission")
    return _all_in(track).filter(pk__in=decided)


def _all_in(track: Track) -> "QuerySet[Submission, Any]":
    return Submission.objects.filter(track=track).order_by().values("pk")
