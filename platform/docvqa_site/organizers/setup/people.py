"""Invitations of reviewers, and of organizers of a track or of all."""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import Q, QuerySet
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.groups import GROUPS, ORGANIZERS, REVIEWERS
from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import owns_verified_address
from docvqa_site.accounts.services import make_organizer, make_reviewer, make_track_organizer
from docvqa_site.audit.models import personal, record
from docvqa_site.challenge.models import StaffInvitation, StaffRole, Track
from docvqa_site.challenge.selectors import organizers_of_all_tracks
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.reviews.selectors import reviewers
from docvqa_site.submissions.selectors import competed_tracks

# The groups by which people have a role in every track.
GROUP_OF = {StaffRole.REVIEWER: REVIEWERS, StaffRole.ALL_TRACKS: ORGANIZERS}
# What follows for somebody whose team has submissions in the track.
COMPETES = "Whoever competes in a track can't see or judge its submissions, or change its rules."


def competed_in(person: User | None, invitation: StaffInvitation) -> list[Track]:
    """Return in which of the tracks that an invitation is about, all or one, the person competes."""
    if person is None:
        return []
    found = competed_tracks(person)
    return list(found.filter(pk=invitation.track_id) if invitation.is_of_one_track else found)


def invitations_for(track: Track, organizer: User) -> QuerySet[StaffInvitation]:
    """Return the pending invitations that are about the track; those of organizers of one track, from it alone."""
    found = StaffInvitation.objects.filter(accepted_at=None).select_related("track")
    if organizer.organizes_single_tracks:
        return found.filter(track=track)
    return found.filter(Q(track=track) | ~Q(role=StaffRole.ORGANIZER))


def has_role(person: User, role: StaffRole, track: Track) -> bool:
    """Return whether the person has the role that an invitation gives; as organizer of one track, in this one."""
    match role:
        case StaffRole.REVIEWER:
            return person in reviewers(include_superusers=False)
        case StaffRole.ALL_TRACKS:
            return person in organizers_of_all_tracks()
    return person in track.organizers.all()


def pending(email: str, role: StaffRole, track: Track) -> QuerySet[StaffInvitation]:
    """Return the open invitations that another one of this address to this role would replace."""
    found = StaffInvitation.objects.filter(email=email.lower(), role=role, accepted_at=None)
    return found.filter(track=track) if role == StaffRole.ORGANIZER else found


@transaction.atomic
def invite(track: Track, email: str, role: StaffRole, *, by: User) -> StaffInvitation:
    """Invite whoever has this address; the mail is part of the transaction. An open invitation is replaced."""
    pending(email, role, track).delete()
    email = email.lower()
    secret = secrets.token_urlsafe(24)
    invitation = StaffInvitation.objects.create(
        track=track, email=email, role=role, digest=_digest(secret), invited_by=by
    )
    record(by, "staff.invited", track, email=personal(email), role=role)
    link = settings.SITE_URL + reverse("organizers:invitation", args=[secret])
    text = render_to_string("organizers/setup/invitation_mail.txt", {"invitation": invitation, "link": link})
    send_mail(f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}Invitation", text, None, [email])
    return invitation


def invitation_by_secret(secret: str) -> StaffInvitation | None:
    """Return the invitation of a link; None where it was accepted, was replaced or has expired."""
    found = StaffInvitation.objects.select_related("track", "invited_by").filter(
        digest=_digest(secret), accepted_at=None
    )
    return next((one for one in found if one.expires_at > timezone.now()), None)


@transaction.atomic
def accept(invitation: StaffInvitation, user: User) -> bool:
    """Give the person what they are invited to do; return whether the invitation was theirs and still open."""
    open_ones = StaffInvitation.objects.select_for_update().filter(pk=invitation.pk, accepted_at=None)
    if not open_ones.exists() or not owns_verified_address(user, invitation.email):
        return False
    open_ones.update(accepted_at=timezone.now())
    if invitation.role == StaffRole.REVIEWER:
        make_reviewer(user)
        User.objects.filter(pk=user.pk).update(is_staff=True)
    elif invitation.role == StaffRole.ALL_TRACKS:
        make_organizer(user)
    else:
        # Who has come to organize every track since the invitation keeps doing so.
        if user not in organizers_of_all_tracks():
            make_track_organizer(user)
            Track.with_drafts.get(pk=invitation.track_id).organizers.add(user)
    record(user, "staff.joined", invitation.track, role=invitation.role)
    _notify_inviter(invitation, user)
    return True


def _notify_inviter(invitation: StaffInvitation, user: User) -> None:
    subject = f"{user} has accepted your invitation"
    page = settings.SITE_URL + reverse("organizers:track", args=[invitation.track.slug])
    text = f"{user} has accepted your invitation to become {invitation.role_in_words}."
    notify([invitation.invited_by], Kind.ANNOUNCEMENTS, subject, [text, page])


@transaction.atomic
def withdraw_invitation(invitation: StaffInvitation, *, actor: User) -> None:
    record(
        actor,
        "staff.invitation_withdrawn",
        invitation.track,
        email=personal(invitation.email),
        role=invitation.role,
    )
    invitation.delete()


@transaction.atomic
def remove_organizer(track: Track, user: User, *, actor: User) -> None:
    """End somebody's organizing of the track."""
    track.organizers.remove(user)
    record(actor, "staff.removed", track, user=user.pk)


@transaction.atomic
def end_role(role: StaffRole, user: User, *, actor: User) -> None:
    """End somebody's role in every track. Who has no other one is no longer staff."""
    user.groups.remove(Group.objects.get(name=GROUP_OF[role]))
    if not user.groups.filter(name__in=GROUPS).exists() and not user.user_permissions.exists():
        User.objects.filter(pk=user.pk).update(is_staff=False)
    record(actor, "staff.removed", user, user=user.pk, role=role)


@dataclass(frozen=True)
class Member:
    """Somebody with a role; `ends` is whether the desk can end it: other rights are changed with the account."""

    person: User
    has_second_factor: bool
    ends: bool


def members(people: Iterable[User], role: StaffRole) -> list[Member]:
    """Return those people who have a role, with what a page of people says of them."""
    found = list(people)
    types = [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]
    with_factor = set(
        Authenticator.objects.filter(user__in=found, type__in=types).values_list("user", flat=True)
    )
    ending = {one.pk for one in found}
    if role in GROUP_OF:
        in_group = User.objects.filter(pk__in=ending, groups__name=GROUP_OF[role], is_superuser=False)
        ending = set(in_group.values_list("pk", flat=True))
    return [Member(one, one.pk in with_factor, one.pk in ending) for one in found]


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
