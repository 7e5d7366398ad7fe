"""Mails that were delivered or given up are removed after some time; those that wait are not."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from docvqa_site.mail.models import OutgoingMail
from docvqa_site.submissions.retention import clean_up

pytestmark = pytest.mark.django_db

LONG_AGO = timedelta(days=5000)


def make_mail(
    *, given_up: timedelta | None = None, delivered: timedelta | None = None, created: timedelta = LONG_AGO
) -> OutgoingMail:
    now = timezone.now()
    failed_at: datetime | None = None if given_up is None else now - given_up
    delivered_at = None if delivered is None else now - delivered
    return OutgoingMail.objects.create(
        subject="Your score", body="…", sender="site@example.org", recipients=["ada@example.org"],
        created_at=now - created, failed_at=failed_at, delivered_at=delivered_at,
    )  # fmt: skip


def test_those_that_were_given_up_long_ago_are_removed() -> None:
    make_mail(given_up=timedelta(days=31))
    kept = [make_mail(given_up=timedelta(days=29)), make_mail()]
    assert clean_up()["mails"] == 1
    assert set(OutgoingMail.objects.all()) == set(kept)


def test_so_are_those_that_were_delivered_long_ago() -> None:
    make_mail(delivered=timedelta(days=31))
    kept = make_mail(delivered=timedelta(days=29))
    assert clean_up()["mails"] == 1
    assert OutgoingMail.objects.get() == kept


def test_of_many_the_oldest_are_removed_first() -> None:
    kept = make_mail(given_up=timedelta(days=40))
    make_mail(given_up=timedelta(days=50))
    assert clean_up(limit=1)["mails"] == 1
    assert OutgoingMail.objects.get() == kept


def test_a_setting_of_no_days_turns_the_rule_off(settings: Settings) -> None:
    settings.RETENTION_MAIL_DAYS = 0
    make_mail(given_up=LONG_AGO)
    assert clean_up()["mails"] == 0
