"""The pages of the tracks."""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.challenge.deadlines import calendar
from portal.challenge.models import Track


@require_safe
def track_list(request: HttpRequest) -> HttpResponse:
    """List all tracks."""
    return render(request, "challenge/list.html", {"tracks": Track.objects.all()})


@require_safe
def track(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the rules of one track and how to take part."""
    found = get_object_or_404(Track, slug=slug)
    return render(request, "challenge/track.html", {"track": found, "changes": found.rule_changes.all()})


@require_safe
def deadline(_request: HttpRequest, slug: str) -> HttpResponse:
    """Send the time at which the track closes, for calendars."""
    closing = get_object_or_404(Track, slug=slug)
    if closing.closes_at is None:
        raise Http404
    content = calendar(
        f"{closing.slug}@{settings.ALLOWED_HOSTS[0]}",
        f"PFL-DocVQA: {closing} closes",
        settings.SITE_URL + closing.get_absolute_url(),
        closing.closes_at,
        timezone.now(),
    )
    disposition = f'attachment; filename="{closing.slug}.ics"'
    return HttpResponse(
        content, content_type="text/calendar; charset=utf-8", headers={"Content-Disposition": disposition}
    )
