import re

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.mail.models import OutgoingMail
from tests.docvqa_site.admin_actions import run
from tests.docvqa_site.factories import make_team, make_user

pytestmark = pytest.mark.django_db

LIST = "admin:mail_outgoingmail_changelist"


@pytest.fixture
def failed() -> OutgoingMail:
    return OutgoingMail.objects.create(
        subject="Reset your password",
        body="https://site.example/account/password/reset/key/secret",
        sender="site@example.org",
        recipients=["ada@example.org"],
        attempts=10,
        failed_at=timezone.now(),
        error="550 no",
    )


@pytest.fixture
def organizer(client: Client) -> Client:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    return client


def test_organizers_see_that_a_mail_failed_but_not_what_it_says(
    organizer: Client, failed: OutgoingMail
) -> None:
    listed = organizer.get(reverse(LIST)).content.decode()
    page = organizer.get(reverse("admin:mail_outgoingmail_change", args=[failed.pk])).content.decode()
    assert "550 no" in listed
    assert 'href="/organize/"' in listed
    assert "ada@example.org" in page
    assert "secret" not in listed + page


@pytest.fixture
def delivered(failed: OutgoingMail) -> OutgoingMail:
    return OutgoingMail.objects.create(
        subject="Has arrived",
        body="",
        sender=failed.sender,
        recipients=["ben@example.org"],
        delivered_at=timezone.now(),
    )


def test_the_list_is_narrowed_to_a_state(
    organizer: Client, failed: OutgoingMail, delivered: OutgoingMail
) -> None:
    OutgoingMail.objects.create(subject="Still here", body="", sender=failed.sender, recipients=[])
    subjects = {"waiting": "Still here", "failed": "Reset your password", "delivered": "Has arrived"}
    assert "By state" in organizer.get(reverse(LIST)).text
    for state, subject in subjects.items():
        page = organizer.get(reverse(LIST), {"state": state}).text
        assert [shown for shown in subjects.values() if shown in page] == [subject]


@pytest.mark.parametrize("term", ["ben@example.org", "BEN@", "arrived"])
def test_mails_are_found_by_recipient_and_subject(
    organizer: Client, delivered: OutgoingMail, term: str
) -> None:
    page = organizer.get(reverse(LIST), {"q": term}).text
    assert "Has arrived" in page
    assert ">ben@example.org<" in page
    assert "Reset your password" not in page


def test_whoever_competes_sees_no_delivered_mails_to_others(client: Client, delivered: OutgoingMail) -> None:
    member = make_user("olga@example.org", is_staff=True, is_superuser=True)
    make_team(member)
    own = {"recipients": ["olga@example.org"], "delivered_at": timezone.now()}
    OutgoingMail.objects.create(subject="Your own", **own)
    client.force_login(member)
    page = client.get(reverse(LIST)).text
    assert "You are on a team" in page
    assert "Your own" in page
    assert "Reset your password" in page
    assert "Has arrived" not in page


def test_only_a_mail_that_waits_has_a_next_attempt(organizer: Client, delivered: OutgoingMail) -> None:
    waits_for_none = re.compile(r'field-next_attempt[^>]*">–<')
    assert len(waits_for_none.findall(organizer.get(reverse(LIST)).text)) == 2
    OutgoingMail.objects.filter(pk=delivered.pk).update(delivered_at=None)
    assert len(waits_for_none.findall(organizer.get(reverse(LIST)).text)) == 1


def test_a_delivered_mail_has_no_text_left_to_send_again(organizer: Client, delivered: OutgoingMail) -> None:
    assert "0 emails will be sent again." in run(organizer, reverse(LIST), "send_again", delivered.pk).text
    delivered.refresh_from_db()
    assert delivered.delivered_at is not None


def test_organizers_let_a_mail_be_sent_again(organizer: Client, failed: OutgoingMail) -> None:
    run(organizer, reverse(LIST), "send_again", failed.pk)
    failed.refresh_from_db()
    assert (failed.attempts, failed.failed_at) == (0, None)
    assert AuditEntry.objects.filter(action="outgoingmail.sent_again").count() == 1


def test_staff_without_the_permission_cannot(client: Client, failed: OutgoingMail) -> None:
    client.force_login(make_user(is_staff=True))
    run(client, reverse(LIST), "send_again", failed.pk)
    failed.refresh_from_db()
    assert failed.failed_at is not None
