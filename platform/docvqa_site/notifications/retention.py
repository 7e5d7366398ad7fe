"""How long notifications are kept."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Window
from django.db.models.functions import RowNumber

from docvqa_site.notifications.models import Notification

# Of one person.
MOST_KEPT = 200


def remove_notifications(now: datetime, limit: int) -> int:
    """Remove notifications that are old, and the oldest of people who have many; returns how many."""
    old = []
    if settings.RETENTION_NOTIFICATION_DAYS:
        before = now - timedelta(days=settings.RETENTION_NOTIFICATION_DAYS)
        old = list(Notification.objects.filter(created_at__lt=before).values_list("pk", flat=True)[:limit])
    place = Window(RowNumber(), partition_by="user", order_by=[F("created_at").desc(), F("pk").desc()])
    ranked = Notification.objects.order_by().annotate(place=place).filter(place__gt=MOST_KEPT)
    surplus = list(ranked.values_list("pk", flat=True)[:limit])
    return Notification.objects.filter(pk__in=[*old, *surplus]).delete()[0]
