"""Mails that wait, and for some time what became of those that don't: to whom, about what, and when.

The text of a delivered mail is emptied: it may contain a link that works once.
"""

from django.db import models
from django.utils import timezone

# The condition that a mail is tried, or tried again.
WAITING = models.Q(failed_at__isnull=True, delivered_at__isnull=True)


class OutgoingMail(models.Model):
    """One mail that waits, that the mail server has taken (`delivered_at`), or that was given up (`failed_at`).

    `due_at` is when the next attempt may begin. Whoever begins one moves it into the future first, so that two
    processes don't send the same mail, and one that dies loses none.

    One `about_review` of a proof says who reviews it, or what was decided.
    """

    subject = models.TextField()
    body = models.TextField()
    html = models.TextField(blank=True)
    sender = models.CharField(max_length=320)
    recipients = models.JSONField()
    reply_to = models.JSONField(default=list)
    headers = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    due_at = models.DateTimeField(default=timezone.now)
    attempts = models.PositiveSmallIntegerField(default=0)
    failed_at = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField("given to the mail server", null=True, blank=True)
    error = models.TextField(blank=True)
    about_review = models.BooleanField(default=False)

    class Meta:
        verbose_name = "email"
        ordering = ["due_at", "pk"]
        indexes = [models.Index(fields=["due_at"], condition=WAITING, name="mails_waiting")]

    def __str__(self) -> str:
        return f"{self.subject} to {', '.join(self.recipients)}"

    @property
    def state(self) -> str:
        if self.delivered_at:
            return "delivered"
        return "failed" if self.failed_at else "waiting"
