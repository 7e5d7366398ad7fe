"""The panel of a track and of its phases: a change is previewed with its effect, and made when it is confirmed."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.contrib import messages
from django.db.models import Model, Q
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.accounts.requests import UserRequest
from docvqa_site.audit.models import AuditEntry, entries_for
from docvqa_site.audit.sentences import OF_ROLES, described
from docvqa_site.boards.models import FinalResults, newest_results
from docvqa_site.challenge.models import Phase, TeamRegistration, Track
from docvqa_site.challenge.selectors import organized_tracks
from docvqa_site.downloads.models import Download
from docvqa_site.organizers import phase_changes
from docvqa_site.organizers.access import (
    CLOSING,
    FORM,
    POST,
    for_organizers,
    organized_phase,
    reject_competitor,
)
from docvqa_site.organizers.announcements import audiences_for
from docvqa_site.organizers.forms import OfOneKind, PhaseForm, RulesForm, TrackForm
from docvqa_site.organizers.track_changes import Changes, Preview, change_track, changes_between, preview
from docvqa_site.ui.paging import page_of

PAGE_LENGTH = 50


@for_organizers("challenge.change_track", methods=FORM)
def track(request: UserRequest, slug: str) -> HttpResponseBase:
    """Change by which rules the track ranks, or pause it."""
    return _edit_track(request, slug, TrackForm, "organizers/track.html")


@for_organizers("challenge.change_track", methods=FORM)
def rules(request: UserRequest, slug: str) -> HttpResponseBase:
    """Change the track's texts, and what its evaluator applies."""
    return _edit_track(request, slug, RulesForm, "organizers/rules.html")


def _edit_track(
    request: UserRequest, slug: str, form_class: type[OfOneKind], template: str
) -> HttpResponseBase:
    # The form writes into its instance, so the stored rules are kept apart.
    stored, edited = _track(request, slug), _track(request, slug)
    form = form_class(request.POST or None, instance=edited)
    context = {
        "track": stored,
        "form": form,
        "phases": stored.phases.all(),
        "current": stored.current_phase,
        "changes": stored.rule_changes.all(),
        "writes": bool(audiences_for(request.user)),
        "over": _over(stored) if request.user.has_perms(CLOSING) else [],
    }
    return _confirmed(
        request,
        template,
        context,
        changes=lambda: changes_between(stored, form.cleaned_data),
        preview=lambda changes: preview(stored, changes, timezone.now()),
        make=lambda reason, seen: change_track(stored, form.cleaned_data, reason, seen, actor=request.user),
        done="the rules have been changed",
    )


def _over(track: Track) -> list[tuple[Phase, FinalResults | None]]:
    """Return the phases that have ended, or were closed, each with its newest final results."""
    published = {results.phase_id: results for results in newest_results().filter(phase__track=track)}
    now = timezone.now()
    return [
        (phase, published.get(phase.pk))
        for phase in track.phases.all()
        if phase.pk in published or phase.has_ended(now)
    ]


@for_organizers("challenge.change_track")
def history(request: UserRequest, slug: str) -> HttpResponseBase:
    """List what organizers did about the track, its phases, downloads, registrations and people."""
    found = _track(request, slug)
    objects = {
        Track: [found.pk],
        Phase: found.phases.values_list("pk", flat=True),
        TeamRegistration: found.registrations.values_list("pk", flat=True),
    }
    about = Q()
    for model, keys in objects.items():
        about |= Q(object_type=model._meta.label_lower, object_id__in=[str(key) for key in keys])
    about |= Q(object_type=Download._meta.label_lower, details__track=found.pk)
    # Roles in every track are in no track's history, although their invitations are kept with one.
    of_every_track = Q(action__startswith="staff.", details__has_key="role", details__role__in=list(OF_ROLES))
    entries = entries_for(request.user).filter(about).exclude(of_every_track).select_related("actor")
    page = page_of(entries, PAGE_LENGTH, request.GET.get("page"))
    context = {
        "track": found,
        "page": page,
        "described": described(page, request, known=_named_in(page.object_list, found)),
    }
    return render(request, "organizers/history.html", context)


def _named_in(entries: Iterable[AuditEntry], track: Track) -> list[Model]:
    """Return what entries of a track's history name: parts of the track, and people."""
    keys = {
        model: {entry.object_id for entry in entries if entry.object_type == model._meta.label_lower}
        for model in (TeamRegistration, Download)
    }
    named = (person for entry in entries for person in (entry.actor_id, entry.details.get("user")))
    people = {person for person in named if person is not None}
    return [
        track,
        *track.phases.select_related("track"),
        *track.registrations.filter(pk__in=keys[TeamRegistration]).select_related("team", "track"),
        *Download.objects.filter(pk__in=keys[Download]),
        *FinalResults.objects.filter(phase__track=track),
        *User.objects.filter(pk__in=people),
    ]


@for_organizers("challenge.change_track", methods=FORM)
def add_phase(request: UserRequest, slug: str) -> HttpResponseBase:
    track = _track(request, slug)
    return _edit(request, None, Phase(track=track, name=""))


@for_organizers("challenge.change_track", methods=FORM)
def phase(request: UserRequest, slug: str, phase_id: int) -> HttpResponseBase:
    return _edit(
        request, organized_phase(request.user, slug, phase_id), organized_phase(request.user, slug, phase_id)
    )


@for_organizers("challenge.change_track", methods=POST)
def remove_phase(request: UserRequest, slug: str, phase_id: int) -> HttpResponseBase:
    """Remove a phase in which nothing was submitted."""
    if phase_changes.remove_phase(organized_phase(request.user, slug, phase_id), actor=request.user):
        messages.success(request, "The phase has been removed. The change is listed on the track page.")
    else:
        messages.error(
            request, "A phase can be removed only if it has no submissions and isn't the only one."
        )
    return redirect("organizers:track", slug)


def _track(request: UserRequest, slug: str) -> Track:
    """Return a track that the organizer organizes and doesn't compete in; a draft has pages of its own."""
    found: Track = get_object_or_404(organized_tracks(request.user), slug=slug, is_draft=False)
    reject_competitor(request.user, found)
    return found


def _edit(request: UserRequest, stored: Phase | None, edited: Phase) -> HttpResponseBase:
    context = {
        "track": edited.track,
        "phase": stored,
        "form": PhaseForm(request.POST or None, instance=edited),
        "final": stored.final_results.order_by("-made_at").first() if stored else None,
        "removal": phase_changes.removal_warning(stored, timezone.now()) if stored else "",
    }
    return _confirmed(
        request,
        "organizers/phase.html",
        context,
        changes=lambda: phase_changes.changes_of(stored, edited),
        preview=lambda _: phase_changes.preview_phase(stored, edited, timezone.now()),
        make=lambda reason, seen: phase_changes.save_phase(edited, reason, seen, actor=request.user),
        done="the phase has been saved",
    )


def _confirmed(
    request: UserRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    changes: Callable[[], Changes],
    preview: Callable[[Changes], Preview],
    make: Callable[[str, str], bool],
    done: str,
) -> HttpResponseBase:
    """Show a form; a POST shows what its change does, and makes it for a reason once it carries what was shown.

    The preview's button "edit" leads back to the form as it was filled in.
    """
    track, form = context["track"], context["form"]
    if request.method != "POST" or not form.is_valid() or "edit" in request.POST:
        return render(request, template, context)
    if not (found := changes()):
        messages.info(request, "Nothing would change.")
        return redirect("organizers:track", track.slug)
    shown, seen = preview(found), request.POST.get("seen", "")
    lacks_reason = bool(shown.needs_reason_because) and not form.cleaned_data["reason"]
    if seen and not lacks_reason and make(form.cleaned_data["reason"], seen):
        messages.success(request, f"{track}: {done}. The change is listed on the track page.")
        return redirect("organizers:track", track.slug)
    if seen and not lacks_reason:
        messages.warning(request, "The effect has changed in the meantime; please review it again.")
    return render(request, template, {**context, "preview": shown, "lacks_reason": lacks_reason})
