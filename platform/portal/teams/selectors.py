"""Queries about teams."""

from django.db.models import QuerySet
from django.utils import timezone

from portal.accounts.models import User
from portal.teams.models import Invitation, Membership, Team, TeamKey


def membership_of(user: User) -> Membership | None:
    """Return the user's membership in their team; None without a team."""
    return Membership.objects.select_related("team").filter(user=user).first()


def team_of(user: User) -> Team | None:
    """Return the user's team; None without one."""
    membership = membership_of(user)
    return membership.team if membership else None


def members(team: Team) -> QuerySet[Membership]:
    """Return the team's memberships with their users."""
    return team.memberships.select_related("user")


def open_invitations(team: Team) -> QuerySet[Invitation]:
    """Return the invitations that can still be accepted or revoked, expired ones included until they are renewed."""
    return (
        team.invitations.filter(accepted_at__isnull=True, revoked_at__isnull=True)
        .select_related("invited_by")
        .order_by("-created_at")
    )


def keys_of(team: Team) -> QuerySet[TeamKey]:
    """Return the team's keys, including revoked ones, in the order in which they were registered."""
    return team.keys.select_related("added_by")


def current_keys(team: Team) -> QuerySet[TeamKey]:
    """Return the keys that may sign the team's records."""
    return team.keys.filter(revoked_at__isnull=True)


def invitation_by_secret(secret: str) -> Invitation | None:
    """Return the invitation with this `secret` in its link, if it can be accepted now."""
    return (
        Invitation.objects.select_related("team", "invited_by")
        .filter(
            digest=Invitation.digest_of(secret),
            accepted_at__isnull=True,
            revoked_at__isnull=True,
            expires_at__gt=timezone.now(),
        )
        .first()
    )
