"""Notifications of people, and which kinds of them come by mail."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from docvqa_site.notifications.kinds import Kind


class Notification(models.Model):
    """What one person is notified of. It is kept for a while, and of one person a limited number; see `retention`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notifications")
    kind = models.CharField(max_length=15, choices=Kind.choices)
    subject = models.TextField()
    text = models.TextField(blank=True)
    page = models.CharField(
        max_length=200, blank=True, help_text="The path of the page that the notification is about."
    )
    key = models.CharField(
        max_length=120,
        blank=True,
        help_text="The key of a one-time event, so nobody is notified of it twice.",
    )
    created_at = models.DateTimeField(default=timezone.now)
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(fields=["user", "-created_at"], name="notifications_of_a_person"),
            models.Index(
                fields=["user"], condition=models.Q(read_at__isnull=True), name="unread_notifications"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "key"], condition=~models.Q(key=""), name="notified_once_of_a_key"
            )
        ]

    def __str__(self) -> str:
        return f"{self.subject} to {self.user}"


class MailTurnedOff(models.Model):
    """A person gets no mails of this kind. Without such a row they do."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=15, choices=Kind.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "kind"], name="mail_is_turned_off_once")]

    def __str__(self) -> str:
        return f"no mails about {self.kind} to {self.user}"
