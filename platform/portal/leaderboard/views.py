"""The leaderboards. What they show of the boards is rendered once for each version of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.core.paginator import Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from portal.audit.versions import boards_versions
from portal.challenge.models import Track
from portal.evaluation.results import EPSILON_COLUMNS, TRUST
from portal.leaderboard.boards import StoredBoard, heads_of, rows_of, stored_boards
from portal.leaderboard.caching import cached, page_unless_unchanged, unless_unchanged
from portal.leaderboard.published import as_csv
from portal.leaderboard.ranking import Row
from portal.teams.models import Team
from portal.teams.selectors import team_of

# Of a board on a page of its own, and of each of several boards on one page.
PAGE_LENGTH = 50
HEAD_LENGTH = 15


@dataclass(frozen=True)
class ShownBoard:
    """A part of a board.

    Attributes:
        page: The page that the rows are, where the board has pages of its own.
        is_cut: Whether these are its first rows only.
    """

    budget: float | None
    rows: Sequence[Row]
    page: Page[int] | None = None
    is_cut: bool = False


@require_safe
def track(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the head of every board of one track, a page of the board at `epsilon`, or the rows of a `team`."""
    shown = get_object_or_404(Track, slug=slug)
    version = boards_versions([shown.pk])[shown.pk]
    levels = [(level.label, meaning) for level, meaning in TRUST.items()]

    def respond() -> HttpResponse:
        context = {
            "track": shown,
            "boards": _boards(request, shown, version),
            "part": _part(request),
            "trust_levels": levels,
            "own_team": team_of(request.user) if request.user.is_authenticated else None,
        }
        return render(request, "leaderboard/track.html", context)

    return page_unless_unchanged(request, version, respond)


def _part(request: HttpRequest) -> str:
    """Return the name of the part that the address asks for; empty for the boards' heads."""
    if "team" in request.GET:
        return "Runs of one team"
    return f"ε = {request.GET['epsilon']}" if "epsilon" in request.GET else ""


def _boards(request: HttpRequest, track: Track, version: str) -> SafeString:
    """Return the boards that the address asks for."""
    if slug := request.GET.get("team"):
        return mark_safe(_boards_of_team(track, get_object_or_404(Team, slug=slug)))  # noqa: S308  (a template made it)
    boards = _selected(track, request.GET.get("epsilon"))
    drawn = (
        _page_of_board(boards[0], version, request.GET.get("page"))
        if len(boards) == 1
        else cached(version, f"heads {track.pk}", lambda: _drawn_boards(track, _heads(boards)))
    )
    return mark_safe(drawn)  # noqa: S308  (a template made it)


def _page_of_board(board: StoredBoard, version: str, number: str | None) -> str:
    name = f"board {board.track.pk} {board.budget}"
    places = range(int(cached(version, f"{name} count", lambda: str(len(board)))))
    page = Paginator(places, PAGE_LENGTH).get_page(number)

    def draw() -> str:
        part = places[(page.number - 1) * PAGE_LENGTH :][:PAGE_LENGTH]
        return _drawn_boards(board.track, [ShownBoard(board.budget, board[part.start : part.stop], page)])

    return cached(version, f"{name} {page.number}", draw)


def _heads(boards: Sequence[StoredBoard]) -> list[ShownBoard]:
    """Return the first rows of each board; one more is loaded, to know whether there are any."""
    return [
        ShownBoard(board.budget, head[:HEAD_LENGTH], is_cut=len(head) > HEAD_LENGTH)
        for board, head in zip(boards, heads_of(boards, HEAD_LENGTH + 1), strict=True)
    ]


def _boards_of_team(track: Track, team: Team) -> str:
    boards = stored_boards(track)
    shown = [
        ShownBoard(board.budget, rows) for board, rows in zip(boards, rows_of(team, boards), strict=True)
    ]
    return _drawn_boards(track, shown, team=team)


def _selected(track: Track, epsilon: str | None) -> list[StoredBoard]:
    """Return the board at this ε, all boards where none is given. Raises `Http404` where the track has none."""
    boards = stored_boards(track)
    if epsilon is None:
        return boards
    found = [board for board in boards if board.budget is not None and f"{board.budget:g}" == epsilon]
    if not found:
        raise Http404("no board at this ε")
    return found


def _drawn_boards(track: Track, boards: Sequence[ShownBoard], **context: object) -> str:
    return _drawn("leaderboard/boards.html", track=track, boards=boards, **context)


def _drawn(template: str, **context: object) -> str:
    return render_to_string(template, {"epsilon_columns": EPSILON_COLUMNS, **context})


@require_safe
def track_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Send the boards of one track as a CSV file."""
    exported = get_object_or_404(Track, slug=slug)
    version = boards_versions([exported.pk])[exported.pk]

    def respond() -> HttpResponse:
        return HttpResponse(
            cached(version, f"csv {exported.pk}", lambda: as_csv(exported)),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="leaderboard-{exported.slug}.csv"'},
        )

    return unless_unchanged(request, version, respond)
