"""The pages of the tracks."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.challenge import registering
from docvqa_site.challenge.deadlines import Deadline, calendar
from docvqa_site.challenge.facts import details_of, facts_of, files_of
from docvqa_site.challenge.forms import AnswersForm
from docvqa_site.challenge.models import Registration, RegistrationState, TeamRegistration, Track
from docvqa_site.challenge.sections import with_sections
from docvqa_site.teams.selectors import team_of

WITH_PHASES = Track.objects.prefetch_related("phases")


@require_safe
def track_list(request: HttpRequest) -> HttpResponse:
    return render(request, "challenge/list.html", {"tracks": WITH_PHASES.all()})


@require_safe
def track(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the rules of one track and how to take part."""
    return render(request, "challenge/track.html", rules_of(get_object_or_404(WITH_PHASES.all(), slug=slug)))


def rules_of(found: Track) -> dict[str, Any]:
    """Return what the page of a track's rules shows."""
    phases, now = list(found.phases.all()), timezone.now()
    return {
        "track": found,
        "rules": with_sections(found.description),
        "phase": found.nearest_phase(now),
        "phases": phases,
        "current": found.phase_at(now),
        "changes": found.rule_changes.all(),
        "facts": facts_of(found),
        "details": details_of(found),
        "files": files_of(found),
    }


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def register(request: UserRequest, slug: str) -> HttpResponse:
    """Show a team its registration for a track; a POST registers it."""
    found, team = get_object_or_404(Track, slug=slug), team_of(request.user)
    form = AnswersForm(found, request.POST if request.method == "POST" else None)
    if team and found.registration != Registration.NONE and form.is_valid():
        made = registering.register(team, found, form.answers, request.user)
        waits = made.state == RegistrationState.WAITING
        then = "asks to be admitted. The organizers will decide." if waits else "is registered."
        messages.success(request, f"{team} {then}")
        return redirect("challenge:register", slug)
    registration = TeamRegistration.objects.filter(team=team, track=found).first() if team else None
    context = {"track": found, "team": team, "form": form, "registration": registration}
    return render(request, "challenge/register.html", context)


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
