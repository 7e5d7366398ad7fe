"""Where the site stores something about people, what an export has of it, and what erasure does with it.

Erasure leaves the account's row as a key that says nothing about the person, so that results, reviews and audit entries
still say that one person made them. A test finds every column that refers to an account or holds an email address, and
fails for one that has no row here.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.apps import apps
from django.contrib.sessions.models import Session
from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.mail.models import OutgoingMail


@dataclass(frozen=True)
class Person:
    """Somebody with an account, or with nothing but an address, to which an invitation may have been sent."""

    addresses: Sequence[str]
    user: User | None = None


class Fate(StrEnum):
    """What becomes of something when the person is erased."""

    ERASED = "deleted"
    KEPT = "kept, under “former member” or “former reviewer”"
    EMPTIED = "deleted, except for the account number"


Find = Callable[[Person], "QuerySet[Any]"]


@dataclass(frozen=True)
class Holding:
    """What a column of a model says about people: which rows are a person's, and the `fields` of them to export."""

    what: str
    fate: Fate
    find: Find = field(repr=False)
    fields: Sequence[str]

    def export(self, person: Person) -> list[dict[str, Any]]:
        return list(self.find(person).order_by("pk").values(*self.fields))


def _by_account(model: str, name: str) -> Find:
    def find(person: Person) -> QuerySet[Any]:
        rows = _rows(model)
        return rows.filter(**{name: person.user.pk}) if person.user else rows.none()

    return find


def _by_address(model: str, name: str) -> Find:
    def find(person: Person) -> QuerySet[Any]:
        same = Q()
        for address in person.addresses:
            same |= Q(**{f"{name}__iexact": address})
        return _rows(model).filter(same) if same else _rows(model).none()

    return find


def _rows(model: str) -> QuerySet[Any]:
    # With what other managers leave out, such as drafts of tracks.
    rows: QuerySet[Any] = apps.get_model(model)._base_manager.all()
    return rows


def _personal_details(person: Person) -> QuerySet[Any]:
    owned = _by_account("audit.PersonalDetail", "person")(person)
    return owned | _by_address("audit.PersonalDetail", "text")(person)


def _audit_entries(person: Person) -> QuerySet[Any]:
    rows = _rows("audit.AuditEntry")
    if person.user is None:
        return rows.none()
    return rows.filter(
        Q(actor=person.user.pk) | Q(object_type=User._meta.label_lower, object_id=str(person.user.pk))
    )


def _log_entries(person: Person) -> QuerySet[Any]:
    """Return what the person did in the administration, and what was done there to their account."""
    rows = _rows("admin.LogEntry")
    if person.user is None:
        return rows.none()
    return rows.filter(
        Q(user=person.user.pk)
        | Q(content_type__app_label="accounts", content_type__model="user", object_id=str(person.user.pk))
    )


def _sessions(person: Person) -> QuerySet[Session]:
    """Return the person's sessions. A session's row doesn't name its person, so all are read."""
    found: list[str] = []
    if person.user is not None:
        live = Session.objects.filter(expire_date__gt=timezone.now()).iterator()
        found = [row.pk for row in live if row.get_decoded().get("_auth_user_id") == str(person.user.pk)]
    return Session.objects.filter(pk__in=found)


def _mails(person: Person) -> QuerySet[OutgoingMail]:
    """Return the mails to the person that wait, were given up, or were delivered lately."""
    addresses = {address.lower() for address in person.addresses}
    rows = OutgoingMail.objects.values_list("pk", "recipients").iterator()
    found = [key for key, to in rows if addresses & {address.lower() for address in to}]
    return OutgoingMail.objects.filter(pk__in=found)


def _held(model: str, name: str, what: str, fate: Fate, *fields: str) -> tuple[str, Holding]:
    is_address = name in ("email", "text")
    find = _by_address(model, name) if is_address else _by_account(model, name)
    return f"{model}.{name}", Holding(what, fate, find, fields)


HOLDINGS: dict[str, Holding] = dict(
    [
        (
            "accounts.User.email",
            Holding(
                "Your account: name, email address, ORCID iD, password",
                Fate.EMPTIED,
                _by_account("accounts.User", "pk"),
                (
                    "id",
                    "email",
                    "name",
                    "orcid",
                    "orcid_verified",
                    "shows_orcid",
                    "date_joined",
                    "last_login",
                    "is_active",
                    "is_staff",
                    "is_superuser",
                    "erasure_due_at",
                ),
            ),
        ),
        _held("accounts.User_groups", "user", "Groups you are in", Fate.ERASED, "group__name"),
        _held(
            "accounts.User_user_permissions",
            "user",
            "Permissions you have",
            Fate.ERASED,
            "permission__codename",
        ),
        _held("account.EmailAddress", "user", "Email addresses", Fate.ERASED, "email", "verified", "primary"),
        _held(
            "account.EmailAddress", "email", "Email addresses", Fate.ERASED, "email", "verified", "primary"
        ),
        _held(
            "mfa.Authenticator",
            "user",
            "Second factors and passkeys (without their secrets)",
            Fate.ERASED,
            "type",
            "created_at",
            "last_used_at",
        ),
        _held(
            "socialaccount.SocialAccount",
            "user",
            "Linked accounts",
            Fate.ERASED,
            "provider",
            "uid",
            "date_joined",
            "last_login",
            "extra_data",
        ),
        _held(
            "accounts.ApiToken",
            "user",
            "API tokens (without their secrets)",
            Fate.ERASED,
            "label",
            "scope",
            "created_at",
            "expires_at",
            "last_used_at",
            "revoked_at",
        ),
        (
            "sessions.Session",
            Holding("Login sessions", Fate.ERASED, _sessions, ("expire_date",)),
        ),
        (
            "mail.OutgoingMail",
            Holding(
                "Recent emails to you (without their texts)",
                Fate.ERASED,
                _mails,
                ("subject", "recipients", "created_at", "delivered_at", "failed_at"),
            ),
        ),
        _held(
            "notifications.Notification",
            "user",
            "Notifications",
            Fate.ERASED,
            "kind",
            "subject",
            "text",
            "page",
            "created_at",
            "read_at",
        ),
        _held("notifications.MailTurnedOff", "user", "Emails you turned off", Fate.ERASED, "kind"),
        _held("teams.Membership", "user", "Your team", Fate.ERASED, "team__name", "role", "joined_at"),
        _held(
            "teams.PastMembership",
            "user",
            "Teams you have left (needed to detect conflicts of interest)",
            Fate.KEPT,
            "team__name",
            "role",
            "joined_at",
            "left_at",
        ),
        _held("teams.Team", "founder", "Teams you created", Fate.KEPT, "name", "created_at"),
        _held(
            "teams.Invitation",
            "email",
            "Invitations to you",
            Fate.ERASED,
            "email",
            "team__name",
            "created_at",
            "expires_at",
            "accepted_at",
            "revoked_at",
        ),
        _held(
            "teams.Invitation", "invited_by", "Invitations you sent", Fate.KEPT, "team__name", "created_at"
        ),
        _held(
            "teams.TeamKey",
            "added_by",
            "Signing keys you registered",
            Fate.KEPT,
            "team__name",
            "public_key",
            "name",
            "created_at",
            "revoked_at",
        ),
        _held(
            "challenge.TeamRegistration",
            "created_by",
            "Registrations of your team for tracks",
            Fate.KEPT,
            "team__name",
            "track__slug",
            "answers",
            "created_at",
        ),
        _held(
            "challenge.StaffInvitation",
            "email",
            "Invitations to you to organize or review",
            Fate.ERASED,
            "email",
            "track__slug",
            "role",
            "created_at",
            "accepted_at",
        ),
        _held(
            "challenge.StaffInvitation",
            "invited_by",
            "Invitations to organize or review that you sent",
            Fate.KEPT,
            "track__slug",
            "role",
            "created_at",
        ),
        _held("challenge.Track_organizers", "user", "Tracks you organize", Fate.ERASED, "track__slug"),
        _held(
            "uploads.Upload",
            "created_by",
            "Files you uploaded (without their contents)",
            Fate.KEPT,
            "id",
            "filename",
            "size_bytes",
            "sha256",
            "state",
            "created_at",
            "finished_at",
        ),
        _held(
            "downloads.Acceptance",
            "user",
            "Terms you accepted",
            Fate.KEPT,
            "terms__title",
            "terms__version",
            "accepted_at",
        ),
        _held(
            "submissions.Submission",
            "created_by",
            "Submissions you created",
            Fate.KEPT,
            "id",
            "team__name",
            "track__slug",
            "title",
            "created_at",
            "submitted_at",
        ),
        _held(
            "submissions.RunToken",
            "issued_to",
            "Run tokens you requested",
            Fate.KEPT,
            "team__name",
            "track__slug",
            "token",
            "issued_at",
            "explanation",
        ),
        _held(
            "evaluation.Examination",
            "by",
            "Examinations you requested",
            Fate.KEPT,
            "run__id",
            "level",
            "state",
            "requested_at",
        ),
        _held(
            "reviews.ProofReview",
            "reviewer",
            "Your reviews of privacy proofs (undecided ones are deleted)",
            Fate.KEPT,
            "submission__id",
            "checklist",
            "notes",
            "decision",
            "reason",
            "draft",
            "assigned_at",
            "decided_at",
        ),
        _held(
            "reviews.Recusal",
            "person",
            "Proofs you declined to review",
            Fate.KEPT,
            "submission__id",
            "why",
            "text",
            "created_at",
        ),
        _held(
            "reviews.ReviewMessage",
            "author",
            "Messages you wrote in reviews",
            Fate.KEPT,
            "submission__id",
            "item",
            "text",
            "created_at",
        ),
        _held(
            "reviews.Appeal",
            "author",
            "Appeals you made against reviews",
            Fate.KEPT,
            "submission__id",
            "text",
            "created_at",
        ),
        _held(
            "reviews.RunAppeal",
            "author",
            "Appeals you made against disqualifications",
            Fate.KEPT,
            "run__id",
            "text",
            "created_at",
            "answer",
            "answered_at",
        ),
        (
            "admin.LogEntry.user",
            Holding(
                "Your actions on the admin site, and others' actions on your account",
                Fate.ERASED,
                _log_entries,
                ("action_time", "object_repr", "action_flag", "change_message"),
            ),
        ),
        (
            "audit.AuditEntry.actor",
            Holding(
                "Audit entries by you and about your account",
                Fate.KEPT,
                _audit_entries,
                ("at", "action", "object_type", "object_id", "details"),
            ),
        ),
        (
            "audit.PersonalDetail.person",
            Holding("Your names and addresses in audit entries", Fate.ERASED, _personal_details, ("text",)),
        ),
    ]
)


def to_erase(person: Person) -> Iterator[QuerySet[Model]]:
    """Yield the rows that erasure deletes."""
    for holding in HOLDINGS.values():
        if holding.fate is Fate.ERASED:
            yield holding.find(person)
