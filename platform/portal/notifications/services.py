"""Changes to notifications."""

from django.db.models import QuerySet
from django.utils import timezone

from portal.notifications.models import Notification


def mark_read(notifications: QuerySet[Notification]) -> None:
    """Mark these as read; of one that was read before, the time stays."""
    notifications.filter(read_at__isnull=True).update(read_at=timezone.now())
