"""News: what the organizers announce to everyone."""

from datetime import datetime

from django.db import models
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone


class NewsItem(models.Model):
    """One announcement. It appears at `published_at`, which may be in the future."""

    title = models.CharField(max_length=150)
    slug = models.SlugField(max_length=150, unique=True, help_text="The last part of the address.")
    text = models.TextField(help_text="Markdown.")
    published_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        ordering = ["-published_at", "-pk"]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        """Return the address of the announcement."""
        return reverse("news:item", args=[self.slug])


def published(now: datetime | None = None) -> QuerySet[NewsItem]:
    """Return the announcements that have appeared, newest first."""
    return NewsItem.objects.filter(published_at__lte=now or timezone.now())
