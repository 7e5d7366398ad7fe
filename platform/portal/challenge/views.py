"""The pages of the tracks."""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.challenge.deadlines import Deadline, calendar
from portal.challenge.facts import facts_of, files_of
from portal.challenge.models import Track

WITH_PHASES = Track.objects.prefetch_related("phases")


@require_safe
def track_list(request: HttpRequest) -> HttpResponse:
    return render(request, "challenge/list.html", {"tracks": WITH_PHASES.all()})


@require_safe
def track(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the rules of one track and how to take part."""
    found = get_object_or_404(WITH_PHASES.all(), slug=slug)
    phases, now = list(found.phases.all()), timezone.now()
    context = {
        "track": found,
        "phase": found.nearest_phase(now),
        "phases": phases,
        "current": found.phase_at(now),
        "changes": found.rule_changes.all(),
        "facts": facts_of(found),
        "files": files_of(found),
    }
    return render(request, "challenge/track.html", context)


@require_safe
def deadline(_request: HttpRequest, slug: str) -> HttpResponse:
    """Send the times at which the track's phases end, for calendars."""
    shown = get_object_or_404(Track, slug=slug)
    phases = list(shown.phases.all())
    deadlines = [
        Deadline(
            f"{shown.slug}-{phase.pk}@{settings.ALLOWED_HOSTS[0]}",
            f"PFL-DocVQA: {shown} closes" if len(phases) == 1 else f"PFL-DocVQA: {shown}, {phase} ends",
            phase.ends_at,
        )
        for phase in phases
        if phase.ends_at
    ]
    if not deadlines:
        raise Http404
    content = calendar(deadlines, settings.SITE_URL + shown.get_absolute_url(), timezone.now())
    disposition = f'attachment; filename="{shown.slug}.ics"'
    return HttpResponse(
        content, content_type="text/calendar; charset=utf-8", headers={"Content-Disposition": disposition}
    )
