"""The home page and the leaderboards."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from portal.challenge.models import Track
from portal.evaluation.results import EPSILON_COLUMNS, TRUST
from portal.leaderboard.boards import Board, boards_of
from portal.leaderboard.published import as_csv, publish
from portal.leaderboard.ranking import Row

TOP = 5


@dataclass(frozen=True)
class Top:
    """The head of a board, for the home page."""

    budget: float | None
    rows: list[Row]


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show what the benchmark is, how to take part, and the best runs of every track."""
    tops = [(track, [_top(board) for board in boards_of(track)]) for track in Track.objects.all()]
    return render(request, "leaderboard/home.html", {"tops": tops, "epsilon_columns": EPSILON_COLUMNS})


def _top(board: Board) -> Top:
    return Top(board.budget, [row for row in board.rows if row.rank is not None and row.rank <= TOP])


@require_safe
def track(request: HttpRequest, slug: str) -> HttpResponse:
    """Show every board of one track, in full."""
    shown = get_object_or_404(Track, slug=slug)
    levels = [(level.label, meaning) for level, meaning in TRUST.items()]
    context = {
        "track": shown,
        "boards": boards_of(shown),
        "epsilon_columns": EPSILON_COLUMNS,
        "trust_levels": levels,
    }
    return render(request, "leaderboard/track.html", context)


@require_safe
def track_csv(_request: HttpRequest, slug: str) -> HttpResponse:
    """Send the boards of one track as a CSV file."""
    exported = get_object_or_404(Track, slug=slug)
    return HttpResponse(
        as_csv(publish(exported)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="leaderboard-{exported.slug}.csv"'},
    )
