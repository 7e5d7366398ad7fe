"""Which tracks an organizer sees."""

from django.db.models import Q, QuerySet

from docvqa_site.accounts.models import TRACK_ORGANIZERS, User
from docvqa_site.challenge.models import Track


def organized_tracks(organizer: User) -> QuerySet[Track]:
    """Return the tracks that `organizer` organizes, drafts included: all of them, or those that name them."""
    every = Track.with_drafts.all()
    return every.filter(organizers=organizer) if organizer.organizes_single_tracks else every


def organizers_of_all_tracks() -> QuerySet[User]:
    """Return the active people who organize every track, superusers among them."""
    backend = "django.contrib.auth.backends.ModelBackend"
    single = Q(is_superuser=False, groups__name=TRACK_ORGANIZERS)
    return User.objects.with_perm("challenge.organize", backend=backend).filter(is_staff=True).exclude(single)


def organizers_of(track: Track) -> list[User]:
    """Return the active people who organize the track, alone or among all."""
    every, single = organizers_of_all_tracks(), track.organizers.filter(is_active=True)
    return list({user.pk: user for user in (*every, *single)}.values())


def others_tracks(user: User) -> QuerySet[Track]:
    """Return the tracks that only others organize: none for an organizer of every track."""
    if not user.organizes_single_tracks:
        return Track.with_drafts.none()
    return Track.with_drafts.exclude(organizers=user)
