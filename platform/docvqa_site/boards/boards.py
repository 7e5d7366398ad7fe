"""The boards of a track: its scored runs, ranked."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet
from django.db.models.fields.json import KeyTextTransform

from docvqa_site.boards.ordering import (
    Place,
    counts,
    first_verified,
    pending_levels,
    places,
    rank_ranges,
    ranked_on_each,
    ranked_places,
    unranked_places,
)
from docvqa_site.boards.queries import in_order, listed_runs
from docvqa_site.boards.ranking import Entry, Row, rank, rejection
from docvqa_site.boards.selection import EVERYTHING, Selection
from docvqa_site.boards.uncertainty import RankRanges
from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.display.results import without_traces_of_team
from docvqa_site.reviews.publication import is_public
from docvqa_site.reviews.selectors import verdicts_on
from docvqa_site.reviews.verdict import Tally, Verdict
from docvqa_site.submissions.keys import KeyAsText
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from docvqa_site.submissions.results_field import WithoutChecks
from docvqa_site.submissions.selectors import address_format, public_runs
from docvqa_site.ui.budgets import at_budget
from evaluator.messages.jobs import FirstDownload, TrustLevel
from evaluator.messages.rankings import Limits

# The rows that are loaded at once where all are needed.
BATCH = 500


@dataclass(frozen=True)
class Board:
    """One table. `budget` is its ε; None for the board of a track without budgets."""

    budget: float | None
    rows: Sequence[Row]


@dataclass(frozen=True)
class StoredBoard:
    """One table in the database, of which a slice is loaded in three queries; see `Board`.

    Its results have no checks, and no scores by type of question, unless `with_checks` says so.

    Attributes:
        version: That of the track's boards; None where it isn't known, so that the board asks for it.
    """

    track: Track
    budget: float | None
    with_checks: bool = False
    version: str | None = None

    def __len__(self) -> int:
        return listed_runs(self.track, self.budget).count()

    def __getitem__(self, part: slice) -> list[Row]:
        return self._rows(places(self.track, self.budget, part.start or 0, part.stop))

    def __iter__(self) -> Iterator[Row]:
        """Yield every row, in the order of one moment and with a batch of them in memory at a time."""
        lacking, ranks = pending_levels(self.track, self.budget), count(1)
        found = _read(in_order(self.track, self.budget), "has_rank", with_checks=self.with_checks)
        rows = found.iterator(BATCH)
        while batch := list(islice(rows, BATCH)):
            for row, entry in zip(batch, _entries(batch, self.track), strict=True):
                pending = lacking.get(entry.run) if lacking else None
                yield self._row(entry, next(ranks) if row.has_rank else None, pending)

    def places(self, start: int, stop: int) -> list[Place]:
        """Return which runs are in a part of the board."""
        return places(self.track, self.budget, start, stop)

    def rows(self, found: Sequence[Place], entries: Mapping[UUID, Entry]) -> list[Row]:
        """Return the rows at these places. A run that was taken off the board in the meantime has no entry."""
        known = [(place, entry) for place in found if (entry := entries.get(place.run))]
        # Most boards have no rank that needs an examination.
        is_asked = any(place.rank and entry.lacked_level for place, entry in known)
        lacking = pending_levels(self.track, self.budget) if is_asked else {}
        return [self._row(entry, place.rank, lacking.get(place.run)) for place, entry in known]

    def _row(self, entry: Entry, rank: int | None, pending: TrustLevel | None) -> Row:
        if rank:
            return Row(entry, rank, pending=pending)
        reason = rejection(entry, self.track.kind, self._limits)
        return Row(entry, None, reason.sentence, reason.short) if reason else Row(entry, None)

    @cached_property
    def _limits(self) -> Limits:
        return self.track.limits(self.budget)

    def ranked(self, selection: Selection, start: int, stop: int) -> list[Row]:
        """Return a part of the selected rows with a rank, in the order that is selected."""
        return self._rows(ranked_places(self.track, self.budget, selection, start, stop, self.version))

    def unranked(self, selection: Selection, start: int, stop: int) -> list[Row]:
        """Return a part of the selected rows without a rank, nearest to one first."""
        return self._rows(unranked_places(self.track, self.budget, selection, start, stop))

    def with_nearest(
        self, selection: Selection, start: int, stop: int, nearest: int
    ) -> tuple[list[Row], list[Row]]:
        """Return a part of the selected rows with a rank, and the nearest without one, all of them loaded together."""
        found = ranked_places(self.track, self.budget, selection, start, stop, self.version)
        others = unranked_places(self.track, self.budget, selection, 0, nearest) if nearest else []
        entries = entries_at(self.track, [*found, *others], with_checks=self.with_checks)
        return self.rows(found, entries), self.rows(others, entries)

    def counts(self, selection: Selection = EVERYTHING) -> tuple[int, int]:
        """Return how many of the selected rows have a rank, and how many have none."""
        return counts(self.track, self.budget, selection)

    def with_ranges(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows, on a board that is ranked by score with the ranks that each could have."""
        (found,) = with_ranges([self], [rows])
        return found

    def _rows(self, found: Sequence[Place]) -> list[Row]:
        return self.rows(found, entries_at(self.track, found, with_checks=self.with_checks))


def with_ranges(boards: Sequence[StoredBoard], rows: Sequence[Sequence[Row]]) -> list[list[Row]]:
    """Return the rows of each of a track's boards, if they are ranked by score with the ranks that each could have."""
    if not any(row.rank for own in rows for row in own):
        return [list(own) for own in rows]
    first = boards[0]
    ranges = rank_ranges(first.track, [board.budget for board in boards], first.version)
    return [
        [_with_range(row, ranges.get(board.budget)) for row in own]
        for board, own in zip(boards, rows, strict=True)
    ]


def _with_range(row: Row, ranges: RankRanges | None) -> Row:
    results = row.entry.results
    return replace(row, ranks=ranges.of(results.anls_low, results.anls_high)) if ranges and row.rank else row


@dataclass(frozen=True)
class Leaders:
    """Who leads a board: the first with a rank, and the first of those that are verified, where reviewers decide."""

    board: StoredBoard
    first: Row | None
    verified: Entry | None


def leaders_of(boards: Sequence[StoredBoard]) -> list[Leaders]:
    """Return who leads each of a track's boards; all of them are loaded together."""
    track = boards[0].track if boards else None
    if track is None:
        return []
    first = [next(iter(found), None) for found in _ranked_on_each(boards, EVERYTHING, 1)]
    verified = [first_verified(track, board.budget) if track.kind.is_reviewed else None for board in boards]
    known = [place.run for place in first if place] + [run for run in verified if run]
    entries = entries_at(track, [Place(run, None) for run in known])
    rows_of_first = _rows_with_ranges(boards, [[place] if place else [] for place in first], entries)
    return [
        Leaders(board, next(iter(rows), None), entries.get(run) if run else None)
        for board, rows, run in zip(boards, rows_of_first, verified, strict=True)
    ]


def selected_rows(selection: Selection, boards: Sequence[StoredBoard], length: int) -> list[list[Row]]:
    """Return the first selected rows of each of a track's boards, all of which are loaded together."""
    found = []
    for board, ranked in zip(boards, _ranked_on_each(boards, selection, length), strict=True):
        others = unranked_places(board.track, board.budget, selection, 0, length - len(ranked))
        found.append([*ranked, *others])
    return _rows_at(boards, found)


def _ranked_on_each(boards: Sequence[StoredBoard], selection: Selection, length: int) -> list[list[Place]]:
    """Return the first selected places with a rank on each of a track's boards."""
    budgets = [board.budget for board in boards]
    return ranked_on_each(boards[0].track, budgets, selection, 0, length, boards[0].version)


@dataclass(frozen=True)
class MethodRow:
    """A method on the boards of all budgets: its row on each, None where it has no run."""

    entry: Entry
    rows: Sequence[Row | None]
    budgets: Sequence[float | None]

    @property
    def cells(self) -> list[tuple[str, Row | None]]:
        """Each board's name with the row on it."""
        return [(at_budget(budget, "{}"), row) for budget, row in zip(self.budgets, self.rows, strict=True)]

    @property
    def best_rank(self) -> int:
        """Its smallest rank."""
        return min(row.rank for row in self.rows if row and row.rank)

    def place(self, length: int) -> tuple[float, ...]:
        """Return by what methods are ordered: best rank, then missing results, sum of ranks and mean score.

        Args:
            length: How many ranks are known of each board; each row beyond counts as the next.
        """
        ranked = [row for row in self.rows if row and not row.reason]
        scores = [row.entry.results.anls or 0.0 for row in ranked]
        ranks = sum(row.rank or length + 1 for row in ranked)
        return self.best_rank, len(self.rows) - len(ranked), ranks, -sum(scores) / len(scores)

    def score_at(self, budget: float) -> float | None:
        """Return its score at a budget; None where it has none."""
        row = self.rows[self.budgets.index(budget)]
        return row.entry.results.anls if row else None


@dataclass(frozen=True)
class Overview:
    """The boards of all budgets together.

    Attributes:
        methods: Those with one of the first rows on any board.
        withheld: Rows that were taken off their boards, each after the name of its board.
    """

    methods: Sequence[MethodRow]
    withheld: Sequence[tuple[str, Row]]


def overview_of(
    boards: Sequence[StoredBoard], selection: Selection, length: int, withheld: Sequence[UUID]
) -> Overview:
    """Return the selected methods that lead any of a track's boards, and the rows of these withheld runs."""
    # The boards of the withheld runs are known once these are loaded, with all others.
    methods, entries = _leading(boards, selection, length, withheld)
    by_budget = {board.budget: board for board in boards}
    rows = [
        (at_budget(entry.budget, "{}"), row)
        for run in withheld
        if (entry := entries.get(run)) and entry.budget in by_budget
        for row in by_budget[entry.budget].rows([Place(run, None)], entries)
    ]
    return Overview(methods, rows)


def by_score(methods: Sequence[MethodRow], budget: float, *, is_reversed: bool) -> list[MethodRow]:
    """Return the methods by their scores at a budget, the highest first or last; those without a score last of all."""
    scores = {method.entry.url: method.score_at(budget) for method in methods}
    known = [method for method in methods if scores[method.entry.url] is not None]
    others = [method for method in methods if scores[method.entry.url] is None]
    ordered = sorted(known, key=lambda method: -(scores[method.entry.url] or 0))
    return [*(ordered[::-1] if is_reversed else ordered), *others]


def leading_methods(boards: Sequence[StoredBoard], selection: Selection, length: int) -> list[MethodRow]:
    """Return the methods with the first of the selected rows on any of a track's boards, with all of their rows.

    The rank of a row that isn't among the first of its board is not counted, which would take a pass over all.
    """
    return _leading(boards, selection, length)[0]


def _leading(
    boards: Sequence[StoredBoard], selection: Selection, length: int, more: Sequence[UUID] = ()
) -> tuple[list[MethodRow], dict[UUID, Entry]]:
    """Return the methods with the first selected places of each board, and the entries of them and of `more` runs."""
    heads = _ranked_on_each(boards, selection, length)
    first = [place.run for head in heads for place in head]
    submissions = Run.objects.filter(pk__in=[*first, *more]).values("submission")
    runs = public_runs().filter(submission__in=submissions)
    loaded = _entries(_read(runs.order_by(), with_checks=boards[0].with_checks), boards[0].track)
    entries = {entry.run: entry for entry in loaded}
    leading = {entries[run].url for run in first if run in entries}
    found = []
    for board, head in zip(boards, heads, strict=True):
        known = {place.run for place in head}
        of_board = [entry for entry in loaded if entry.budget == board.budget and entry.url in leading]
        beyond = [Place(entry.run, None) for entry in of_board if entry.run not in known]
        found.append([*head, *beyond])
    return _methods(boards, _rows_with_ranges(boards, found, entries), length), entries


def _methods(boards: Sequence[StoredBoard], rows: Sequence[Sequence[Row]], length: int) -> list[MethodRow]:
    shown = [[_beyond(row, length) for row in of_board] for of_board in rows]
    methods = _by_method(shown, [board.budget for board in boards])
    return sorted(methods, key=lambda method: method.place(length))


def _beyond(row: Row, length: int) -> Row:
    """Return a row of which it is known only that it isn't among the first, with this in place of a reason."""
    return row if row.rank or row.reason else replace(row, short_reason=f"beyond #{length}")


def _by_method(boards: Sequence[Sequence[Row]], budgets: Sequence[float | None]) -> list[MethodRow]:
    by_method: dict[str, list[Row | None]] = {}
    for number, rows in enumerate(boards):
        for row in rows:
            by_method.setdefault(row.entry.url, [None] * len(boards))[number] = row
    methods = [
        MethodRow(next(row.entry for row in rows if row), rows, budgets)
        for rows in by_method.values()
        if any(row and row.rank for row in rows)
    ]
    # Of equal ranks that of the smaller budget first.
    return sorted(
        methods, key=lambda method: [row.rank or math.inf if row else math.inf for row in method.rows]
    )


def _rows_at(boards: Sequence[StoredBoard], found: Sequence[Sequence[Place]]) -> list[list[Row]]:
    all_places = [place for places_ in found for place in places_]
    entries = entries_at(boards[0].track, all_places, with_checks=boards[0].with_checks)
    return _rows_with_ranges(boards, found, entries)


def _rows_with_ranges(
    boards: Sequence[StoredBoard], found: Sequence[Sequence[Place]], entries: Mapping[UUID, Entry]
) -> list[list[Row]]:
    rows = [board.rows(places_, entries) for board, places_ in zip(boards, found, strict=True)]
    return with_ranges(boards, rows)


def entries_at(track: Track, found: Sequence[Place], *, with_checks: bool = False) -> dict[UUID, Entry]:
    """Return the entries at these places of the track's boards, in two queries."""
    runs = public_runs().filter(pk__in=[place.run for place in found])
    found = _read(runs.order_by(), with_checks=with_checks)
    return {entry.run: entry for entry in _entries(found, track)}


def stored_boards(
    track: Track, version: str | None = None, *, with_checks: bool = False
) -> list[StoredBoard]:
    """Return all boards of the track, with every scored run of a submission that was not withdrawn."""
    return [StoredBoard(track, budget, with_checks, version) for budget in track.run_budgets()]


def boards_of(track: Track) -> list[Board]:
    """Return all boards of the track with all of their rows, ranked in memory."""
    return [Board(budget, ranked_rows(track, budget)) for budget in track.run_budgets()]


def ranked_rows(track: Track, budget: float | None) -> list[Row]:
    """Return all rows of one board, ranked in memory."""
    entries = _entries(_read(listed_runs(track, budget).order_by()), track)
    return rank(entries, track.kind, track.limits(budget))


def _read(runs: QuerySet[Run], *more: str, with_checks: bool = False) -> Any:
    """Return a query of what a row shows of these runs, and nothing else of them, and `more`.

    Its rows are named tuples, whose fields the type checker doesn't know.
    """
    shown = F("results") if with_checks else WithoutChecks("results")
    first_download = KeyTextTransform("first_download", "rules")
    # As text: most rows are of an export, and to make identifiers of the keys takes longer than to read the rest.
    keys = {"key": KeyAsText("pk"), "submission_key": KeyAsText("submission_id")}
    return runs.annotate(shown=shown, first_download=first_download, **keys).values_list(
        "key",
        "budget",
        "shown",
        "flagged_checks",
        "submission_key",
        "submission__title",
        "submission__submitted_at",
        "submission__is_baseline",
        "submission__anonymous",
        "submission__alias",
        "submission__phase__name",
        "submission__phase__examined_ranks",
        "submission__phase__examined_level",
        "submission__phase__requires_counted",
        "submission__team__name",
        "submission__team__slug",
        "submission__code_url",
        "submission__license",
        "submission__paper_url",
        "submission__publishes_proof",
        "submission__acceptances",
        "submission__rejections",
        "submission__change_requests",
        "submission__rejection_stands",
        "submission__revises_rejected",
        "state",
        "disqualified_because",
        "log_accepted_at",
        "first_download",
        *more,
        named=True,
    )


def _entries(found: Iterable[Any], track: Track) -> list[Entry]:
    """Return the entries of what was read of runs of the track."""
    rows = list(found)
    tallies = [
        Tally(
            row.submission__acceptances,
            row.submission__rejections,
            row.submission__change_requests,
            row.submission__rejection_stands,
            row.submission__revises_rejected,
        )
        for row in rows
    ]
    verdicts = verdicts_on(track, [row.submission_key for row in rows], tallies)
    address, proof = address_format(), address_format("submissions:proof")
    entries = [_entry(row, verdict, address, proof) for row, verdict in zip(rows, verdicts, strict=True)]
    return [
        _anonymous(entry, row.submission__alias) if row.submission__anonymous else entry
        for entry, row in zip(entries, rows, strict=True)
    ]


def _entry(row: Any, verdict: Verdict, address: str, proof: str) -> Entry:
    has_public_proof = is_public(
        consents=row.submission__publishes_proof,
        status=verdict.status,
        # No others are on a board.
        state=SubmissionState.SUBMITTED,
        is_visible=True,
        is_named=not row.submission__anonymous,
    )
    return Entry(
        key=row.key,
        budget=row.budget,
        method=row.submission__title,
        team=row.submission__team__name,
        url=address.format(row.submission_key),
        submitted_at=row.submission__submitted_at,
        results=row.shown,
        status=verdict.status,
        status_reason=verdict.reason,
        is_withheld=verdict.is_withheld,
        flagged_checks=row.flagged_checks or 0,
        is_baseline=row.submission__is_baseline,
        is_evaluated_again=row.state != RunState.SCORED,
        disqualified_because=row.disqualified_because,
        team_slug=row.submission__team__slug,
        code_url=row.submission__code_url,
        license=row.submission__license,
        paper_url=row.submission__paper_url,
        submission_key=row.submission_key,
        phase=row.submission__phase__name,
        examined_ranks=row.submission__phase__examined_ranks,
        examined_level=row.submission__phase__examined_level,
        requires_counted=row.submission__phase__requires_counted,
        is_log_accepted=row.log_accepted_at is not None,
        first_download=row.first_download or FirstDownload.FREE,
        proof_url=proof.format(row.submission_key) if has_public_proof else "",
    )


def _anonymous(entry: Entry, alias: str) -> Entry:
    """Return the entry without what its team could be known by."""
    results = without_traces_of_team(entry.results)
    return replace(entry, team=alias, team_slug="", code_url="", paper_url="", results=results)
