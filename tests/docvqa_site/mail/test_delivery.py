import time
from datetime import timedelta

import pytest
from django.core.mail import EmailMessage, EmailMultiAlternatives, send_mail
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings

from docvqa_site.mail import delivery
from docvqa_site.mail.backend import FORGOTTEN
from docvqa_site.mail.delivery import MAX_ATTEMPTS, MailServerError, deliver_due
from docvqa_site.mail.models import OutgoingMail
from tests.services.mail import HangingMailServer, MailServer

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def outbox(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "docvqa_site.mail.backend.OutboxBackend"
    settings.MAIL_DELIVERY_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_TIMEOUT = "127.0.0.1", 1


@pytest.fixture
def server(settings: Settings):
    with MailServer() as server:
        settings.EMAIL_PORT = server.port
        yield server


def write(recipient="ada@example.org", subject="Your run has been scored"):
    send_mail(subject, "ANLS 0.9", "site@example.org", [recipient])


def make_due() -> None:
    OutgoingMail.objects.update(due_at=timezone.now())


def test_a_mail_waits_in_the_database_and_is_sent_once(server: MailServer) -> None:
    write()
    assert server.received == []
    assert deliver_due() == 1
    (message,) = server.received
    assert (message["To"], message["Subject"]) == ("ada@example.org", "Your run has been scored")
    make_due()
    assert deliver_due() == 0


def test_of_a_delivered_mail_nothing_stays_but_to_whom_about_what_and_when(server: MailServer) -> None:
    message = EmailMultiAlternatives(
        "Reset your password", "https://site.example/secret", "site@example.org", ["ada@example.org"],
        headers={"List-Unsubscribe": "<https://site.example/secret>"}, reply_to=["ben@example.org"],
    )  # fmt: skip
    message.attach_alternative("<p>https://site.example/secret</p>", "text/html")
    message.send()
    deliver_due()
    (row,) = OutgoingMail.objects.values()
    assert (row["recipients"], row["subject"]) == (["ada@example.org"], "Reset your password")
    assert row["delivered_at"] is not None
    assert "secret" not in str(row)
    assert "ben@example.org" not in str(row)


def test_of_one_that_asks_for_it_nothing_stays_at_all(server: MailServer) -> None:
    headers = {FORGOTTEN: "yes"}
    EmailMessage("Deleted", "text", "site@example.org", ["ada@example.org"], headers=headers).send()
    deliver_due()
    assert FORGOTTEN not in server.received[0]
    assert not OutgoingMail.objects.exists()


def test_a_late_rejection_does_not_undo_a_delivery_by_another_process(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write()
    server.rejected["ada@example.org"] = "550"
    put_off = delivery._put_off

    def delivered_meanwhile(mail: OutgoingMail, error: Exception) -> None:
        OutgoingMail.objects.update(delivered_at=timezone.now())
        put_off(mail, error)

    monkeypatch.setattr(delivery, "_put_off", delivered_meanwhile)
    deliver_due()
    assert OutgoingMail.objects.get().failed_at is None


def test_a_mail_is_part_of_the_transaction_that_it_reports(server: MailServer) -> None:
    with transaction.atomic():
        write()
        transaction.set_rollback(True)
    assert deliver_due() == 0


def test_html_headers_and_reply_addresses_arrive(server: MailServer) -> None:
    message = EmailMultiAlternatives(
        "Hello", "text", "site@example.org", ["a@example.org"], reply_to=["team@example.org"]
    )
    message.extra_headers["X-Team"] = "Engines"
    message.attach_alternative("<p>text</p>", "text/html")
    message.send()
    deliver_due()
    (received,) = server.received
    assert (received["X-Team"], received["Reply-To"]) == ("Engines", "team@example.org")
    assert received.get_content_type() == "multipart/alternative"


def test_what_the_outbox_cannot_keep_is_rejected_at_once() -> None:
    with pytest.raises(ValueError, match="without attachments"):
        EmailMessage("Hello", "text", "site@example.org", ["a@example.org"], bcc=["b@example.org"]).send()


def test_a_server_that_is_away_costs_no_attempt(settings: Settings) -> None:
    settings.EMAIL_PORT = 1
    write()
    with pytest.raises(MailServerError):
        deliver_due()
    mail = OutgoingMail.objects.get()
    assert (mail.attempts, mail.failed_at) == (0, None)


def test_a_server_that_hangs_is_given_up_within_the_timeout(settings: Settings) -> None:
    write()
    with HangingMailServer() as server:
        settings.EMAIL_PORT = server.port
        begun = time.monotonic()
        with pytest.raises(MailServerError):
            deliver_due()
    assert time.monotonic() - begun < 20
    assert OutgoingMail.objects.get().attempts == 0


def test_a_mail_that_is_rejected_for_now_is_tried_again_later(server: MailServer) -> None:
    server.rejected["ada@example.org"] = "451"
    write()
    write("ben@example.org")
    deliver_due()
    assert [message["To"] for message in server.received] == ["ben@example.org"]
    mail = OutgoingMail.objects.get(delivered_at=None)
    assert mail.due_at > timezone.now() + timedelta(seconds=30)
    assert deliver_due() == 0
    server.rejected.clear()
    make_due()
    deliver_due()
    assert len(server.received) == 2


def test_a_recipient_that_does_not_exist_is_given_up_at_once(server: MailServer) -> None:
    server.rejected["ada@example.org"] = "550"
    write()
    deliver_due()
    mail = OutgoingMail.objects.get()
    assert mail.failed_at is not None
    assert "550" in mail.error


def test_a_mail_is_given_up_after_so_many_attempts(server: MailServer) -> None:
    server.rejected["ada@example.org"] = "451"
    write()
    for _ in range(MAX_ATTEMPTS):
        make_due()
        deliver_due()
    assert OutgoingMail.objects.get().failed_at is not None
    make_due()
    assert deliver_due() == 0


def test_a_mail_that_another_process_is_sending_is_left_to_it(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write()
    claim = delivery._claim

    def claim_twice(mail: OutgoingMail) -> bool:
        assert claim(mail)
        return claim(mail)

    monkeypatch.setattr(delivery, "_claim", claim_twice)
    assert deliver_due() == 0
    assert server.received == []


def test_a_site_without_a_mail_server_writes_mails_to_files(settings: Settings, tmp_path) -> None:
    settings.MAIL_DELIVERY_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = tmp_path
    write()
    assert deliver_due() == 1
    (file,) = tmp_path.iterdir()
    assert "Your run has been scored" in file.read_text()
