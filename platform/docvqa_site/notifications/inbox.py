"""A person's notifications: found, counted, and marked as read."""

from django.db.models import QuerySet
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.accounts.requests import UserRequest
from docvqa_site.notifications.models import Notification

# More are counted as so many: nobody needs the exact number.
MOST_COUNTED = 100


def notifications_of(user: User) -> QuerySet[Notification]:
    """Return the person's notifications, newest first."""
    return Notification.objects.filter(user=user)


def unread_count(user: User) -> int:
    """Return how many notifications the person hasn't read, `MOST_COUNTED` at most."""
    return notifications_of(user).filter(read_at__isnull=True)[:MOST_COUNTED].count()


def mark_read(notifications: QuerySet[Notification]) -> None:
    """Mark these as read; of one that was read before, the time stays."""
    notifications.filter(read_at__isnull=True).update(read_at=timezone.now())


def mark_opened(request: UserRequest) -> None:
    """Mark the visitor's notifications of the requested page as read: whoever opens it needs no reminder of it."""
    mark_read(notifications_of(request.user).filter(page=request.path))
