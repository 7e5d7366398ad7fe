"""Queries about teams."""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import verified_addresses
from docvqa_site.teams.models import OPEN, Invitation, Membership, PastMembership, Role, Team, TeamKey

# Who has founded so many teams within the window waits until the oldest of them leaves it.
FOUNDINGS = 3
FOUNDING_WINDOW = timedelta(days=30)


def membership_of(user: User) -> Membership | None:
    return Membership.objects.select_related("team").filter(user=user).first()


def team_of(user: User) -> Team | None:
    membership = membership_of(user)
    return membership.team if membership else None


def members(team: Team) -> QuerySet[Membership]:
    return team.memberships.select_related("user")


def active_members(team: Team) -> QuerySet[User]:
    """Return the members who can log in, whom the team's notifications go to."""
    return User.objects.filter(membership__team=team, is_active=True)


def teams_without_owner() -> QuerySet[Team]:
    """Return the teams with members and no owner who can log in: nobody there can invite, remove or hand over."""
    active = Membership.objects.filter(team=OuterRef("pk"), user__is_active=True)
    return Team.objects.filter(Exists(active), ~Exists(active.filter(role=Role.OWNER)))


def researchers(team: Team) -> list[User]:
    """Return the members who show their ORCID iD, in the order in which they joined."""
    shown = User.objects.filter(membership__team=team, shows_orcid=True).exclude(orcid="")
    return list(shown.order_by("membership__joined_at", "pk"))


def owns(user: User, team: Team) -> bool:
    return team.memberships.filter(user=user, role=Role.OWNER).exists()


def teams_ever_of(user: User) -> QuerySet[Team]:
    return Team.objects.filter(Q(memberships__user=user) | Q(past_memberships__user=user)).distinct()


def teams_sharing_people(team: int) -> set[int]:
    """Return the keys of this team and of all others that somebody is or was in who is or was in it."""
    people = User.objects.filter(Q(membership__team=team) | Q(past_memberships__team=team))
    current = Membership.objects.filter(user__in=people).values_list("team", flat=True)
    past = PastMembership.objects.filter(user__in=people).values_list("team", flat=True)
    return {team, *current, *past}


def next_founding(user: User, now: datetime) -> datetime | None:
    """Return when the user may found a team again; None when they may now."""
    recent = Team.objects.filter(founder=user, created_at__gt=now - FOUNDING_WINDOW).order_by("-created_at")
    times = list(recent.values_list("created_at", flat=True)[:FOUNDINGS])
    return None if len(times) < FOUNDINGS else times[-1] + FOUNDING_WINDOW


def open_invitations(team: Team) -> QuerySet[Invitation]:
    """Return the invitations that can still be accepted or revoked, expired ones included until they are renewed."""
    return team.invitations.filter(OPEN).select_related("invited_by").order_by("-created_at")


def invitations_to(user: User) -> QuerySet[Invitation]:
    """Return the invitations to verified addresses of the user that can be accepted now, the newest first."""
    return _acceptable().filter(email__in=[email.lower() for email in verified_addresses(user)])


def keys_of(team: Team) -> QuerySet[TeamKey]:
    """Return the team's keys, including revoked ones, in the order in which they were registered."""
    return team.keys.select_related("added_by")


def current_keys(team: Team) -> QuerySet[TeamKey]:
    """Return the keys that may sign the team's records."""
    return team.keys.filter(revoked_at__isnull=True)


def invitation_by_secret(secret: str) -> Invitation | None:
    """Return the invitation with this `secret` in its link, if it can be accepted now."""
    return _acceptable().filter(digest=Invitation.digest_of(secret)).first()


def _acceptable() -> QuerySet[Invitation]:
    found = Invitation.objects.filter(OPEN, expires_at__gt=timezone.now())
    return found.select_related("team", "invited_by").order_by("-created_at")
