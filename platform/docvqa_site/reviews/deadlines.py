"""How long reviews, and revisions of proofs, may take."""

from datetime import date, timedelta

from django.utils import timezone

# Within which a proof should be decided on.
REVIEW_TIME = timedelta(days=14)
# Within which another reviewer may contradict a rejection before it takes the rank.
SECOND_OPINION_TIME = timedelta(days=7)
# The farthest day that reviewers and teams are given.
MAX_TIME = timedelta(days=90)


def default_due() -> date:
    """Return the day until which a review that begins now is expected."""
    return timezone.now().date() + REVIEW_TIME


def is_in_reach(due: date | None) -> bool:
    """Return whether a day may be given: from tomorrow on, and not too far away."""
    today = timezone.now().date()
    return due is not None and today < due <= today + MAX_TIME
