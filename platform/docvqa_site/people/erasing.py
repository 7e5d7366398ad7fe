"""Erasing a person: what says who they are goes, and what they did stays under a key."""

import logging
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import DatabaseError, transaction
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.accounts.rights import is_last_superuser
from docvqa_site.accounts.services import end_access
from docvqa_site.audit.models import record
from docvqa_site.audit.versions import boards_changed
from docvqa_site.mail.backend import FORGOTTEN
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.people.exporting import person_of
from docvqa_site.people.holdings import Person, to_erase
from docvqa_site.periods import PERIODS
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.teams.models import PastMembership, Team
from docvqa_site.teams.selectors import teams_ever_of
from docvqa_site.teams.services import depart
from evaluator.errors import ErrorCode, ProblemError

logger = logging.getLogger(__name__)

FORMER_MEMBER = "former member"
FORMER_REVIEWER = "former reviewer"


@transaction.atomic
def ask_for_erasure(user: User) -> datetime:
    """Plan the erasure of an account, as its owner asks, and return when it will be erased.

    Raises `ProblemError` (`E_ACCOUNT_LAST_SUPERUSER`).
    """
    _require_another_superuser(user)
    current = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if current.erasure_due_at is None:
        current.erasure_due_at = timezone.now() + timedelta(days=PERIODS["accounts"].days)
        current.save(update_fields=["erasure_due_at"])
        record(user, "user.erasure_requested", user, due=current.erasure_due_at.isoformat())
        day = f"{current.erasure_due_at:%B} {current.erasure_due_at.day}, {current.erasure_due_at.year}"
        notify(
            [current],
            Kind.SECURITY,
            f"Your account will be deleted on {day}",
            [
                f"As you asked, your account will be deleted on {day}. To keep it, log in and choose “Keep my account” "
                "on the page below. If you didn't ask for this, change your password as well.",
                settings.SITE_URL + reverse("people:data"),
            ],
        )
    return current.erasure_due_at


@transaction.atomic
def keep_account(user: User) -> None:
    """Cancel a planned erasure; may be called again."""
    if User.objects.filter(pk=user.pk, erasure_due_at__isnull=False).update(erasure_due_at=None):
        record(user, "user.erasure_canceled", user)
        notify(
            [user], Kind.SECURITY, "Your account stays", ["Your account will not be deleted, as you asked."]
        )


def erase_due(now: datetime | None = None) -> int:
    """Erase the accounts whose time to reconsider is over, and return their number."""
    erased = 0
    for user in User.objects.filter(erasure_due_at__lte=now or timezone.now()).order_by("pk"):
        try:
            erase(user)
        except (ProblemError, DatabaseError):
            # The others are erased all the same, and this one is tried again.
            logger.exception("Account %d can't be erased", user.pk)
        else:
            erased += 1
    return erased


@transaction.atomic
def erase(user: User) -> None:
    """Erase a person: the account's row stays as a key, by which results and reviews are a former member's.

    Raises `ProblemError` (`E_ACCOUNT_LAST_SUPERUSER`).
    """
    _require_another_superuser(user)
    user = User.objects.select_for_update().get(pk=user.pk)
    if user.erased_at:
        return
    person, address = person_of(user), user.email
    teams = list(teams_ever_of(user))
    end_access(user, because="account erased")
    # First of all, so that nobody is notified of the departure by name.
    _empty(user)
    depart(user)
    ProofReview.objects.filter(reviewer=user, decision=Decision.PENDING).delete()
    erase_traces(person)
    for team in teams:
        _rename_if_empty(team)
    record(None, "user.erased", user)
    boards_changed()
    EmailMessage(
        f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}Your account is deleted",
        "Your account and what the site stored about you are deleted. Your teams' results stay, without your name.\n",
        to=[address],
        headers={FORGOTTEN: "yes"},
    ).send()


@transaction.atomic
def erase_traces(person: Person) -> int:
    """Delete everything about a person that isn't kept; returns how many rows that were."""
    return sum(rows.delete()[0] for rows in to_erase(person))


def _empty(user: User) -> None:
    """Leave nothing of the account but a key."""
    decided = user.proof_reviews.exclude(decision=Decision.PENDING)
    user.name = FORMER_REVIEWER if decided.exists() else FORMER_MEMBER
    # A domain that never exists (RFC 2606). Nobody can guess the address, and sign up with it beforehand.
    user.email = f"{secrets.token_hex(16)}@erased.invalid"
    user.orcid, user.orcid_verified, user.shows_orcid = "", False, False
    user.is_active = user.is_staff = user.is_superuser = False
    user.last_login = user.erasure_due_at = None
    user.erased_at = timezone.now()
    user.set_unusable_password()
    user.save()


def _rename_if_empty(team: Team) -> None:
    """Take the name and website of a team that nobody else was ever in: they may be the person's own."""
    others = PastMembership.objects.filter(team=team, user__erased_at__isnull=True)
    if team.memberships.exists() or others.exists():
        return
    team.name, team.slug = f"Former member {team.pk}", f"former-member-{team.pk}"
    team.name_skeleton = None
    team.affiliation = team.website = team.country = ""
    team.save(update_fields=["name", "slug", "name_skeleton", "affiliation", "website", "country"])
    record(None, "team.emptied", team)


def _require_another_superuser(user: User) -> None:
    if user.is_superuser and is_last_superuser(user):
        raise ProblemError.of(ErrorCode.ACCOUNT_LAST_SUPERUSER)
