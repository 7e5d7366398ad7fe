"""The leaderboard of a track: one page, of which the address says the board, the filters, the order and the part.

What it shows of the boards is rendered once for each version of them, except where a visitor searches for text.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from urllib.parse import urlencode

from django.conf import settings
from django.core.paginator import Page
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.timezone import localdate, now
from django.views.decorators.http import require_safe

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.boards import StoredBoard, by_score, overview_of, stored_boards
from docvqa_site.boards.caching import cached, page_unless_unchanged
from docvqa_site.boards.cells import overview_row
from docvqa_site.boards.column import TERMS, Order
from docvqa_site.boards.columns import sorts_of
from docvqa_site.boards.history import ranks_before
from docvqa_site.boards.ordering import unranked_counts
from docvqa_site.boards.ranking import Row
from docvqa_site.boards.selection import SORT_LABELS, Baselines, Selection, Sort
from docvqa_site.boards.table import Table, board_table
from docvqa_site.challenge.models import Track
from docvqa_site.docs.glossary import linked
from docvqa_site.downloads.models import Download, DownloadKind
from docvqa_site.evaluation.examining.levels import MEANINGS
from docvqa_site.evaluation.models import Examination, ExaminationState
from docvqa_site.evaluation.test_sets.parts import scored_test_set
from docvqa_site.pages.progress import at_a_glance, methods_in, with_marks, withheld_of
from docvqa_site.submissions.selectors import public_runs, quota_of, submission_addresses, submissions_of
from docvqa_site.teams.models import Team
from docvqa_site.teams.selectors import team_of
from docvqa_site.ui.budgets import at_budget, budget_text
from docvqa_site.ui.markup import markup
from docvqa_site.ui.paging import page_of
from docvqa_site.ui.templatetags.ui import at
from evaluator.messages.jobs import TrustLevel

PAGE_LENGTH = 50
# Of the runs without a rank on the board's first page, and of the methods of each budget on the overview.
NEAREST = 10
LEADING = 15
ALL = "all"
# Before the budget by whose scores the overview is sorted, where the highest is last.
DOWN = "-"
# The columns of boards that the overview of all budgets has as well.
OVERVIEW = ("rank", "anls", "status")
ALL_BUDGETS = "All ε"
OWN = ' <span class="badge badge-own">your team</span>'


@dataclass(frozen=True)
class ShownBoard:
    """A part of a board: a page of the rows with a rank, or the nearest of those without one.

    Attributes:
        caption: What the table of runs with a rank is.
        page: The page that the rows are, of those with a rank, or of those without one.
        unranked: Those without a rank that are folded below the others, each after the name of its board where that
            isn't clear; of them there are `unranked_count`.
    """

    caption: str
    rows: Sequence[Row]
    table: Table
    page: Page[int]
    unranked: Sequence[tuple[str, Row]] = ()
    unranked_count: int = 0

    @property
    def lines(self) -> list[SafeString]:
        return [self.table.row(row) for row in self.rows]


@dataclass(frozen=True)
class Tab:
    name: str
    address: str
    is_current: bool


@dataclass(frozen=True)
class BoardQuery:
    """What the address asks for.

    Attributes:
        budget: ε of the board as the address has it; "all" for the overview, empty on a track without budgets.
        only_unranked: Whether a page of the runs without a rank is asked for.
        by: The budget by whose scores the overview is sorted, after "-" where the highest is last; empty for none.
    """

    budget: str
    selection: Selection
    more: bool = False
    only_unranked: bool = False
    by: str = ""

    @classmethod
    def of(cls, track: Track, query: Mapping[str, str]) -> "BoardQuery":
        """Return what the query of an address asks for.

        Raises `Http404` for a board or phase that the track doesn't have.
        """
        boards = boards_in_addresses(track)
        budget = query.get("epsilon", boards[0])
        if budget not in boards:
            raise Http404("no leaderboard at this ε")
        selection = Selection.of(query)
        # Only what exists is kept in the cache.
        if selection.phase and selection.phase not in {phase.name for phase in track.phases.all()}:
            raise Http404("no such phase")
        by = query.get("by", "") if budget == ALL else ""
        known = by.removeprefix(DOWN) in track.board_names()
        more, only_unranked = query.get("more") == "1", query.get("rank") == "none"
        return cls(budget, selection, more, only_unranked, by if known else "")

    @property
    def is_overview(self) -> bool:
        return self.budget == ALL

    @property
    def board(self) -> dict[str, str]:
        """The parts of the query that name the board and its columns."""
        parts = {"epsilon": self.budget, "more": "1" if self.more else ""}
        return {name: value for name, value in parts.items() if value}

    @property
    def unfiltered(self) -> str:
        """The address's query without filters and order."""
        return urlencode(self.board)

    @property
    def title(self) -> str:
        return {ALL: "All privacy budgets", "": "Ranking"}.get(self.budget) or budget_text(float(self.budget))

    @property
    def query(self) -> str:
        """The address's query, without the page."""
        shown = self.board | ({"by": self.by} if self.by else {})
        shown |= {"rank": "none"} if self.only_unranked else {}
        return "&".join(filter(None, [urlencode(shown), self.selection.query]))

    @property
    def sorted_by(self) -> str:
        """The budget by whose scores the overview is sorted, in whichever direction; empty for none."""
        return self.by.removeprefix(DOWN)

    def head_at(self, budget: str) -> "OverviewHead":
        """Return the head of a budget's column in the overview."""
        is_current = budget == self.sorted_by
        by = DOWN + budget if self.by == budget else budget
        direction = ("ascending" if self.by.startswith(DOWN) else "descending") if is_current else ""
        return OverviewHead(float(budget), f"?{replace(self, by=by).query}#board", direction)

    @property
    def other_columns(self) -> str:
        """The address of the same rows with more columns, or with fewer where it has more."""
        return f"?{replace(self, more=not self.more).query}#board"

    @property
    def other_rows(self) -> str:
        """The address of the runs without a rank, or of those with one where it is that of the others."""
        return f"?{replace(self, only_unranked=not self.only_unranked).query}#board"

    def address_sorted(self, sort: Sort, is_reversed: bool) -> str:
        """Return the address of the first page with the rows in another order."""
        selection = replace(self.selection, sort=sort, is_reversed=is_reversed)
        return f"?{replace(self, selection=selection).query}#board"


@dataclass(frozen=True)
class OverviewHead:
    """The head of a budget's column in the overview, which sorts by its scores, and the `direction` if these do so."""

    budget: float
    address: str
    direction: str


def boards_in_addresses(track: Track) -> list[str]:
    """Return the boards by their names in addresses, the one first that is shown where none is named."""
    return [ALL, *track.board_names()] if track.kind.has_budgets else track.board_names()


@require_safe
def track(request: HttpRequest, slug: str) -> HttpResponse:
    # All of them, since the plot of a privacy track has the best score without privacy.
    tracks = list(Track.objects.prefetch_related("phases"))
    shown = next((one for one in tracks if one.slug == slug), None)
    if shown is None:
        raise Http404("no such track")
    asked = BoardQuery.of(shown, request.GET)
    versions, today, moment = boards_versions([one.pk for one in tracks]), localdate(), now()
    deadline, data = _deadline(shown, moment), titles_of_data(shown)

    def respond() -> HttpResponse:
        team = team_of(request.user) if request.user.is_authenticated else None
        is_kept = is_everybodys(asked.selection, team)
        boards = _boards(shown, asked, request.GET.get("page"), versions[shown.pk], today, is_kept=is_kept)
        offered, glance = sorts_of(shown), at_a_glance(shown, tracks, versions)
        own = _addresses_of(team, glance.plot) if team and glance.plot else []
        plot = with_marks(glance.plot, own, "your team's methods", OWN)
        context = {
            "site_url": settings.SITE_URL,
            "track": shown,
            "asked": asked,
            "tabs": _tabs(shown, asked),
            "data": data,
            "glance": glance,
            "plot": plot,
            "boards": with_own_marked(boards, team),
            "terms": _terms(shown, asked),
            "trust_levels": [(level.label, meaning) for level, meaning in MEANINGS.items()],
            "own_team": team,
            "deadline": deadline,
            "quota": quota_of(team, shown, moment) if team else None,
            "phases": shown.phases.all(),
            "budget_sorts": [(name, float(name)) for name in shown.board_names() if asked.is_overview],
            "sorts": [(sort.value, label) for sort, label in SORT_LABELS.items() if sort in offered],
            "baseline_choices": [
                (Baselines.ALL.value, "shown"),
                (Baselines.NONE.value, "hidden"),
                (Baselines.ONLY.value, "only"),
            ],
        }
        return render(request, "pages/track.html", context)

    # The time that is left and the data are part of the version: they change while the boards don't.
    return page_unless_unchanged(request, f"{versions} {today} {deadline} {data}", respond)


def _addresses_of(team: Team, plot: str) -> Iterable[str]:
    """Return the addresses of the pages of a team's methods in a plot."""
    own = submissions_of(team).filter(pk__in=methods_in(plot)).values_list("pk", flat=True)
    return submission_addresses(own).values()


def _terms(track: Track, asked: BoardQuery) -> list[SafeString]:
    """Return links to what the glossary says of the columns below which they are listed."""
    table = board_table(track, more=asked.more)
    if asked.is_overview:
        table = replace(table, columns=[column for column in table.columns if column.key in OVERVIEW])
        return [linked(TERMS["epsilon"], "ε"), *table.terms]
    return table.terms


def titles_of_data(track: Track) -> list[str]:
    """Return what the data is called that the site offers for a track: its own, and that of every track."""
    data = Download.objects.for_track(track).filter(kind=DownloadKind.DATA)
    return list(data.values_list("title", flat=True))


def _deadline(track: Track, moment: datetime) -> str:
    """Return until when the track takes submissions and how long that is, or why it takes none."""
    closed, phase = track.closed_because(moment), track.phase_at(moment)
    if closed or phase is None:
        return f"Not open for submissions: {closed[:1].lower()}{closed[1:]}"
    name = f"Phase {phase.name}: open" if len(track.phases.all()) > 1 else "Open"
    if phase.ends_at is None:
        return f"{name} for submissions, no deadline."
    return markup("{} for submissions until {}.", name, at(phase.ends_at))


def with_own_marked(html: str, team: Team | None) -> SafeString:
    """Return rendered boards with the rows of the team marked; the cached ones are the same for everybody."""
    if team is not None:
        html = html.replace(f"<!--team {team.slug}-->", OWN)
    return mark_safe(html)  # noqa: S308  (a template made it)


def _tabs(track: Track, asked: BoardQuery) -> list[Tab]:
    boards = boards_in_addresses(track)
    return [
        Tab(
            name=ALL_BUDGETS if budget == ALL else budget_text(float(budget)),
            address="?" + replace(asked, budget=budget, only_unranked=False, by="").query,
            is_current=budget == asked.budget,
        )
        for budget in boards
        if len(boards) > 1
    ]


def is_everybodys(selection: Selection, own: Team | None) -> bool:
    """Whether there is an end to such selections, so that what is drawn of them is kept: also of a team's own rows."""
    own_rows = replace(selection, team="") if own and selection.team == own.slug else selection
    return not own_rows.is_of_visitors_making


def _boards(
    track: Track, asked: BoardQuery, page: str | None, version: str, today: date, *, is_kept: bool
) -> str:
    """Return the part of the boards that is asked for, rendered; with the ranks of a week before `today`."""

    def kept(name: str, draw: Callable[[], str]) -> str:
        return cached(version, f"{name} {track.pk} {asked.query}", draw) if is_kept else draw()

    if asked.is_overview:
        return kept("overview", lambda: _overview(track, asked, version))
    board = dict(zip(track.board_names(), stored_boards(track, version), strict=True))[asked.budget]
    counted = kept("counts", lambda: "{} {}".format(*board.counts(asked.selection)))
    ranked, unranked = map(int, counted.split())
    places = range(unranked if asked.only_unranked else ranked)
    shown = page_of(places, PAGE_LENGTH, page)
    return kept(f"board {shown.number} {today}", lambda: _page(board, asked, shown, unranked, today))


def _page(board: StoredBoard, asked: BoardQuery, page: Page[int], unranked_count: int, today: date) -> str:
    track, selection = board.track, asked.selection
    table = board_table(
        track,
        more=asked.more,
        picks=True,
        trust=_trust_differs(track),
        order=None
        if asked.only_unranked
        else Order(selection.sort, selection.is_reversed, asked.address_sorted),
    )
    start = (page.number - 1) * PAGE_LENGTH
    if asked.only_unranked:
        rows = board.unranked(selection, start, start + PAGE_LENGTH)
        return _drawn(track, asked, ShownBoard("", rows, table, page))
    nearest = NEAREST if page.number == 1 and unranked_count else 0
    rows, unranked = board.with_nearest(selection, start, start + PAGE_LENGTH, nearest)
    before = ranks_before(track, [row.entry.run for row in rows], today)
    rows = [replace(row, was=before.get(row.entry.run)) for row in board.with_ranges(rows)]
    caption = f"Ranked by {track.kind.words.title}{at_budget(board.budget)}"
    if selection.sort is not Sort.RANK:
        caption += f", sorted by {SORT_LABELS[selection.sort]}"
    if selection.is_reversed:
        caption += ", in reverse order"
    shown = ShownBoard(caption, rows, table, page, [("", row) for row in unranked], unranked_count)
    return _drawn(track, asked, shown)


def _drawn(track: Track, asked: BoardQuery, board: ShownBoard) -> str:
    context = {
        "track": track,
        "asked": asked,
        "board": replace(board, table=board.table.without_repeats(board.rows)),
        "unranked": board.unranked,
        "scored_on": scored_test_set(track),
        "is_examined": _are_examined(board.rows),
    }
    return render_to_string("boards/page_of_board.html", context)


def _overview(track: Track, asked: BoardQuery, version: str) -> str:
    boards = stored_boards(track, version)
    withheld = withheld_of(track, asked.selection, version)
    overview = overview_of(boards, asked.selection, LEADING, withheld)
    methods = overview.methods
    if asked.by:
        is_reversed = asked.by.startswith(DOWN)
        methods = by_score(methods, float(asked.sorted_by), is_reversed=is_reversed)
    unranked = dict(zip(track.board_names(), unranked_counts(track, asked.selection).values(), strict=True))
    context = {
        "track": track,
        "asked": asked,
        "heads": [asked.head_at(name) for name in track.board_names()],
        "lines": [overview_row(method, has_privacy=asked.more) for method in methods],
        "unranked": overview.withheld,
        "unranked_boards": [
            (
                budget_text(float(name)),
                count,
                "?" + replace(asked, budget=name, only_unranked=True, by="").query,
            )
            for name, count in unranked.items()
            if count
        ],
        "unranked_count": sum(unranked.values()),
        "leading": LEADING,
        "scored_on": scored_test_set(track),
        "is_examined": _are_examined(
            row for method in overview.methods for row in method.rows if row is not None
        ),
    }
    return render_to_string("boards/overview.html", context)


def _trust_differs(track: Track) -> bool:
    """Return whether a run of the track may have more than the level that every run has."""
    return Examination.objects.filter(
        run__in=public_runs().filter(submission__track=track), state=ExaminationState.PASSED
    ).exists()


def _are_examined(rows: Iterable[Row]) -> bool:
    """Return whether the training of any of these runs was replayed or rerun."""
    return any((row.entry.results.trust_level or 0) >= TrustLevel.REPLAYED for row in rows)
