"""A person's own data: exported, and erased with what they did kept under a key."""

import io
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.core import mail, serializers
from django.core.management import CommandError, call_command
from django.db import models
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import create_token, make_reviewer, update_profile, vouch_for_address
from docvqa_site.audit.models import AuditEntry, record
from docvqa_site.mail.delivery import deliver_due
from docvqa_site.mail.models import OutgoingMail
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.people.erasing import ask_for_erasure, erase_due
from docvqa_site.people.holdings import HOLDINGS, Fate
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.submissions.models import SubmissionState
from docvqa_site.teams.models import Membership, Role
from docvqa_site.teams.services import create_team, invite
from tests.docvqa_site.factories import (
    make_key,
    make_submission,
    make_team,
    make_upload,
    make_user,
    scored_submission,
)

pytestmark = pytest.mark.django_db
ADDRESS, NAME, ORCID = "ada@lovelace.example", "Ada Lovelace", "0000-0002-1825-0097"


def person(*arguments: str) -> str:
    output = io.StringIO()
    call_command("person", *arguments, stdout=output)
    return output.getvalue()


def exported(address: str = ADDRESS) -> dict[str, list[dict[str, Any]]]:
    stored = json.loads(person("export", address))["stored"]
    return {name: holding["rows"] for name, holding in stored.items() if holding["rows"]}


def everything_stored() -> str:
    """All rows of all tables, as text."""
    rows = (row for model in apps.get_models() for row in model._base_manager.all())
    return serializers.serialize("json", rows)


@pytest.fixture
def ada(client: Client) -> User:
    """A person with something in many places, in a team with nobody else."""
    ada = make_user(ADDRESS, "rose-hill-42-x", name="A")
    vouch_for_address(ada)
    client.force_login(ada)
    update_profile(ada, name=NAME, orcid=ORCID, shows_orcid=True)
    ada.refresh_from_db()
    team = create_team(ada, f"The team of {NAME}", website="https://lovelace.example")
    create_token(ada, "Lovelace cluster")
    make_key(team)
    make_upload(team)
    make_submission(team, state=SubmissionState.SUBMITTED)
    host = make_user()
    invite(make_team(host), ADDRESS, by=host)
    notify([ada], Kind.TEAM, "Hello", [f"Dear {NAME}"])
    OutgoingMail.objects.create(subject="Hello", body=NAME, sender="site@example.org", recipients=[ADDRESS])
    OutgoingMail.objects.create(subject="Read", recipients=[ADDRESS], delivered_at=timezone.now())
    record(host, "user.changed", ada, changes={"is_staff": [True, False]})
    return ada


def columns_about_people() -> Iterator[str]:
    """Every column that refers to an account or has an address, and every model that does so in another way."""
    yield from ("sessions.Session", "mail.OutgoingMail")
    for model in apps.get_models(include_auto_created=True):
        for column in model._meta.local_fields:
            is_address = isinstance(column, (models.EmailField, models.GenericIPAddressField))
            if column.related_model is User or is_address:
                yield f"{model._meta.label}.{column.name}"


def test_every_column_about_people_has_its_fate() -> None:
    # Whoever adds one says in the privacy notice what it stores, and in the table what becomes of it.
    assert set(HOLDINGS) == set(columns_about_people())


def test_an_export_has_what_is_stored_about_a_person_and_no_secret(ada: User) -> None:
    _, secret = create_token(ada, "laptop")
    found = exported(ADDRESS.upper())
    assert found["accounts.User.email"][0]["orcid"] == ORCID
    assert [row["label"] for row in found["accounts.ApiToken.user"]] == ["Lovelace cluster", "laptop"]
    for name in (
        "teams.Membership.user",
        "teams.Invitation.email",
        "uploads.Upload.created_by",
        "sessions.Session",
    ):
        assert len(found[name]) == 1
    changed = [row for row in found["audit.AuditEntry.actor"] if row["action"] == "user.profile_changed"]
    assert changed[0]["details"]["name"] == NAME
    text = json.dumps(found)
    assert not any(word in text for word in ("digest", "password", secret, "store_key"))


def test_an_export_has_no_address_of_others(ada: User) -> None:
    invite(ada.membership.team, "other@example.org", by=ada)
    entries = exported()["audit.AuditEntry.actor"]
    assert [row["details"] for row in entries if row["action"] == "team.invited"] == [{"email": "(erased)"}]


def test_nothing_says_who_an_erased_person_was_and_what_they_did_stays(ada: User) -> None:
    team, entries = ada.membership.team, AuditEntry.objects.count()
    mail.outbox.clear()
    assert f"Erased account {ada.pk}." in person("erase", ADDRESS, "--yes")
    text = everything_stored()
    for trace in (ADDRESS, "Lovelace", "lovelace", ORCID):
        assert trace not in text
    ada.refresh_from_db()
    assert (str(ada), ada.is_active, ada.has_usable_password()) == ("former member", False, False)
    team.refresh_from_db()
    assert team.name == f"Former member {team.pk}"
    assert team.submissions.get().created_by == ada
    assert AuditEntry.objects.count() > entries
    assert [message.to for message in mail.outbox] == [[ADDRESS]]
    assert {name for name in exported(str(ada.pk)) if HOLDINGS[name].fate is Fate.ERASED} == set()
    assert make_user(ADDRESS)


def test_not_even_the_last_email_to_an_erased_person_stays(ada: User, settings: Settings) -> None:
    settings.EMAIL_BACKEND = "docvqa_site.mail.backend.OutboxBackend"
    settings.MAIL_DELIVERY_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox.clear()
    person("erase", ADDRESS, "--yes")
    deliver_due()
    assert [message.to for message in mail.outbox] == [[ADDRESS]]
    assert not OutgoingMail.objects.exists()


def test_nobody_logs_in_as_an_erased_person_again(client: Client, ada: User) -> None:
    person("erase", ADDRESS, "--yes")
    assert client.get("/account/").status_code == 302
    client.force_login(make_user(is_staff=True, is_superuser=True))
    page = client.get(f"/admin/accounts/user/{ada.pk}/change/").text
    assert "former member" in page
    assert 'name="_save"' not in page
    sent = len(mail.outbox)
    person("erase", str(ada.pk), "--yes")
    assert len(mail.outbox) == sent


def test_whoever_was_only_invited_is_erased_too() -> None:
    host = make_user()
    team = make_team(host)
    invite(team, ADDRESS, by=host)
    assert "Erased 2 rows" in person("erase", ADDRESS, "--yes")
    assert ADDRESS not in everything_stored()
    assert not team.invitations.exists()
    assert AuditEntry.objects.get(action="team.invited").readable == {"email": "(erased)"}


def test_a_team_with_others_gets_the_next_owner_and_keeps_its_name(ada: User) -> None:
    team = ada.membership.team
    leaving = make_user(erasure_due_at=timezone.now())
    heirs = [leaving, make_user(), make_user()]
    for heir in heirs:
        Membership.objects.create(team=team, user=heir)
    assert f"{heirs[1]} now owns {team}." in person("erase", ADDRESS, "--yes")
    assert team.memberships.get(role=Role.OWNER).user == heirs[1]
    team.refresh_from_db()
    assert team.name == f"The team of {NAME}"
    assert not any(
        NAME in f"{one.subject} {one.text}".replace(team.name, "") for one in heirs[1].notifications.all()
    )


def test_decided_reviews_stay_by_a_former_reviewer() -> None:
    reviewer = make_user(ADDRESS, is_staff=True)
    make_reviewer(reviewer)
    decided = ProofReview.objects.create(
        submission=scored_submission(),
        reviewer=reviewer,
        decision=Decision.ACCEPTED,
        decided_at=timezone.now(),
    )
    undecided = ProofReview.objects.create(submission=scored_submission(), reviewer=reviewer)
    person("erase", ADDRESS, "--yes")
    assert str(ProofReview.objects.get(pk=decided.pk).reviewer) == "former reviewer"
    assert not ProofReview.objects.filter(pk=undecided.pk).exists()
    assert not Authenticator.objects.filter(user=reviewer).exists()
    assert not User.objects.get(pk=reviewer.pk).groups.exists()


def test_the_last_superuser_stays(client: Client) -> None:
    root = make_user(ADDRESS, "rose-hill-42-x", is_staff=True, is_superuser=True)
    with pytest.raises(CommandError, match="last active superuser"):
        person("erase", ADDRESS, "--yes")
    User.objects.filter(pk=root.pk).update(erasure_due_at=timezone.now())
    assert erase_due() == 0
    make_user(is_staff=True, is_superuser=True)
    assert erase_due() == 1


def test_nobody_is_erased_without_a_yes(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "y")
    with pytest.raises(CommandError, match="Nothing was erased"):
        person("erase", ADDRESS)
    assert User.objects.filter(email=ADDRESS).exists()


def confirm(client: Client) -> None:
    """Type the password once more."""
    client.post("/account/reauthenticate/", {"password": "rose-hill-42-x"})


class TestOwnPage:
    def test_the_copy_is_downloaded_once_the_password_is_typed(self, client: Client, ada: User) -> None:
        assert "Download my data" in client.get("/account/").text
        assert client.get("/account/data/my-data.json").status_code == 302
        confirm(client)
        answer = client.get("/account/data/my-data.json")
        assert "attachment" in answer["Content-Disposition"]
        assert answer.json()["stored"]["accounts.User.email"]["rows"][0]["name"] == NAME

    def test_an_account_is_erased_two_weeks_after_its_owner_asked(self, client: Client, ada: User) -> None:
        client.post("/account/data/delete/")
        ada.refresh_from_db()
        assert ada.erasure_due_at is None
        confirm(client)
        mail.outbox.clear()
        assert "will be deleted on" in client.post("/account/data/delete/", follow=True).text
        assert "/account/data/" in str(mail.outbox[0].body)
        assert "will be deleted on" in client.get("/account/").text
        assert erase_due(timezone.now() + timedelta(days=13)) == 0
        assert erase_due(timezone.now() + timedelta(days=15)) == 1
        assert not User.objects.filter(email=ADDRESS).exists()

    def test_they_can_reconsider(self, client: Client, ada: User) -> None:
        ask_for_erasure(ada)
        assert "Your account stays" in client.post("/account/data/keep/", follow=True).text
        assert "will be deleted on" not in client.get("/account/").text
        assert erase_due(timezone.now() + timedelta(days=15)) == 0

    def test_the_only_owner_learns_who_will_own_the_team(self, client: Client, ada: User) -> None:
        assert "only owner" not in client.get("/account/data/").text
        heir = Membership.objects.create(team=ada.membership.team, user=make_user(name="Charles"))
        assert "Charles will become the owner" in client.get("/account/data/").text
        assert heir.role == Role.MEMBER
