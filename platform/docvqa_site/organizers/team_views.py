"""Teams as organizers see them: a list, and a page of each, with what organizers may do for a team."""

from collections.abc import Sequence
from typing import NamedTuple

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import F, OrderBy
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import pluralize
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.accounts.requests import UserRequest
from docvqa_site.challenge.models import RegistrationState, Track
from docvqa_site.challenge.registering import decide, exclude
from docvqa_site.challenge.selectors import organized_tracks
from docvqa_site.organizers import teams
from docvqa_site.organizers.access import POST, for_organizers
from docvqa_site.organizers.announcements import audiences_for
from docvqa_site.organizers.forms import AdmissionForm, ExclusionForm, ExtraSubmissionsForm
from docvqa_site.organizers.track_changes import in_words
from docvqa_site.submissions.extra_submissions import grant_submissions
from docvqa_site.submissions.quota import WINDOW
from docvqa_site.submissions.selectors import competed_tracks
from docvqa_site.teams.models import Team
from docvqa_site.teams.selectors import members, teams_ever_of
from docvqa_site.ui.paging import page_of
from docvqa_site.uploads.storage import storage_of

PAGE_LENGTH = 50


class Order(NamedTuple):
    """An order of the list: what it is called, and the fields."""

    label: str
    fields: Sequence[str | OrderBy]


ORDERS = {
    "name": Order("name", ["name"]),
    "last": Order("last submission", [F("last").desc(nulls_last=True)]),
    "submissions": Order("most submissions", ["-submitted"]),
    "members": Order("most members", ["-members"]),
    "newest": Order("newest", ["-created_at"]),
}


@for_organizers("submissions.view_submission")
def listing(request: UserRequest) -> HttpResponseBase:
    """List the teams, in the order that the address names; by track, and by text in names and members."""
    chosen = {name: request.GET.get(name, "") for name in ("text", "track", "order")}
    order = ORDERS.get(chosen["order"], ORDERS["name"])
    found = teams.teams_for(request.user)
    tracks = organized_tracks(request.user).filter(is_draft=False)
    if chosen["text"]:
        found = found.filter(teams.named(chosen["text"], request.user))
    if chosen["track"]:
        found = found.filter(teams.takes_part_in(tracks.filter(slug=chosen["track"])))
    numbered = teams.with_numbers(found, request.user).order_by(*order.fields, "name")
    query = request.GET.copy()
    query.pop("page", None)
    context = {
        "page": page_of(numbered, PAGE_LENGTH, request.GET.get("page")),
        "chosen": chosen,
        "tracks": tracks,
        "orders": [(name, one.label) for name, one in ORDERS.items()],
        "query": query.urlencode() + "&" if query else "",
    }
    return render(request, "organizers/teams.html", context)


@for_organizers("submissions.view_submission")
def team(request: UserRequest, team_id: int) -> HttpResponseBase:
    return _page(request, _team(request.user, team_id), None)


@for_organizers("submissions.view_submission", "submissions.change_submission", methods=POST)
def grant(request: UserRequest, team_id: int) -> HttpResponseBase:
    """Give the team more submissions to a track than its quota."""
    found = _team(request.user, team_id)
    if found in teams_ever_of(request.user):
        raise PermissionDenied(
            "You are or were in this team, so only other organizers can give it submissions."
        )
    form = ExtraSubmissionsForm(request.POST, teams.judged_tracks(found, request.user))
    if not form.is_valid():
        return _page(request, found, form, status=422)
    given = grant_submissions(found, **form.cleaned_data, actor=request.user)
    more = f"{given.count} more submission{pluralize(given.count)}"
    messages.success(request, f"{found} has {more} in {given.track}. Its members are notified.")
    if unusable := _unusable(given.track):
        messages.warning(request, unusable)
    return redirect("organizers:team", found.pk)


def _unusable(track: Track) -> str:
    """Return what keeps a team from using more submissions for the whole time that they are given for; or nothing."""
    now = timezone.now()
    if closed := track.closed_because(now):
        return f"{track} takes no submissions now ({closed}), so the team may not be able to use them."
    phase = track.phase_at(now)
    if phase is None or phase.ends_at is None or phase.ends_at > now + WINDOW:
        return ""
    return f"The phase “{phase}” ends on {in_words(phase.ends_at)}: the team can use them only until then."


@for_organizers("submissions.view_submission", "challenge.change_track", methods=POST)
def admission(request: UserRequest, team_id: int) -> HttpResponseBase:
    """Exclude the team from a track, or admit it again."""
    found = _team(request.user, team_id)
    if found in teams_ever_of(request.user):
        raise PermissionDenied(
            "You are or were in this team, so only other organizers can exclude or admit it."
        )
    readmits = "admit" in request.POST
    form = (AdmissionForm if readmits else ExclusionForm)(request.POST, teams.excludable(request.user))
    if not form.is_valid():
        asked = "Choose a track, and enter a reason of at most 300 characters."
        messages.error(request, asked if readmits else f"{asked} To exclude the team, tick the box.")
        return redirect("organizers:team", found.pk)
    track, reason = form.cleaned_data["track"], form.cleaned_data["reason"]
    if readmits:
        registration = get_object_or_404(found.registrations, track=track)
        is_new = decide(registration, RegistrationState.ADMITTED, reason, actor=request.user)
    else:
        is_new = exclude(found, track, reason, actor=request.user)
    done = f"{found} {'can submit to' if readmits else 'is excluded from'} {track}. Its members are notified."
    messages.success(request, done if is_new else "Nothing has changed.")
    return redirect("organizers:team", found.pk)


def _team(organizer: User, team_id: int) -> Team:
    found: Team = get_object_or_404(teams.teams_for(organizer), pk=team_id)
    return found


def _admissions(organizer: User, found: Team) -> dict[str, object]:
    """Return the forms that exclude the team from tracks, and that admit it again to those that declined it."""
    if not organizer.has_perm("challenge.change_track") or found in teams_ever_of(organizer):
        return {}
    tracks = teams.excludable(organizer)
    declined = found.registrations.filter(state=RegistrationState.DECLINED)
    return {
        "exclusion": ExclusionForm(None, tracks.exclude(registrations__in=declined)),
        "excluded": declined.filter(track__in=tracks).select_related("track"),
    }


def _page(
    request: UserRequest, found: Team, form: ExtraSubmissionsForm | None, status: int = 200
) -> HttpResponseBase:
    in_tracks = teams.tracks_of(found, request.user, timezone.now())
    tracks = [one.track for one in in_tracks]
    submissions = teams.judged_submissions_of(found, request.user)
    gives = request.user.has_perm("submissions.change_submission") and found not in teams_ever_of(
        request.user
    )
    if form is None and gives and tracks:
        form = ExtraSubmissionsForm(None, Track.objects.filter(pk__in=[track.pk for track in tracks]))
    context = {
        "team": found,
        "members": members(found),
        "past_members": found.past_memberships.select_related("user"),
        "in_tracks": in_tracks,
        "form": form,
        **_admissions(request.user, found),
        "extra": found.extra_submissions.filter(track__in=tracks).select_related("track")[:PAGE_LENGTH],
        "writes": bool(audiences_for(request.user)),
        "page": page_of(submissions, PAGE_LENGTH, request.GET.get("page")),
        "unresolved": teams.unresolved_tokens(found, tracks),
        "indexes": teams.index_challenges(found, tracks)[:PAGE_LENGTH],
        "conversations": teams.conversations(submissions, request.user),
        "storage": storage_of(found),
        "competed": competed_tracks(request.user),
    }
    return render(request, "organizers/team.html", context, status=status)
