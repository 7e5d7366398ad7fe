"""Two methods of a track side by side, and the form that picks them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.boards import leading_methods, selected_rows, stored_boards
from docvqa_site.boards.caching import page_unless_unchanged
from docvqa_site.boards.column import Shown
from docvqa_site.boards.columns import columns_of
from docvqa_site.boards.ranking import Entry, Row
from docvqa_site.boards.selection import EVERYTHING, Selection
from docvqa_site.boards.uncertainty import Ends
from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.test_sets.drawn_means import shown_means
from docvqa_site.pages.question_types import TypeRow, type_rows, types_title
from docvqa_site.ui.budgets import at_budget
from evaluator.messages.jobs import DrawnMeans

# Of each board; any other is picked on its board or its own page.
OFFERED = 50


@dataclass(frozen=True)
class Pair:
    """The runs of two methods on one board."""

    track: Track
    budget: float | None
    means: Mapping[UUID, DrawnMeans]
    first: Row
    second: Row

    @property
    def rows(self) -> tuple[Row, Row]:
        return self.first, self.second

    @property
    def paired(self) -> Ends | None:
        """The paired interval of the difference of their scores; None where their workers drew other providers."""
        # Imported here: the web process needs scipy for nothing else.
        from evaluator.scoring.paired_draws import paired_interval

        first, second = (self.means.get(row.entry.run) for row in self.rows)
        return paired_interval(first, second) if first and second else None

    @property
    def types(self) -> list[TypeRow]:
        named = zip("AB", self.rows, strict=True)
        return type_rows([(f"{name}: {row.entry.method}", row.entry.results) for name, row in named])

    @property
    def types_title(self) -> str:
        return types_title(self.types)

    @property
    def types_caption(self) -> str:
        return f"{self.types_title}{at_budget(self.budget)}"

    @property
    def lines(self) -> list[tuple[SafeString, SafeString, SafeString, str]]:
        """For each column its title, both values, and what there is to say of the two."""
        paired = self.paired
        return [
            (
                column.term,
                column.content(self.first),
                column.content(self.second),
                column.difference(self.first, self.second, paired),
            )
            for column in columns_of(self.track, Shown.COMPARISON)
        ]


@require_safe
def compare(request: HttpRequest, slug: str) -> HttpResponse:
    """Show two methods side by side, or the form that picks them unless the address names two."""
    track = get_object_or_404(Track, slug=slug)
    wanted = picked(request.GET)
    version = boards_versions([track.pk])[track.pk]

    def respond() -> HttpResponse:
        draw = _compared if len(wanted) == 2 else _offered
        return render(request, "pages/compare.html", {"track": track, **draw(track, wanted, version)})

    return page_unless_unchanged(request, version, respond)


def picked(query: QueryDict) -> list[UUID]:
    """Return the submissions that an address names, each once. Raises `Http404` for what can't be one."""
    try:
        return list(dict.fromkeys(UUID(value) for value in query.getlist("method") if value))
    except ValueError as error:
        raise Http404("no such method") from error


def _compared(track: Track, wanted: Sequence[UUID], version: str) -> dict[str, object]:
    boards = stored_boards(track, version, with_checks=True)
    selection = Selection(submissions=tuple(wanted))
    rows = [
        {row.entry.submission: row for row in found}
        for found in selected_rows(selection, boards, len(wanted))
    ]
    both = [(board.budget, found) for board, found in zip(boards, rows, strict=True) if len(found) == 2]
    alone = [(board.budget, found) for board, found in zip(boards, rows, strict=True) if len(found) == 1]
    methods = [_entry(submission, rows) for submission in wanted]
    found = [[row[submission] for row in rows if submission in row] for submission in wanted]
    means = shown_means({row.entry.run: row.entry.results for _, pair in both for row in pair.values()})
    return {
        "methods": methods,
        "has_links": any(entry.code_url or entry.paper_url for entry in methods),
        "statuses": [dict.fromkeys((row.status, row.badge) for row in own) for own in found],
        "pairs": [
            Pair(track, budget, means, *(found[submission] for submission in wanted))
            for budget, found in both
        ],
        "alone": [(budget, row.entry.method) for budget, found in alone for row in found.values()],
    }


def _entry(submission: UUID, rows: Sequence[dict[UUID, Row]]) -> Entry:
    """Return the submission's first entry. Raises `Http404` for one that is on no board."""
    entry = next((found[submission].entry for found in rows if submission in found), None)
    if entry is None:
        raise Http404("no such method in this track")
    return entry


def _offered(track: Track, wanted: Sequence[UUID], version: str) -> dict[str, object]:
    """Return the methods that the form offers: the first of each board, and those that were picked already."""
    boards = stored_boards(track, version)
    leading = [method.entry for method in leading_methods(boards, EVERYTHING, OFFERED)]
    missing = set(wanted) - {entry.submission for entry in leading}
    others: dict[UUID, Entry] = {}
    if missing:
        selection = Selection(submissions=tuple(missing)[:OFFERED])
        found = selected_rows(selection, boards, OFFERED)
        others = {row.entry.submission: row.entry for rows in found for row in rows}
    picks = [str(submission) for submission in wanted[:2]]
    return {
        "offered": [*others.values(), *leading],
        "picks": [*picks, "", ""][:2],
        "too_many": len(wanted) > 2,
        "too_few": len(wanted) == 1,
    }
