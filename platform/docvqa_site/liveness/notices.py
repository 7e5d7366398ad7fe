"""The notices at the top of every page: planned maintenance, and deadlines that were moved."""

from datetime import datetime

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from docvqa_site.liveness.models import Notice


def shown_notices(request: HttpRequest) -> list[Notice]:
    """Return the notices to show now, the site's own first, then the oldest; those of one request take one query."""
    found: list[Notice] | None = getattr(request, "shown_notices", None)
    if found is None:
        found = _shown_at(timezone.now())
        request.shown_notices = found  # type: ignore[attr-defined]
    return found


def notices_version(request: HttpRequest) -> str:
    """Return what identifies the notices that the page of this request shows, for its ETag."""
    return " ".join(f"{notice.pk} {notice.text}" for notice in shown_notices(request))


def _shown_at(now: datetime) -> list[Notice]:
    stored = Notice.objects.filter(shown_from__lte=now, shown_until__gt=now)
    return [Notice(text=settings.NOTICE), *stored] if settings.NOTICE else list(stored)
