"""How long notifications are kept."""

from datetime import datetime

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from docvqa_site.notifications.models import Notification
from docvqa_site.periods import MOST_NOTIFICATIONS, cutoff


def remove_notifications(now: datetime, limit: int) -> int:
    """Remove notifications that are old, and the oldest of people who have many; returns how many."""
    old = []
    if before := cutoff("notifications", now):
        old = list(Notification.objects.filter(created_at__lt=before).values_list("pk", flat=True)[:limit])
    place = Window(RowNumber(), partition_by="user", order_by=[F("created_at").desc(), F("pk").desc()])
    ranked = Notification.objects.order_by().annotate(place=place).filter(place__gt=MOST_NOTIFICATIONS)
    surplus = list(ranked.values_list("pk", flat=True)[:limit])
    return Notification.objects.filter(pk__in=[*old, *surplus]).delete()[0]
