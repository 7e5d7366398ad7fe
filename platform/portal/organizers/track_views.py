"""The panel of a track: a change is previewed with its effect, and made when it is confirmed."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from portal.accounts.requests import UserRequest
from portal.challenge.models import Track
from portal.organizers.access import for_organizers
from portal.organizers.forms import TrackForm
from portal.organizers.track_changes import change_track, changes_between, preview


@require_http_methods(["GET", "HEAD", "POST"])
@for_organizers("challenge.change_track")
def track(request: UserRequest, slug: str) -> HttpResponseBase:
    """Show the track's rules; a POST shows what a change does, and makes it once it carries what was shown."""
    # The form writes into its instance, so the stored rules are kept apart.
    stored, edited = get_object_or_404(Track, slug=slug), get_object_or_404(Track, slug=slug)
    form = TrackForm(request.POST or None, instance=edited)
    context: dict[str, Any] = {
        "track": stored,
        "form": form,
        "phases": stored.phases.all(),
        "current": stored.current_phase,
        "changes": stored.rule_changes.all(),
    }
    if request.method != "POST" or not form.is_valid():
        return render(request, "organizers/track.html", context)
    seen, reason = request.POST.get("seen", ""), form.cleaned_data["reason"]
    if seen and change_track(stored, form.cleaned_data, reason, seen, actor=request.user):
        messages.success(
            request, f"{stored}: the rules have been changed. The change is listed on the track page."
        )
        return redirect("organizers:track", slug)
    changes = changes_between(stored, form.cleaned_data)
    if not changes:
        messages.info(request, "Nothing would change.")
        return redirect("organizers:track", slug)
    if seen:
        messages.warning(request, "The effect has changed in the meantime; please review it again.")
    context["preview"] = preview(stored, changes, timezone.now())
    return render(request, "organizers/track.html", context)
