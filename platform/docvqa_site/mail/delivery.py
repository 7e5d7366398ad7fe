"""Delivers the mails of the outbox, each at least once.

While the mail server can't be reached, mails wait and none is counted as attempted. One that the server rejects, or
during which it hangs, is tried again later and later, and given up after `MAX_ATTEMPTS`.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from smtplib import SMTPException, SMTPRecipientsRefused, SMTPResponseException

from django.conf import settings
from django.core.mail import get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db.models import F, QuerySet
from django.utils import timezone

from docvqa_site.mail.backend import FORGOTTEN, restored
from docvqa_site.mail.models import WAITING, OutgoingMail

logger = logging.getLogger(__name__)

BATCH = 50
# Longer than any one attempt, which `EMAIL_TIMEOUT` bounds at each of its few exchanges with the server.
LEASE = timedelta(minutes=10)
PAUSES = [timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 60, 120, 240, 480, 720)]
MAX_ATTEMPTS = len(PAUSES) + 1
PERMANENT = 500
# What the server says of one mail; any other error would meet the next mail as well.
ABOUT_THE_MAIL = (SMTPRecipientsRefused, SMTPResponseException, ValueError)


class MailServerError(Exception):
    """The mail server can't be reached, or hangs; the message says why."""


def waiting() -> QuerySet[OutgoingMail]:
    """Return the mails that will be tried, or tried again."""
    return OutgoingMail.objects.filter(WAITING)


def deliver_due() -> int:
    """Deliver some mails that are due, and return how many were tried.

    Raises `MailServerError` if the server can't be reached, or stops answering; at most one mail counts that as an
    attempt.
    """
    due = list(waiting().filter(due_at__lte=timezone.now())[:BATCH])
    if not due:
        return 0
    with _connected() as connection:
        return sum(_deliver(mail, connection) for mail in due)


@contextmanager
def _connected() -> Iterator[BaseEmailBackend]:
    connection = get_connection(settings.MAIL_DELIVERY_BACKEND)
    try:
        connection.open()
    except (SMTPException, OSError) as error:
        raise MailServerError(str(error) or type(error).__name__) from error
    try:
        yield connection
    finally:
        connection.close()


def _deliver(mail: OutgoingMail, connection: BaseEmailBackend) -> bool:
    """Try to deliver one mail; return whether it was this process's turn."""
    if not _claim(mail):
        return False
    try:
        connection.send_messages([restored(mail)])
    except (SMTPException, OSError, ValueError) as error:
        # The connection's state is unknown; the next mail opens it again.
        connection.close()
        _put_off(mail, error)
        if not isinstance(error, ABOUT_THE_MAIL):
            raise MailServerError(str(error) or type(error).__name__) from error
    else:
        _keep_trace(mail)
        logger.info("Delivered mail %d after %d attempts.", mail.pk, mail.attempts + 1)
    return True


def _keep_trace(mail: OutgoingMail) -> None:
    """Mark the mail as delivered, without anything that it says: a link in it may work once."""
    row = OutgoingMail.objects.filter(pk=mail.pk)
    if FORGOTTEN in mail.headers:
        row.delete()
        return
    row.update(
        delivered_at=timezone.now(), failed_at=None, error="", body="", html="", headers={}, reply_to=[]
    )


def _claim(mail: OutgoingMail) -> bool:
    """Move the mail out of other processes' reach; False if one of them was faster."""
    claimed = waiting().filter(pk=mail.pk, due_at=mail.due_at)
    return claimed.update(due_at=timezone.now() + LEASE, attempts=F("attempts") + 1) == 1


def _put_off(mail: OutgoingMail, error: Exception) -> None:
    attempts, now = mail.attempts + 1, timezone.now()
    described = f"{type(error).__name__}: {error}"
    # Another process may have delivered it since the lease ended.
    row = OutgoingMail.objects.filter(pk=mail.pk, delivered_at=None)
    if _is_permanent(error) or attempts >= MAX_ATTEMPTS:
        row.update(failed_at=now, error=described)
        logger.error("Gave up on mail %d after %d attempts: %s", mail.pk, attempts, type(error).__name__)
    else:
        row.update(due_at=now + PAUSES[attempts - 1], error=described)
        logger.warning("Mail %d could not be delivered: %s", mail.pk, type(error).__name__)


def _is_permanent(error: Exception) -> bool:
    """Return whether no later attempt can succeed: every recipient is rejected for good, or the mail is malformed."""
    if isinstance(error, SMTPRecipientsRefused):
        return all(code >= PERMANENT for code, _ in error.recipients.values())
    return isinstance(error, ValueError)
