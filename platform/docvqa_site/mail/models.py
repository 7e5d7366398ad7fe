"""Mails that wait to be delivered. A delivered one is deleted: it may contain a link that works once."""

from django.db import models
from django.utils import timezone


class OutgoingMail(models.Model):
    """One mail that the site has yet to deliver, or has given up on (`failed_at`).

    `due_at` is when the next attempt may begin. Whoever begins one moves it into the future first, so that two
    processes don't send the same mail, and one that dies loses none.
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
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["due_at", "pk"]
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(failed_at__isnull=True), name="mails_to_send")
        ]

    def __str__(self) -> str:
        return f"{self.subject} to {', '.join(self.recipients)}"
