"""The page of a team: who they are, and their results on every board."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.boards import selected_rows, stored_boards
from docvqa_site.boards.caching import cached
from docvqa_site.boards.ranking import Row
from docvqa_site.boards.selection import Selection
from docvqa_site.boards.table import Table, board_table
from docvqa_site.challenge.models import Track
from docvqa_site.teams.models import Team
from docvqa_site.teams.selectors import members
from docvqa_site.ui.budgets import at_budget, plain

# Of each board; the board itself has all of a team's rows.
LENGTH = 20


@dataclass(frozen=True)
class TeamBoard:
    """The rows of a team on one board of a track."""

    team: Team
    track: Track
    budget: float | None
    rows: Sequence[Row]

    @property
    def name(self) -> str:
        return f"{self.track}{at_budget(self.budget, ', {}')}"

    @property
    def query(self) -> str:
        """The query of the address of the board with all of the team's rows."""
        return f"?team={self.team.slug}{at_budget(self.budget, '&epsilon={}', plain)}"

    @property
    def lines(self) -> list[SafeString]:
        return [self.table.row(row) for row in self.rows]

    @property
    def table(self) -> Table:
        return board_table(self.track)

    @property
    def is_cut(self) -> bool:
        return len(self.rows) >= LENGTH


@require_safe
def team(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what everyone may know of a team, with its results."""
    shown = get_object_or_404(Team, slug=slug)
    tracks = list(Track.objects.all())
    versions = boards_versions([track.pk for track in tracks])

    def draw() -> str:
        return render_to_string(
            "pages/team_boards.html", {"team": shown, "boards": _boards(shown, tracks, versions)}
        )

    results = cached(str(versions), f"team {shown.pk}", draw)
    context = {
        "team": shown,
        "members": members(shown),
        "results": mark_safe(results),  # noqa: S308  (a template made it)
    }
    return render(request, "teams/detail.html", context)


def _boards(team: Team, tracks: Sequence[Track], versions: Mapping[int, str]) -> list[TeamBoard]:
    found, own = [], Selection(team=team.slug)
    for track in tracks:
        boards = stored_boards(track, versions[track.pk])
        for board, rows in zip(boards, selected_rows(own, boards, LENGTH), strict=True):
            found += [TeamBoard(team, track, board.budget, rows)] if rows else []
    return found
