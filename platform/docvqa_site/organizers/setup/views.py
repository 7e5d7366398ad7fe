"""The pages by which a track is set up: six steps, what is missing, a test, and its publication."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from docvqa_site.accounts.models import User
from docvqa_site.accounts.requests import UserRequest
from docvqa_site.accounts.selectors import owns_verified_address
from docvqa_site.audit.models import record
from docvqa_site.challenge.models import StaffInvitation, StaffRole, Track
from docvqa_site.challenge.selectors import organized_tracks, organizers_of_all_tracks
from docvqa_site.challenge.views import rules_of
from docvqa_site.downloads.models import Download
from docvqa_site.evaluation import clock
from docvqa_site.evaluation.models import EvaluationState, StepReport
from docvqa_site.evaluation.queue.dispatch import ALIVE
from docvqa_site.evaluation.queue.places import QUEUES
from docvqa_site.evaluation.rehearsal import rehearsal_of, rehearse
from docvqa_site.operations import figures
from docvqa_site.organizers.access import FORM, POST, for_organizers, reject_competitor
from docvqa_site.organizers.announcements import Audience, audiences_for
from docvqa_site.organizers.needs import Need, queue_needs
from docvqa_site.organizers.people_views import back, send_invitation
from docvqa_site.organizers.setup import drafts, forms, people
from docvqa_site.organizers.setup.offering import add_offered
from docvqa_site.organizers.setup.readiness import RECOMMENDED, readiness
from docvqa_site.reviews.selectors import reviewers
from docvqa_site.submissions.models import Run
from docvqa_site.submissions.selectors import competes
from docvqa_site.submissions.states import IN_EVALUATION
from evaluator.errors import ProblemError
from evaluator.messages import jobs

# Where the buttons of a step lead that don't lead to the next one: how many steps on, and what the address adds.
MOVES = {"back": (-1, ""), "stay": (0, "?another=1#another")}


@dataclass(frozen=True)
class Step:
    """A step of the setup: its name in addresses, its title, and the view of its page.

    One that `stays` is a page of the track once it is public, too.
    """

    name: str
    title: str
    view: Callable[[UserRequest, Track], HttpResponseBase]
    stays: bool = False


@for_organizers("challenge.change_track", "challenge.add_track", methods=FORM)
def new(request: UserRequest) -> HttpResponseBase:
    """Begin a draft."""
    form = forms.NewTrackForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        track = drafts.create_draft(**form.cleaned_data, actor=request.user)
        source = form.cleaned_data["source"]
        if source and source.kind is not track.kind:
            messages.warning(
                request,
                f"“{source}” is a track of another kind. Rewrite its rules text, and check everything else that was "
                "copied, such as the leakage set.",
            )
        return redirect("organizers:setup_step", track.slug, "kind")
    return render(request, "organizers/setup/new.html", {"form": form, "steps": STEPS.values()})


@for_organizers("challenge.change_track")
def overview(request: UserRequest, slug: str) -> HttpResponseBase:
    """Show what the draft still needs, its test, and the button that publishes it."""
    track = _draft(request.user, slug)
    run = rehearsal_of(track)
    context: dict[str, Any] = {
        "ready": readiness(track, timezone.now()),
        "run": run,
        "running": IN_EVALUATION,
        "reports": _reports_of(run) if run else [],
        "waits_because": _waits_because(run, clock.now()) if run else [],
    }
    return _page(request, track, "overview.html", **context)


def _waits_because(run: Run, now: datetime) -> list[Need]:
    """Return what is wrong with the queue in which the test waits; nothing where it has hardly begun to."""
    waiting = run.evaluations.filter(state=EvaluationState.QUEUED, step_queued_at__lt=now - ALIVE).first()
    if waiting is None:
        return []
    queue = QUEUES[jobs.Step(waiting.step)]
    force = figures.workforces(figures.queue_workers(), now)[queue]
    return list(queue_needs(figures.backlogs(figures.attempts(), now), {queue: force}))


def _reports_of(run: Run) -> list[StepReport]:
    """Return what workers reported of the test, in the order of the steps, repeated ones in that of time."""
    found = StepReport.objects.filter(evaluation__run=run).order_by("pk")
    return sorted(found, key=lambda report: list(jobs.Step).index(jobs.Step(report.step)))


@for_organizers("challenge.change_track", methods=FORM)
def step(request: UserRequest, slug: str, name: str) -> HttpResponseBase:
    """Show a step; a POST saves it and leads to the next one. A public track has some of them as well."""
    if name not in STEPS:
        raise Http404("no such step")
    track = (
        get_object_or_404(organized_tracks(request.user), slug=slug)
        if STEPS[name].stays
        else _draft(request.user, slug)
    )
    reject_competitor(request.user, track)
    return STEPS[name].view(request, track)


@for_organizers("challenge.change_track")
def preview(request: UserRequest, slug: str) -> HttpResponseBase:
    """Show the draft's page of rules as everybody will see it, below a notice that this is a preview."""
    return render(request, "organizers/setup/preview.html", rules_of(_draft(request.user, slug)))


@for_organizers("challenge.change_track", methods=POST)
def test(request: UserRequest, slug: str) -> HttpResponseBase:
    """Send the base weights through the workers' steps."""
    track = _draft(request.user, slug)
    if not (lacking := readiness(track, timezone.now()).in_the_way_of_a_test):
        rehearse(track, request.user)
        # No message: it would stay above the progress, which replaces only itself.
        return redirect(reverse("organizers:setup", args=[slug]) + "#test")
    found = " ".join(f"{item.name}: {item.found}" for item in lacking)
    messages.error(request, f"The track can't be tested yet. {found}")
    return redirect("organizers:setup", slug)


@for_organizers("challenge.change_track", methods=POST)
def publish(request: UserRequest, slug: str) -> HttpResponseBase:
    track = _draft(request.user, slug)
    if "confirmed" not in request.POST:
        messages.error(request, "Confirm that the track is to be published: tick the box.")
        return redirect("organizers:setup", slug)
    if not drafts.publish(track, actor=request.user):
        messages.error(request, "The track isn't ready: see what is missing.")
        return redirect("organizers:setup", slug)
    text = f"The track [{track}]({settings.SITE_URL}{track.get_absolute_url()}) is public. {track.summary}"
    prepared: dict[str, str | int] = {
        "audience": Audience.EVERYONE,
        "on_news": 1,
        "subject": f"New track: {track}"[:120],
        "text": text,
    }
    link = f"{reverse('organizers:announcement')}?{urlencode(prepared)}"
    messages.success(
        request,
        format_html('{} is public. <a href="{}">Announce it to participants</a> when you like.', track, link)
        if Audience.EVERYONE in audiences_for(request.user)
        else f"{track} is public.",
    )
    return redirect("organizers:track", slug)


@for_organizers("challenge.change_track", methods=POST)
def discard(request: UserRequest, slug: str) -> HttpResponseBase:
    track = _draft(request.user, slug)
    drafts.discard(track, actor=request.user)
    messages.success(request, f"The draft {track} was discarded.")
    return redirect("organizers:desk")


@for_organizers("challenge.change_track", methods=POST)
def remove_organizer(request: UserRequest, slug: str, user_id: int) -> HttpResponseBase:
    track = get_object_or_404(organized_tracks(request.user), slug=slug)
    reject_competitor(request.user, track)
    person = get_object_or_404(track.organizers, pk=user_id)
    people.remove_organizer(track, person, actor=request.user)
    messages.success(request, f"{person} no longer organizes {track}.")
    return back(request, track)


@require_http_methods(FORM)
@never_cache
def invitation(request: HttpRequest, secret: str) -> HttpResponseBase:
    """Show an invitation to review or organize, and the way to log in first; a POST accepts it."""
    found = people.invitation_by_secret(secret)
    if found is None:
        return render(request, "organizers/setup/invitation_gone.html", status=404)
    if not isinstance(request.user, User):
        return render(request, "organizers/setup/invitation.html", {"invitation": found})
    return _invitation(cast("UserRequest", request), found)


def _invitation(request: UserRequest, found: StaffInvitation) -> HttpResponseBase:
    is_theirs = owns_verified_address(request.user, found.email)
    if request.method == "POST" and is_theirs and people.accept(found, request.user):
        reviews = found.role == StaffRole.REVIEWER
        if request.user.has_second_factor:
            messages.success(request, "Welcome.")
            return redirect("reviews:queue" if reviews else "organizers:desk")
        place = "the queue of proof reviews" if reviews else "the organizers' desk"
        messages.success(request, f"Welcome. Set up a second factor to open {place}.")
        return redirect("mfa_index")
    context = {
        "invitation": found,
        "is_theirs": is_theirs,
        "competed": people.competed_in(request.user, found),
        "competes": people.COMPETES,
    }
    return render(request, "organizers/setup/invitation.html", context, status=200 if is_theirs else 403)


def _draft(organizer: User, slug: str) -> Track:
    """Return a draft that the organizer organizes; raises `Http404` of any other track."""
    found: Track = get_object_or_404(organized_tracks(organizer), slug=slug, is_draft=True)
    return found


def _page(
    request: HttpRequest, track: Track, template: str, name: str = "", **context: Any
) -> HttpResponseBase:
    titles = ["", *(step.title for step in STEPS.values()), "Check and publish"]
    place = list(STEPS).index(name) + 1 if name else 0
    lacking = (
        [one for one in readiness(track, timezone.now()).items if not one.is_there] if track.is_draft else []
    )
    shown = {
        "track": track,
        "steps": STEPS.values(),
        "current": name,
        "unready": {item.step for item in lacking if item.is_required},
        "advised": {item.step for item in lacking if item.lacking == RECOMMENDED},
        "saves": f"Save and continue: {titles[place + 1]}" if track.is_draft else "Save",
        "goes_back": titles[place - 1] if place and track.is_draft else "",
        **context,
    }
    return render(request, f"organizers/setup/{template}", shown)


def _next(request: HttpRequest, track: Track, name: str) -> HttpResponseBase:
    """Lead to the step after this one, or by the button that was pressed; after the last one, to what is missing.

    The steps of a public track lead nowhere.
    """
    messages.success(request, "Saved.")
    if not track.is_draft:
        return redirect("organizers:setup_step", track.slug, name)
    names = list(STEPS)
    moves, added = next((move for button, move in MOVES.items() if button in request.POST), (1, ""))
    place = names.index(name) + moves
    if place < len(names):
        return redirect(reverse("organizers:setup_step", args=[track.slug, names[place]]) + added)
    return redirect("organizers:setup", track.slug)


def _save(request: UserRequest, track: Track, form: "ModelForm[Track]") -> None:
    """Store the form, and record the old and the new value of what changed; `track` has the old ones."""
    before = _values(track)
    form.save()
    after = _values(form.instance)
    changes = {name: [before[name], value] for name, value in after.items() if before[name] != value}
    if "leakage_set" in changes:
        # The set is chosen with its split, also where that is the one from before.
        changes["leakage_split"] = [before["leakage_split"], after["leakage_split"]]
    if changes:
        record(request.user, "track.changed", track, changes=changes)


def _values(track: Track) -> dict[str, Any]:
    """Return what the audit trail has of a draft: its own columns, and the names of its downloads."""
    columns = {field.name: getattr(track, field.attname) for field in track._meta.concrete_fields}
    return {**columns, "downloads": sorted(map(str, Download.objects.filter(tracks=track)))}


def _form_step(
    kind: "type[ModelForm[Track]]", name: str, template: str = "step.html"
) -> Callable[[UserRequest, Track], HttpResponseBase]:
    """Return the view of a step that is one form; the button "preview" shows its texts and saves nothing."""

    def view(request: UserRequest, track: Track) -> HttpResponseBase:
        # The form writes into its instance, also where it isn't valid.
        form = kind(request.POST or None, instance=Track.with_drafts.get(pk=track.pk))
        previews = "preview" in request.POST
        if request.method == "POST" and form.is_valid() and not previews:
            _save(request, track, form)
            return _next(request, form.instance, name)
        return _page(request, track, template, name, form=form, previews=previews)

    return view


def _data(request: UserRequest, track: Track) -> HttpResponseBase:
    """Show what can be downloaded for the track; one of the two forms adds a download, the other ends the step."""
    adds = "add" in request.POST
    form = forms.DataForm(None if adds else request.POST or None, instance=Track.with_drafts.get(pk=track.pk))
    added = forms.DownloadForm(request.POST if adds else None, request.FILES if adds else None, track=track)
    if adds and added.is_valid():
        try:
            download = add_offered(track, added.cleaned_data, actor=request.user)
        except ProblemError as error:
            added.add_error("file", error.problem.message)
        else:
            done = "replaced" if added.cleaned_data["replaces"] else "added"
            shown = "once the track is" if track.is_draft else "now"
            messages.success(request, f"{download} was {done}. It is public {shown}.")
            return redirect("organizers:setup_step", track.slug, "data")
    if request.method == "POST" and not adds and form.is_valid():
        _save(request, track, form)
        return _next(request, track, "data")
    context = {
        "form": form,
        "added": added,
        "has_downloads": Download.objects.exists(),
        "of_all_tracks": Download.objects.offered().filter(tracks__isnull=True),
    }
    return _page(request, track, "data.html", "data", **context)


def _phases(request: UserRequest, track: Track) -> HttpResponseBase:
    formset = forms.PhaseForms(request.POST or None, instance=Track.with_drafts.get(pk=track.pk))
    if request.method == "POST" and formset.is_valid():
        formset.save()
        if formset.has_changed():
            record(request.user, "track.changed", track, changes=_phase_changes(formset))
        return _next(request, track, "phases")
    return _page(request, track, "phases.html", "phases", formset=formset, adds="another" in request.GET)


def _phase_changes(formset: Any) -> dict[str, list[object]]:
    """Return the old and the new value of each field that changed of a phase; of one that was removed, its name."""
    gone: dict[str, list[object]] = {
        f"phase {form.instance}": [str(form.instance), None] for form in formset.deleted_forms
    }
    changed = {
        f"phase {form.instance.name}, {name}": [
            _plain(form.initial.get(name)) if form not in formset.extra_forms else None,
            _plain(form.cleaned_data.get(name)),
        ]
        for form in formset.forms
        if form.has_changed() and form not in formset.deleted_forms
        for name in form.changed_data
    }
    return {**gone, **changed}


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _people(request: UserRequest, track: Track) -> HttpResponseBase:
    """Show who takes part; one of the two forms invites somebody, the other ends the step.

    Who accepts has rights by it, which only superusers give.
    """
    invites, may_invite = "invite" in request.POST, request.user.is_superuser
    form = forms.RegistrationForm(
        None if invites else request.POST or None, instance=Track.with_drafts.get(pk=track.pk)
    )
    invited = forms.InvitationForm(request.POST if invites else None)
    if invites and may_invite and invited.is_valid():
        send_invitation(request, track, **invited.cleaned_data)
        return redirect("organizers:setup_step", track.slug, "people")
    if request.method == "POST" and not invites and track.is_draft and form.is_valid():
        _save(request, track, form)
        return _next(request, track, "people")
    context = {
        "form": form,
        "invited": invited,
        "may_invite": may_invite,
        "invitations": people.invitations_for(track, request.user),
        "of_all_tracks": organizers_of_all_tracks(),
        "competing": [person for person in track.organizers.all() if competes(person, track)],
        "reviewers": list(reviewers(include_superusers=False)),
    }
    return _page(request, track, "people.html", "people", **context)


STEPS = {
    step.name: step
    for step in (
        Step("kind", "Kind", _form_step(forms.KindForm, "kind")),
        Step("texts", "Texts", _form_step(forms.TextsForm, "texts", "texts.html")),
        Step(
            "weights", "Base weights and test set", _form_step(forms.WeightsForm, "weights", "weights.html")
        ),
        Step("data", "Data and downloads", _data, stays=True),
        Step("phases", "Phases", _phases),
        Step("people", "People", _people, stays=True),
    )
}
