"""The home page. What it shows of the boards is rendered once for each version of them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from portal.audit.versions import boards_versions
from portal.challenge.models import Track
from portal.evaluation.results import EPSILON_COLUMNS
from portal.leaderboard.boards import Board, heads_of, stored_boards
from portal.leaderboard.caching import cached, page_unless_unchanged

TOP = 5


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show what the benchmark is, how to take part, and the best runs of every track."""
    tracks = list(Track.objects.all())
    versions = boards_versions([track.pk for track in tracks])

    def respond() -> HttpResponse:
        tops = [_top(track, versions[track.pk]) for track in tracks]
        return render(request, "leaderboard/home.html", {"tops": tops})

    return page_unless_unchanged(request, str(versions), respond)


def _top(track: Track, version: str) -> SafeString:
    """Return the section of the track on the home page."""

    def draw() -> str:
        boards = stored_boards(track)
        heads = [[row for row in head if row.rank] for head in heads_of(boards, TOP)]
        tops = [Board(board.budget, head) for board, head in zip(boards, heads, strict=True)]
        context = {"epsilon_columns": EPSILON_COLUMNS, "track": track, "boards": tops}
        return render_to_string("leaderboard/top.html", context)

    return mark_safe(cached(version, f"top {track.pk}", draw))  # noqa: S308  (a template made it)
