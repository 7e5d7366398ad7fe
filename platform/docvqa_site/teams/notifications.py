"""What the members of a team are notified of when the team changes: in the transaction of the change."""

from django.conf import settings
from django.urls import reverse

from docvqa_site.accounts.models import User
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.teams.models import Team
from docvqa_site.teams.selectors import active_members


def notify_members(team: Team, subject: str, text: str, *, but: User | None = None) -> None:
    """Notify the team's members, all `but` the one who made the change."""
    people = active_members(team)
    notify(people.exclude(pk=but.pk) if but else people, Kind.TEAM, subject, [text, _page()])


def notify_person(person: User, subject: str, text: str) -> None:
    notify([person], Kind.TEAM, subject, [text, _page()])


def _page() -> str:
    return settings.SITE_URL + reverse("teams:mine")
