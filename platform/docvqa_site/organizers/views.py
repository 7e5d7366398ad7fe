"""The desk's first page, the failed runs that are queued again from it, and what organizers write to people."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.challenge.selectors import organized_tracks
from docvqa_site.evaluation.services import requeue_failed
from docvqa_site.organizers.access import FORM, POST, for_organizers
from docvqa_site.organizers.announcements import (
    Announcement,
    Audience,
    announce,
    audiences_for,
    lead_of,
    recipients,
    tracks_for,
)
from docvqa_site.organizers.desk import desk_of
from docvqa_site.organizers.failures import failed_with
from docvqa_site.organizers.forms import AnnouncementForm, MessageForm
from docvqa_site.organizers.teams import teams_for
from docvqa_site.teams.models import Team
from evaluator.errors.codes import ErrorCode


@for_organizers()
def desk(request: UserRequest) -> HttpResponseBase:
    desk = desk_of(request.user)
    context = {
        "desk": desk,
        "waiting_proofs": desk["own_reviews"],
        "audiences": audiences_for(request.user),
    }
    return render(request, "organizers/desk.html", context)


@for_organizers("evaluation.change_evaluation", methods=POST)
def queue_failed(request: UserRequest, code: str) -> HttpResponseBase:
    if code not in set(ErrorCode):
        raise Http404
    queued = requeue_failed(failed_with(code, organized_tracks(request.user)), actor=request.user)
    level = messages.SUCCESS if queued else messages.WARNING
    messages.add_message(request, level, f"{len(queued)} failed run{pluralize(queued)} queued again.")
    return redirect("organizers:desk")


@for_organizers(methods=FORM)
def announcement(request: UserRequest) -> HttpResponseBase:
    """Show the form; a POST shows whom the mail would reach, and sends it once it carries their number."""
    if not audiences_for(request.user):
        raise PermissionDenied
    names = ("audience", "subject", "text", "on_news")
    suggested: dict[str, Any] = {name: request.GET[name] for name in names if name in request.GET}
    if track := tracks_for(request.user).filter(slug=request.GET.get("track", "")).first():
        suggested = {"audience": Audience.IN_TRACK, "track": track, **suggested}
    form = AnnouncementForm(request.POST or None, request.user, initial=suggested)
    return _sent(request, form, None, reverse("organizers:desk"))


@for_organizers("submissions.view_submission", methods=FORM)
def message(request: UserRequest, team_id: int) -> HttpResponseBase:
    """Show the form for a message to one team, likewise."""
    if not audiences_for(request.user):
        raise PermissionDenied
    team: Team = get_object_or_404(teams_for(request.user), pk=team_id)
    then = reverse("organizers:team", args=[team.pk])
    return _sent(request, MessageForm(request.POST or None), team, then)


def _sent(request: UserRequest, form: MessageForm, team: Team | None, then: str) -> HttpResponseBase:
    """Show the form or what would be sent, or send it, to the audience of the form or to the team."""
    context: dict[str, Any] = {
        "form": form,
        "team": team,
        "title": f"Write to {team}" if team else "Announcement",
    }
    if request.method != "POST" or not form.is_valid():
        return render(request, "organizers/announcement.html", context)
    values: dict[str, Any] = form.cleaned_data
    if team:
        values = {**values, "audience": Audience.TEAM, "team": team}
    lead = lead_of(request.user, team, values.get("track"))
    written, seen = Announcement(**values, lead=lead), request.POST.get("seen", "")
    if seen and announce(written, seen, actor=request.user):
        what = "message" if team else "announcement"
        messages.success(request, f"The {what} was sent to {seen} recipient{pluralize(seen)}.")
        return redirect(then)
    if seen:
        messages.warning(
            request, "The number of recipients has changed in the meantime; please review it again."
        )
    reached = recipients(written.audience, written.track, team).count()
    return render(
        request, "organizers/announcement.html", {**context, "written": written, "reached": reached}
    )
