"""Which notifications come by mail, and how a person ends them: on the page, or by the link in a mail (RFC 8058)."""

import re

import pytest
from django.conf import settings
from django.core import mail
from django.test import Client

from docvqa_site.accounts.models import User
from docvqa_site.accounts.signals import security_changed
from docvqa_site.audit.models import AuditEntry
from docvqa_site.notifications.kinds import ALWAYS_MAILED, EXPLANATIONS, Kind
from docvqa_site.notifications.models import MailTurnedOff, Notification
from docvqa_site.notifications.preferences import link_token, mailed_kinds
from docvqa_site.notifications.sending import notify
from tests.docvqa_site.factories import make_organizer, make_user

pytestmark = pytest.mark.django_db

CHOICE = "/account/notifications/mail/"


@pytest.fixture
def ada() -> User:
    return make_user("ada@example.org")


def write(*people: User, kind: Kind = Kind.RESULTS) -> None:
    notify(people, kind, "FedAvg has been\nscored", ["ANLS 0.9.", f"{settings.SITE_URL}/submissions/"])


def link(user: User, kind: Kind = Kind.RESULTS) -> str:
    return f"/unsubscribe/{link_token(user, kind)}/"


def test_a_notification_is_on_the_site_and_in_a_mail(ada: User) -> None:
    write(ada)
    shown = Notification.objects.get(user=ada)
    assert (shown.subject, shown.text, shown.page) == ("FedAvg has been scored", "ANLS 0.9.", "/submissions/")
    (sent,) = mail.outbox
    assert (sent.to, sent.subject) == (["ada@example.org"], "[PFL-DocVQA] FedAvg has been scored")
    assert sent.body.startswith(
        f"ANLS 0.9.\n\n{settings.SITE_URL}/submissions/\n\n-- \n"
        "You're receiving this email because “Your team's results” is turned on in your notification settings."
    )


def test_a_mail_has_the_headers_by_which_mail_programs_end_it(ada: User) -> None:
    write(ada)
    headers = mail.outbox[0].extra_headers
    (address,) = re.findall(r"^<(http\S+)>$", headers["List-Unsubscribe"])
    assert headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert f"Unsubscribe: {address}\n" in mail.outbox[0].body


def test_the_link_ends_mails_of_its_kind_without_a_session_as_often_as_it_is_posted(ada: User) -> None:
    write(ada)
    program = Client(enforce_csrf_checks=True)
    (address,) = re.findall(r"<http://[^/]+(\S+)>", mail.outbox[0].extra_headers["List-Unsubscribe"])
    for _ in range(2):
        response = program.post(address, {"List-Unsubscribe": "One-Click"})
        assert response.status_code == 200
        assert "unsubscribed" in response.content.decode()
    write(ada)
    write(ada, kind=Kind.PROOFS)
    assert [sent.subject for sent in mail.outbox] == ["[PFL-DocVQA] FedAvg has been scored"] * 2
    assert "Reviews of your team's proofs" in mail.outbox[1].body
    assert Notification.objects.count() == 3, "they still appear on the site"
    (entry,) = AuditEntry.objects.filter(action="mail.turned_off")
    assert (entry.actor, entry.details) == (ada, {"kind": "results", "by": "link"})


def test_looking_at_the_link_changes_nothing_and_asks(ada: User) -> None:
    page = Client().get(link(ada))
    assert "Unsubscribe?" in page.content.decode()
    assert "ada@example.org" not in page.content.decode()
    assert page["Cache-Control"].endswith("no-store, private") or "no-store" in page["Cache-Control"]
    assert not MailTurnedOff.objects.exists()


def test_a_link_that_the_site_did_not_sign_does_nothing(ada: User, client: Client) -> None:
    token = link_token(ada, Kind.RESULTS)
    other = make_user()
    signature = token.rpartition(".")[2]
    for forged in (f"{other.pk}.results.{signature}", f"{ada.pk}.proofs.{signature}", "1", "..", token[:-1]):
        assert client.post(f"/unsubscribe/{forged}/").status_code == 404
    assert not MailTurnedOff.objects.exists()
    assert client.delete(link(ada)).status_code == 405


def test_mails_about_security_cannot_be_turned_off(ada: User, client: Client) -> None:
    client.post(link(ada, Kind.SECURITY))
    client.force_login(ada)
    client.post(CHOICE, {"kinds": []})
    security_changed.send(sender=User, user=ada, subject="Your password was set", text="By an organizer.")
    (sent,) = mail.outbox
    assert "List-Unsubscribe" not in sent.extra_headers
    assert "/unsubscribe/" not in sent.body


def test_the_page_turns_mails_off_and_on_again(ada: User, client: Client) -> None:
    client.force_login(ada)
    page = client.get("/account/notifications/").content.decode()
    assert page.count("checked") == 5
    client.post(CHOICE, {"kinds": ["deadlines"]})
    assert mailed_kinds(ada) == [Kind.DEADLINES, Kind.SECURITY]
    client.post(CHOICE, {"kinds": ["deadlines", "results"]})
    assert mailed_kinds(ada) == [Kind.RESULTS, Kind.DEADLINES, Kind.SECURITY]
    actions = AuditEntry.objects.order_by("pk").values_list("action", "details__kind")
    assert list(actions)[-1] == ("mail.turned_on", "results")


def test_what_only_organizers_are_notified_of_is_explained_to_them_alone(ada: User, client: Client) -> None:
    client.force_login(ada)
    assert "For organizers:" not in client.get("/account/notifications/").text
    client.force_login(make_organizer())
    assert client.get("/account/notifications/").text.count("For organizers:") == 2


def test_a_kind_that_is_none_of_ones_own_is_no_choice(ada: User, client: Client) -> None:
    client.force_login(ada)
    client.post(CHOICE, {"kinds": ["results", "operations", "security"]})
    assert not MailTurnedOff.objects.exists()
    client.force_login(make_organizer("review_proofs"))
    page = client.get("/account/notifications/").content.decode()
    assert "Proofs to review" in page
    assert 'aria-labelledby="kind-reviewing" aria-describedby="kind-reviewing-explained"' in page
    assert ">Proofs to review</span>" in page
    assert "Faults of the site" in page


def test_every_kind_is_explained() -> None:
    assert set(EXPLANATIONS) == set(Kind)
    assert {Kind.SECURITY} == ALWAYS_MAILED


def test_mails_to_many_take_as_many_queries_as_to_one(ada: User, django_assert_num_queries) -> None:
    people = [ada, *(make_user() for _ in range(5))]
    # Two of them begin and end the transaction's savepoint.
    with django_assert_num_queries(4):
        write(*people)
    assert len(mail.outbox) == 6
