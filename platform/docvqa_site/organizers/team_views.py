"""Teams as organizers see them: a list, and a page of each."""

from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.organizers import teams
from docvqa_site.organizers.access import for_organizers
from docvqa_site.submissions.selectors import competed_tracks
from docvqa_site.teams.models import Team
from docvqa_site.teams.selectors import members
from docvqa_site.ui.paging import page_of
from docvqa_site.uploads.storage import storage_of

PAGE_LENGTH = 50


@for_organizers("submissions.view_submission")
def listing(request: UserRequest) -> HttpResponseBase:
    """List the teams by name; with `text` in the address, those whose names contain it."""
    text = request.GET.get("text", "")
    found = teams.teams_for(request.user).filter(name__icontains=text).order_by("name")
    page = page_of(teams.with_numbers(found, request.user), PAGE_LENGTH, request.GET.get("page"))
    query = request.GET.copy()
    query.pop("page", None)
    context = {"page": page, "text": text, "query": query.urlencode() + "&" if query else ""}
    return render(request, "organizers/teams.html", context)


@for_organizers("submissions.view_submission")
def team(request: UserRequest, team_id: int) -> HttpResponseBase:
    found: Team = get_object_or_404(teams.teams_for(request.user), pk=team_id)
    in_tracks = teams.tracks_of(found, request.user, timezone.now())
    tracks = [one.track for one in in_tracks]
    submissions = teams.judged_submissions_of(found, request.user)
    context = {
        "team": found,
        "members": members(found),
        "past_members": found.past_memberships.select_related("user"),
        "in_tracks": in_tracks,
        "page": page_of(submissions, PAGE_LENGTH, request.GET.get("page")),
        "unresolved": teams.unresolved_tokens(found, tracks),
        "indexes": teams.index_challenges(found, tracks)[:PAGE_LENGTH],
        "conversations": teams.conversations(submissions, request.user),
        "storage": storage_of(found),
        "competed": competed_tracks(request.user),
    }
    return render(request, "organizers/team.html", context)
