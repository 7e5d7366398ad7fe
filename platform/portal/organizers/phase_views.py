"""The form of a phase: a change is previewed with its effect, and made when it is confirmed."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts.requests import UserRequest
from portal.challenge.models import Phase, Track
from portal.organizers.access import for_organizers
from portal.organizers.forms import PhaseForm
from portal.organizers.phase_changes import (
    changes_of,
    may_remove,
    preview_phase,
    removal_sentences,
    remove_phase,
    save_phase,
)


@require_http_methods(["GET", "HEAD", "POST"])
@for_organizers("challenge.change_track")
def add_phase(request: UserRequest, slug: str) -> HttpResponseBase:
    """Add a phase to a track."""
    track = get_object_or_404(Track, slug=slug)
    return _edit(request, track, None, Phase(track=track, name=""))


@require_http_methods(["GET", "HEAD", "POST"])
@for_organizers("challenge.change_track")
def phase(request: UserRequest, slug: str, phase_id: int) -> HttpResponseBase:
    """Change a phase of a track."""
    stored, edited = (_found(slug, phase_id) for _ in range(2))
    return _edit(request, stored.track, stored, edited)


@require_POST
@for_organizers("challenge.change_track")
def remove(request: UserRequest, slug: str, phase_id: int) -> HttpResponseBase:
    """Remove a phase in which nothing was submitted."""
    if remove_phase(_found(slug, phase_id), actor=request.user):
        messages.success(request, "The phase has been removed. The change is listed on the track page.")
    else:
        messages.error(
            request, "A phase can be removed only if it has no submissions and isn't the only one."
        )
    return redirect("organizers:track", slug)


def _found(slug: str, phase_id: int) -> Phase:
    found: Phase = get_object_or_404(Phase.objects.select_related("track"), track__slug=slug, pk=phase_id)
    return found


def _removal_warning(stored: Phase) -> str:
    effect = " ".join(removal_sentences(stored, timezone.now()))
    return f"The phase has no submissions. {effect} The removal will be listed publicly."


def _edit(request: UserRequest, track: Track, stored: Phase | None, edited: Phase) -> HttpResponseBase:
    """Show the form of a phase; a POST shows what it does, and stores it once it carries what was shown."""
    form = PhaseForm(request.POST or None, instance=edited)
    context: dict[str, Any] = {
        "track": track,
        "phase": stored,
        "form": form,
        "removal": _removal_warning(stored) if stored is not None and may_remove(stored) else "",
    }
    if request.method != "POST" or not form.is_valid():
        return render(request, "organizers/phase.html", context)
    if stored is not None and not changes_of(stored, edited):
        messages.info(request, "Nothing would change.")
        return redirect("organizers:track", track.slug)
    seen, reason = request.POST.get("seen", ""), form.cleaned_data["reason"]
    if seen and save_phase(edited, reason, seen, actor=request.user):
        messages.success(
            request, f"{track}: the phase has been saved. The change is listed on the track page."
        )
        return redirect("organizers:track", track.slug)
    if seen:
        messages.warning(request, "The effect has changed in the meantime; please review it again.")
    context["preview"] = preview_phase(stored, edited, timezone.now())
    return render(request, "organizers/phase.html", context)
