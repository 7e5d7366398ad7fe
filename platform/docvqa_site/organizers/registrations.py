"""The registrations that an organizer decides on."""

from django.db.models import Case, QuerySet, When

from docvqa_site.accounts.models import User
from docvqa_site.challenge.models import RegistrationState, TeamRegistration
from docvqa_site.challenge.selectors import organized_tracks


def registrations_for(organizer: User) -> QuerySet[TeamRegistration]:
    """Return the registrations for the tracks of the organizer, those that wait first."""
    found = TeamRegistration.objects.filter(track__in=organized_tracks(organizer).order_by())
    waiting_first = Case(When(state=RegistrationState.WAITING, then=0), default=1)
    return found.select_related("team", "track", "created_by").order_by(waiting_first, "-created_at", "-pk")


def waiting_registrations(organizer: User) -> QuerySet[TeamRegistration]:
    """Return those of them that wait to be admitted or declined."""
    return registrations_for(organizer).filter(state=RegistrationState.WAITING)
