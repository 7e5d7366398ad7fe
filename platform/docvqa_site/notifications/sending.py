"""Notifying people: a row for each on the site, and a mail to those who want it, in the caller's transaction."""

from collections.abc import Iterable, Sequence

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.db import transaction
from django.urls import reverse

from docvqa_site.accounts.models import User
from docvqa_site.mail.backend import ABOUT_REVIEW
from docvqa_site.notifications.kinds import ABOUT_REVIEWS, ALWAYS_MAILED, OFFICIAL, Kind
from docvqa_site.notifications.models import MailTurnedOff, Notification
from docvqa_site.notifications.preferences import link_token


@transaction.atomic
def notify(
    people: Iterable[User],
    kind: Kind,
    subject: str,
    paragraphs: Iterable[str],
    *,
    key: str = "",
    is_official: bool = False,
) -> int:
    """Notify these people, and return how many they are. A last paragraph that is an address of the site is a link.

    With a `key`, those who were notified under it before are left out. A decision that `is_official` is mailed to all.
    """
    # An erased person has no address any more.
    recipients = [user for user in people if user.erased_at is None]
    if key:
        before = set(Notification.objects.filter(key=key).values_list("user_id", flat=True))
        recipients = [user for user in recipients if user.pk not in before]
    subject, texts = " ".join(subject.split()), list(paragraphs)
    add_notifications(recipients, kind, subject, texts, key=key)
    turned_off = MailTurnedOff.objects.filter(kind=kind, user__in=recipients).values_list(
        "user_id", flat=True
    )
    off = set() if is_official else set(turned_off)
    mails = [
        _mail(user, kind, subject, texts, is_official=is_official)
        for user in recipients
        if user.pk not in off
    ]
    get_connection().send_messages(mails)
    return len(recipients)


def add_notifications(
    people: Iterable[User], kind: Kind, subject: str, paragraphs: Sequence[str], *, key: str = ""
) -> None:
    """Notify these people on the site alone, for what a mail of its own reports."""
    page = ""
    if paragraphs and paragraphs[-1].startswith(f"{settings.SITE_URL}/"):
        *paragraphs, address = paragraphs
        page = address.removeprefix(settings.SITE_URL)
    text = "\n\n".join(paragraphs)
    Notification.objects.bulk_create(
        [
            Notification(user=user, kind=kind, subject=subject, text=text, page=page, key=key)
            for user in people
        ],
        # Of two processes that notify under one key, one adds the row.
        ignore_conflicts=bool(key),
    )


def _mail(
    user: User, kind: Kind, subject: str, paragraphs: Sequence[str], *, is_official: bool
) -> EmailMessage:
    preferences = settings.SITE_URL + reverse("notifications:list")
    headers = {"Auto-Submitted": "auto-generated"}
    if kind in ABOUT_REVIEWS:
        headers[ABOUT_REVIEW] = "yes"
    if kind in ALWAYS_MAILED:
        footer = "You can't unsubscribe from emails about your account's security."
    elif is_official:
        footer = f"You can't unsubscribe from emails about {OFFICIAL}."
    else:
        link = settings.SITE_URL + reverse("notifications:unsubscribe", args=[link_token(user, kind)])
        # RFC 8058: the reader's mail program ends these mails by a POST to the link, without a log-in.
        headers |= {"List-Unsubscribe": f"<{link}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
        footer = (
            f"You're receiving this email because “{kind.label}” is turned on in your notification "
            f"settings.\nUnsubscribe: {link}\nAll settings: {preferences}"
        )
    return EmailMessage(
        settings.ACCOUNT_EMAIL_SUBJECT_PREFIX + subject,
        "\n\n".join([*paragraphs, f"-- \n{footer}\n"]),
        settings.DEFAULT_FROM_EMAIL,
        [user.email],
        headers=headers,
    )
