"""Changes to a person's notifications."""

from django.utils import timezone

from portal.accounts.models import User
from portal.notifications.models import Notification
from portal.notifications.selectors import notifications_of


def mark_read(user: User, until: int | None = None) -> int:
    """Mark the person's notifications as read, up to the one numbered `until`; return how many were unread."""
    unread = notifications_of(user).filter(read_at__isnull=True)
    if until is not None:
        unread = unread.filter(pk__lte=until)
    return unread.update(read_at=timezone.now())


def mark_one_read(notification: Notification) -> None:
    """Mark one as read; when it was read first, stays."""
    Notification.objects.filter(pk=notification.pk, read_at__isnull=True).update(read_at=timezone.now())
