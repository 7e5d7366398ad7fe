"""Which tracks an organizer sees."""

from django.db.models import QuerySet

from docvqa_site.accounts.models import User
from docvqa_site.challenge.models import Track


def organized_tracks(organizer: User) -> QuerySet[Track]:
    """Return the tracks that `organizer` organizes, drafts included: all of them, or those that name them."""
    every = Track.with_drafts.all()
    return every.filter(organizers=organizer) if organizer.organizes_single_tracks else every


def others_tracks(user: User) -> QuerySet[Track]:
    """Return the tracks that only others organize: none for an organizer of every track."""
    if not user.organizes_single_tracks:
        return Track.with_drafts.none()
    return Track.with_drafts.exclude(organizers=user)
