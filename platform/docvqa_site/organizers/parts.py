"""The scores of runs on the public and on the private part of their test set, and what revealing the latter does."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from docvqa_site.boards.boards import Board, boards_of
from docvqa_site.boards.effects import effect
from docvqa_site.boards.ranking import Entry, Row, rank
from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.models import ScoredPart, TestSet
from docvqa_site.evaluation.test_sets.parts import NOTE, open_because, private_scores, revealed, tracks_on
from docvqa_site.organizers.track_changes import Preview, board_sentences
from docvqa_site.submissions.results_field import with_shown_scores
from docvqa_site.ui.budgets import at_budget
from evaluator.messages.jobs import GroupScore


@dataclass(frozen=True)
class TwoScores:
    """A run's row on the board by the public part, and that by the private one."""

    board: str
    public: Row
    private: Row

    @property
    def difference(self) -> Decimal:
        """The private ANLS less the public one, as both are shown; below 0 where the run does worse in private."""
        private, public = (row.entry.results.anls or 0.0 for row in (self.private, self.public))
        return Decimal(repr(private)) - Decimal(repr(public))

    @property
    def has_moved(self) -> bool:
        return self.private.rank != self.public.rank


@dataclass(frozen=True)
class BothParts:
    """What an organizer sees of a test set's parts; `closed` says why the private one can't be revealed now."""

    test_set: TestSet
    tracks: Sequence[Track]
    rows: Sequence[TwoScores]
    preview: Preview
    closed: str


def mean_difference(rows: Sequence[TwoScores]) -> Decimal | None:
    return sum((row.difference for row in rows), Decimal()) / len(rows) if rows else None


def both_parts(test_set: TestSet, now: datetime) -> BothParts:
    """Return the scores on both parts of all listed runs, and what revealing the private part does."""
    tracks = tracks_on(test_set)
    rows: list[TwoScores] = []
    sentences: list[str] = []
    for track in tracks:
        for board in boards_of(track):
            name = f"{track}{at_budget(board.budget, ', {}')}"
            public, private = _on_both(track, board, test_set)
            # In the order of the private part.
            of_run = {row.entry.run: row for row in public}
            rows += [TwoScores(name, of_run[row.entry.run], row) for row in private]
            sentences += [f"{name}: {sentence}" for sentence in board_sentences(effect(public, private))]
    return BothParts(test_set, tracks, rows, Preview(NOTE, sentences), open_because(tracks, now))


def _on_both(track: Track, board: Board, test_set: TestSet) -> tuple[list[Row], list[Row]]:
    """Return the rows of a board as its runs rank by each part; those without a private score keep theirs."""
    entries = [row.entry for row in board.rows]
    if test_set.part is ScoredPart.PRIVATE:
        return _ranked(track, board, map(_on_public, entries)), list(board.rows)
    scores = private_scores([entry.run for entry in entries])
    return list(board.rows), _ranked(track, board, (_on_private(entry, scores) for entry in entries))


def _ranked(track: Track, board: Board, entries: Iterable[Entry]) -> list[Row]:
    return rank(entries, track.kind, track.limits(board.budget))


def _on_public(entry: Entry) -> Entry:
    results = entry.results
    if results.public_anls is None:
        return entry
    return replace(entry, results=results.model_copy(update={"anls": results.public_anls}))


def _on_private(entry: Entry, scores: Mapping[UUID, GroupScore]) -> Entry:
    score = scores.get(entry.run)
    return replace(entry, results=with_shown_scores(revealed(entry.results, score))) if score else entry
