"""The email backend of the whole site, allauth's mails included: it writes to the outbox and never waits for a server.

A mail becomes part of the transaction that it reports on: it is there if that is committed, and only then.
"""

from collections.abc import Sequence
from typing import Any

from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.core.mail.backends.base import BaseEmailBackend
from typing_extensions import override

from docvqa_site.mail.models import OutgoingMail

# Headers that aren't sent. By one, a mail asks that its row be deleted once it is delivered; another says that it is
# about the review of a proof.
FORGOTTEN, ABOUT_REVIEW = "X-Forgotten-Once-Delivered", "X-About-Review"


class OutboxBackend(BaseEmailBackend):
    """Stores mails for `manage.py deliver_mail`."""

    @override
    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        return len(OutgoingMail.objects.bulk_create([_stored(message) for message in email_messages]))


def _stored(message: EmailMessage) -> OutgoingMail:
    if message.cc or message.bcc or message.attachments:
        raise ValueError("The outbox accepts emails with recipients in To and without attachments.")
    alternatives: list[Any] = getattr(message, "alternatives", [])
    return OutgoingMail(
        subject=str(message.subject),
        body=str(message.body),
        html=next((str(content) for content, kind in alternatives if kind == "text/html"), ""),
        sender=message.from_email,
        recipients=list(message.to),
        reply_to=list(message.reply_to),
        headers={name: str(value) for name, value in message.extra_headers.items() if name != ABOUT_REVIEW},
        about_review=ABOUT_REVIEW in message.extra_headers,
    )


def restored(mail: OutgoingMail) -> EmailMultiAlternatives:
    headers = {name: value for name, value in mail.headers.items() if name != FORGOTTEN}
    message = EmailMultiAlternatives(
        mail.subject, mail.body, mail.sender, mail.recipients, reply_to=mail.reply_to, headers=headers
    )
    if mail.html:
        message.attach_alternative(mail.html, "text/html")
    return message
