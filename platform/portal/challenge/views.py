"""The pages of the tracks."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

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
