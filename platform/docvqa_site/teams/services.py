"""Changes to teams. Each locks the rows that it decides on, and writes the audit entry in the same transaction.

Owners make them; with `organizes`, an organizer does in their place, under the same rules.

Locks are taken in one order, person before team before invitation, so that two changes never wait for each other.
"""

import secrets
from datetime import timedelta
from itertools import chain, count

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.db import IntegrityError, transaction
from django.db.models import F
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.text import slugify

from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import owns_verified_address
from docvqa_site.audit.models import personal, record
from docvqa_site.teams.keys import end_key
from docvqa_site.teams.models import OPEN, Invitation, Membership, Role, Team
from docvqa_site.teams.notifications import notify_members, notify_person
from docvqa_site.teams.selectors import FOUNDING_WINDOW, FOUNDINGS, current_keys, next_founding, owns
from docvqa_site.ui.names import clean_name
from evaluator.errors import ErrorCode, ProblemError

INVITATIONS_PER_DAY = 20
SLUG_ATTEMPTS = 5


@transaction.atomic
def create_team(
    owner: User, name: str, *, affiliation: str = "", website: str = "", country: str = ""
) -> Team:
    """Make a team with `owner` as its owner.

    Raises:
        ProblemError: `E_TEAM_MEMBER` when they are on a team already, `E_TEAM_NAME` when the name holds what can't be
            seen or looks like another team's, `E_TEAM_FOUNDING` when they have founded too many teams lately.
    """
    _lock_teamless(owner)
    now = timezone.now()
    if possible := next_founding(owner, now):
        raise ProblemError.of(
            ErrorCode.TEAM_FOUNDING,
            expected=f"at most {FOUNDINGS} new teams in {FOUNDING_WINDOW.days} days",
            next_step=f"You can create the next team from {possible:%Y-%m-%d %H:%M} UTC. In the meantime, a team's "
            "owner can invite you.",
        )
    team = Team(
        name=name, affiliation=affiliation, website=website, country=country, founder=owner, created_at=now
    )
    _add(team)
    Membership.objects.create(team=team, user=owner, role=Role.OWNER)
    record(owner, "team.created", team, name=personal(team.name, owner))
    return team


def _add(team: Team) -> None:
    """Store a new team under a free slug. Raises `ProblemError` (`E_TEAM_NAME`)."""
    try:
        team.name = clean_name(team.name)
        team.clean()
    except ValidationError as error:
        raise _unusable_name(team.name, " ".join(error.messages)) from error
    for _ in range(SLUG_ATTEMPTS):
        team.slug = _free_slug(team.name)
        try:
            with transaction.atomic():
                team.save(force_insert=True)
        except IntegrityError:
            # Another team was added since, with this name or with this slug. The slug can be another one.
            if Team.objects.filter(name_skeleton=team.name_skeleton).exists():
                break
        else:
            return
    raise _unusable_name(team.name)


def _unusable_name(name: str, message: str = "") -> ProblemError:
    return ProblemError.of(ErrorCode.TEAM_NAME, message=message, where="name", found=name)


@transaction.atomic
def invite(team: Team, email: str, *, by: User, organizes: bool = False) -> Invitation:
    """Invite the person behind `email`, replacing an open invitation to them; the mail is part of the transaction.

    Raises:
        ProblemError: `E_TEAM_OWNER` when `by` is no owner; `E_TEAM_INVITATION` when they have sent too many
            invitations, or the address belongs to a member.
    """
    User.objects.select_for_update().get(pk=by.pk)
    _lock_team(team, by, organizes)
    email = email.lower()
    now = timezone.now()
    if team.memberships.filter(user__email=email).exists():
        raise _rejected(ErrorCode.TEAM_INVITATION, f"{email} is already on the team.", "No action needed.")
    # Revoked ones count too, or the site could be made to flood anybody's mailbox.
    sent = Invitation.objects.filter(invited_by=by, created_at__gt=now - timedelta(days=1))
    if sent.count() >= INVITATIONS_PER_DAY:
        message = f"You have sent {INVITATIONS_PER_DAY} invitations in the last 24 hours."
        raise _rejected(ErrorCode.TEAM_INVITATION, message, "Send more tomorrow.")
    team.invitations.filter(OPEN, email=email).update(revoked_at=now)
    secret = secrets.token_urlsafe(24)
    invitation = Invitation.objects.create(
        team=team, email=email, digest=Invitation.digest_of(secret), invited_by=by, created_at=now
    )
    record(by, "team.invited", team, email=personal(email))
    link = settings.SITE_URL + reverse("teams:invitation", args=[secret])
    values = {"invitation": invitation, "link": link, "site": settings.SITE_URL}
    text = render_to_string("teams/invitation_mail.txt", values)
    # Neither the team's name nor a person's: the site mails nobody a text that a stranger chose.
    subject = f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}Invitation to a team"
    send_mail(subject, text, None, [email])
    return invitation


@transaction.atomic
def revoke_invitation(invitation: Invitation, *, by: User, organizes: bool = False) -> None:
    """Make an open invitation's link useless. Raises `ProblemError` (`E_TEAM_OWNER`) when `by` is no owner."""
    team = _lock_team(invitation.team, by, organizes)
    if Invitation.objects.filter(OPEN, pk=invitation.pk).update(revoked_at=timezone.now()):
        record(by, "team.invitation_revoked", team, email=personal(invitation.email))


@transaction.atomic
def accept_invitation(invitation: Invitation, user: User) -> Membership:
    """Put `user` into the inviting team.

    Raises:
        ProblemError: `E_TEAM_MEMBER` when they are on a team already; `E_TEAM_INVITATION` when the address is not
            a verified one of theirs, or the invitation was accepted, was revoked or has expired in the meantime.
    """
    _lock_teamless(user)
    team = Team.objects.select_for_update().get(pk=invitation.team_id)
    invitation = Invitation.objects.select_for_update().get(pk=invitation.pk)
    now = timezone.now()
    if invitation.accepted_at or invitation.revoked_at or invitation.expires_at <= now:
        raise _rejected(ErrorCode.TEAM_INVITATION, "This invitation can no longer be accepted.")
    if not owns_verified_address(user, invitation.email):
        raise _rejected(ErrorCode.TEAM_INVITATION, "This invitation was sent to a different address.")
    invitation.accepted_at = now
    invitation.save(update_fields=["accepted_at"])
    membership = Membership.objects.create(team=team, user=user)
    record(user, "team.joined", team)
    notify_members(
        team, f"{user} joined {team}", f"{user} accepted an invitation and joined your team.", but=user
    )
    return membership


@transaction.atomic
def leave(user: User) -> Team:
    """Take `user` out of their team. Its results stay.

    Raises `ProblemError` (`E_TEAM_MEMBER`) for the last owner of a team with other members, or without a team.
    """
    team = _lock_team_of(user)
    membership = team.memberships.get(user=user)
    others = team.memberships.exclude(user=user)
    if membership.is_owner and others.exists() and not others.filter(role=Role.OWNER).exists():
        raise _only_owner("You are the team's only owner.")
    membership.delete()
    record(user, "team.left", team)
    notify_members(team, f"{user} left {team}", f"{user} left your team.", but=user)
    if not others.exists():
        _release(team, user)
    return team


def heir_of(user: User) -> Membership | None:
    """Return who becomes the owner when `user` departs; None if that changes nothing, or nobody else is there."""
    own = Membership.objects.filter(user=user, role=Role.OWNER).first()
    if own is None:
        return None
    others = own.team.memberships.exclude(pk=own.pk).select_related("user")
    if others.filter(role=Role.OWNER).exists():
        return None
    # Whoever can log in and stays before others, then whoever joined first.
    return others.order_by(
        "-user__is_active", F("user__erasure_due_at").asc(nulls_first=True), "joined_at"
    ).first()


@transaction.atomic
def depart(user: User) -> None:
    """Take a person out of their team whose account ends. Another member owns it from then on."""
    User.objects.select_for_update().get(pk=user.pk)
    team = Team.objects.select_for_update().filter(memberships__user=user).first()
    if team is None:
        return
    if heir := heir_of(user):
        _make_owner(heir, user, "The previous owner, whose account was deleted,")
    leave(user)


def _release(team: Team, last: User) -> None:
    """Close what could bring a team back that everybody has left, and free its name unless a submission carries it."""
    team.invitations.filter(OPEN).update(revoked_at=timezone.now())
    for key in current_keys(team):
        end_key(key, by=last)
    if not team.submissions.filter(submitted_at__isnull=False).exists():
        team.name_skeleton = None
        team.save(update_fields=["name_skeleton"])
        record(last, "team.name_released", team, name=personal(team.name, last))


@transaction.atomic
def remove_member(team: Team, membership_id: int, *, by: User, organizes: bool = False) -> User:
    """Take another person out of the team.

    Raises `ProblemError`: `E_TEAM_OWNER` when `by` is no owner, `E_TEAM_MEMBER` for themselves, a non-member, or the
    only owner of a team with other members.
    """
    team = _lock_team(team, by, organizes)
    membership = _member(team, membership_id, by, "You can't remove yourself.", "Leave the team instead.")
    others = team.memberships.exclude(pk=membership.pk)
    if others.exists() and not others.filter(role=Role.OWNER).exists():
        raise _only_owner(f"{membership.user} is the team's only owner.")
    removed, who = membership.user, _named(by, organizes)
    membership.delete()
    record(by, "team.member_removed", team, user=removed.pk)
    notify_person(
        removed,
        f"You were removed from {team}",
        f"{who} removed you from {team}. The team keeps its results.",
    )
    notify_members(
        team, f"{removed} was removed from {team}", f"{who} removed {removed} from your team.", but=by
    )
    if not others.exists():
        _release(team, by)
    return removed


@transaction.atomic
def hand_over(team: Team, membership_id: int, *, by: User) -> User:
    """Make another member the owner in place of `by`.

    Raises `ProblemError`: `E_TEAM_OWNER` when `by` is no owner, `E_TEAM_MEMBER` for themselves or a non-member.
    """
    team = _lock_team(team, by)
    heir = _member(team, membership_id, by, "You already own the team.", "Choose another member.")
    _make_owner(heir, by, str(by))
    return heir.user


@transaction.atomic
def appoint_owner(team: Team, membership_id: int, *, by: User) -> User:
    """Make a member the owner in place of any other, as an organizer does if the owner no longer can.

    Raises `ProblemError` (`E_TEAM_MEMBER`) for an organizer who is on the team, a non-member or an inactive account.
    """
    team = _lock_team(team, by, organizes=True)
    if team.memberships.filter(user=by).exists():
        raise _rejected(ErrorCode.TEAM_MEMBER, "You are on this team.", "Ask another organizer.")
    heir = _member(team, membership_id, by, "", "")
    if not heir.user.is_active:
        raise _rejected(
            ErrorCode.TEAM_MEMBER, f"The account of {heir.user} is inactive.", "Choose another member."
        )
    _make_owner(heir, by, _named(by, organizes=True))
    notify_members(
        team,
        f"{team} has a new owner",
        f"An organizer made {heir.user} the owner of your team.",
        but=heir.user,
    )
    return heir.user


def _make_owner(heir: Membership, by: User, who: str) -> None:
    team = heir.team
    team.memberships.filter(role=Role.OWNER).update(role=Role.MEMBER)
    team.memberships.filter(pk=heir.pk).update(role=Role.OWNER)
    record(by, "team.handed_over", team, user=heir.user_id)
    notify_person(heir.user, f"You are now the owner of {team}", f"{who} made you the owner of {team}.")


@transaction.atomic
def update_team(team: Team, *, by: User, affiliation: str, website: str, country: str) -> Team:
    """Change the team's affiliation, website and country. Its name stays: results and citations carry it.

    Raises `ProblemError` (`E_TEAM_OWNER`) when `by` is no owner.
    """
    team = _lock_team(team, by)
    team.affiliation, team.website, team.country = affiliation, website, country
    team.save(update_fields=["affiliation", "website", "country"])
    record(by, "team.updated", team, affiliation=affiliation, website=website, country=country)
    return team


def _lock_teamless(user: User) -> None:
    """Lock the person's row; another change that would add them to a team waits."""
    User.objects.select_for_update().get(pk=user.pk)
    if Membership.objects.filter(user=user).exists():
        next_step = "Leave it before creating or joining another team."
        raise _rejected(ErrorCode.TEAM_MEMBER, "You are already on a team.", next_step)


def _lock_team_of(user: User) -> Team:
    team = Team.objects.select_for_update().filter(memberships__user=user).first()
    if team is None:
        raise _rejected(ErrorCode.TEAM_MEMBER, "You're not on a team.")
    return team


def _lock_team(team: Team, by: User, organizes: bool = False) -> Team:
    """Lock the team that `by` owns, or organizes."""
    locked = Team.objects.select_for_update().get(pk=team.pk)
    if not organizes and not owns(by, locked):
        raise ProblemError.of(ErrorCode.TEAM_OWNER)
    return locked


def _named(by: User, organizes: bool) -> str:
    return "An organizer" if organizes else str(by)


def _member(team: Team, membership_id: int, by: User, message: str, next_step: str) -> Membership:
    """Return a member other than `by`; the texts are those of the problem where they chose themselves."""
    membership = team.memberships.select_related("user").filter(pk=membership_id).first()
    if membership is None:
        raise _rejected(ErrorCode.TEAM_MEMBER, "This person is not on the team.")
    if membership.user_id == by.pk:
        raise _rejected(ErrorCode.TEAM_MEMBER, message, next_step)
    return membership


def _only_owner(message: str) -> ProblemError:
    return _rejected(ErrorCode.TEAM_MEMBER, message, "Make another member the owner first.")


def _rejected(code: ErrorCode, message: str, next_step: str = "") -> ProblemError:
    return ProblemError.of(code, message=message, next_step=next_step)


def _free_slug(name: str) -> str:
    """Return a slug made from `name`, numbered where it is already used."""
    base = slugify(name)[:70] or "team"
    taken = set(Team.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    numbered = (f"{base}-{number}" for number in count(2))
    return next(slug for slug in chain([base], numbered) if slug not in taken)
