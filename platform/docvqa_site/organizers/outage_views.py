"""The page of outages: planned maintenance, what was noticed, and making up for it by extending phases."""

from collections.abc import Mapping

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.selectors import organized_tracks
from docvqa_site.liveness.models import Outage
from docvqa_site.organizers import outages
from docvqa_site.organizers.access import FORM, POST, for_organizers, organized_phase
from docvqa_site.organizers.forms import OutageForm

MOST_LISTED = 50


@for_organizers("challenge.change_track", methods=FORM)
def overview(request: UserRequest) -> HttpResponseBase:
    """Show the outages of each phase with what extending it does; a POST adds what was previewed.

    Outages may concern every track, so organizers of single tracks can't change them.
    """
    changes = not request.user.organizes_single_tracks
    if request.method == "POST" and not changes:
        raise PermissionDenied
    form = OutageForm(request.POST or None)
    if _is_entered(request, form):
        return _confirmed(request, form)
    now = timezone.now()
    organized = organized_tracks(request.user).filter(is_draft=False)
    slugs = list(organized.values_list("slug", flat=True))
    names = dict(Track.objects.values_list("slug", "name"))
    coming = Outage.objects.filter(starts_at__gte=now)
    found = [*coming, *reversed(outages.begun(now))]
    listed = [one for one in found if changes or any(map(one.began_for, slugs))][:MOST_LISTED]
    context = {
        "form": form if changes else None,
        "now": now,
        "downtimes": [
            (one, outages.extension_of(one, now))
            for one in outages.downtimes(now, outages.unclosed_phases(organized))
        ],
        "outages": [(one, one.is_going_on(now), _tracks(one, names)) for one in listed],
    }
    return render(request, "organizers/outages.html", context)


@for_organizers("challenge.change_track", methods=FORM, of_every_track=True)
def edit(request: UserRequest, outage_id: int) -> HttpResponseBase:
    """Show what an organizer entered; a POST changes it, once the effect was seen."""
    outage = get_object_or_404(Outage, pk=outage_id)
    if not outage.is_entered:
        raise Http404("measured by the site")
    form = OutageForm(request.POST or None, instance=outage)
    if _is_entered(request, form):
        return _confirmed(request, form, Outage.objects.get(pk=outage_id))
    return render(request, "organizers/outage.html", {"form": form, "outage": outage})


def _is_entered(request: UserRequest, form: OutageForm) -> bool:
    """Return whether the form has an entry that is to be shown or made."""
    return request.method == "POST" and form.is_valid() and "edit" not in request.POST


def _confirmed(request: UserRequest, form: OutageForm, outage: Outage | None = None) -> HttpResponseBase:
    """Show what is entered as an outage, or in place of this one, with its effect; or make it once that was seen."""
    entry, now = outages.Entry(**form.cleaned_data), timezone.now()
    if request.POST.get("seen") != entry.digest(now):
        names = dict(Track.objects.values_list("slug", "name"))
        context = {
            "form": form,
            "outage": outage,
            "entry": entry,
            "seen": entry.digest(now),
            "is_over": entry.is_over(now),
            "lost": outages.lost_to(entry, now),
            "last_days": outages.last_days(entry, now),
            "track": names.get(entry.track),
        }
        return render(request, "organizers/outage.html", context)
    if outage:
        outages.change_outage(outage, entry, actor=request.user)
    else:
        outages.add_outage(entry, actor=request.user)
    done = "changed" if outage else "added"
    messages.success(request, f"The maintenance or outage has been {done}.")
    return redirect("organizers:outages")


def _tracks(outage: Outage, names: Mapping[str, str]) -> str:
    """Return for which tracks an outage counts."""
    if outage.track:
        return names.get(outage.track, outage.track)
    found = [name for slug, name in names.items() if outage.began_for(slug)]
    if len(found) == len(names):
        return "all"
    return ", ".join(found) or "none: no run waited"


@for_organizers("challenge.change_track", methods=POST)
def extend(request: UserRequest, slug: str, phase_id: int) -> HttpResponseBase:
    phase = organized_phase(request.user, slug, phase_id)
    if outages.extend(phase, request.POST.get("seen", ""), actor=request.user):
        messages.success(
            request,
            f"“{phase}” has been extended. Teams are notified, and every page shows a notice for a week.",
        )
    else:
        messages.warning(request, "The effect has changed in the meantime; please review it again.")
    return redirect("organizers:outages")


@for_organizers("challenge.change_track", methods=POST, of_every_track=True)
def withdraw(request: UserRequest, outage_id: int) -> HttpResponseBase:
    was_removed = outages.withdraw(get_object_or_404(Outage, pk=outage_id), actor=request.user)
    messages.success(request, "The entry was removed." if was_removed else "It ends now.")
    return redirect("organizers:outages")
