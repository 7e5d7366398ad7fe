"""The boards of a track: its scored runs, ranked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, QuerySet

from portal.challenge.models import Track
from portal.leaderboard.ordering import Place, listed_runs, places, places_of
from portal.leaderboard.ranking import (
    Entry,
    Row,
    rank_by_anls,
    rank_by_bytes,
    rejection,
)
from portal.reviews.selectors import verdicts_on
from portal.submissions.models import Run, RunState, SubmissionState
from portal.submissions.results_field import FlaggedChecks, WithoutChecks
from portal.submissions.selectors import submission_addresses
from portal.teams.models import Team

# The rows that are loaded at once where all are needed.
BATCH = 500


@dataclass(frozen=True)
class Board:
    """One table. `budget` is its ε; None where the track ranks by bytes."""

    budget: float | None
    rows: Sequence[Row]


@dataclass(frozen=True)
class StoredBoard:
    """One table in the database, of which a slice is loaded in three queries; see `Board`.

    Its results have no checks unless `with_checks` says so.
    """

    track: Track
    budget: float | None
    with_checks: bool = False

    def __len__(self) -> int:
        return listed_runs(self.track, self.budget).count()

    def __getitem__(self, part: slice) -> list[Row]:
        return self._rows(places(self.track, self.budget, part.start or 0, part.stop))

    def __iter__(self) -> Iterator[Row]:
        """Yield every row, in the order of one moment and with a batch of them in memory at a time."""
        found = places(self.track, self.budget)
        for start in range(0, len(found), BATCH):
            yield from self._rows(found[start : start + BATCH])

    def places(self, start: int, stop: int) -> list[Place]:
        """Return which runs are in a part of the board."""
        return places(self.track, self.budget, start, stop)

    def places_of(self, team: Team) -> list[Place]:
        """Return which runs of the board are the team's, with the ranks that they have among all."""
        return places_of(team, self.track, self.budget)

    def rows(self, found: Sequence[Place], entries: Mapping[UUID, Entry]) -> list[Row]:
        """Return the rows at these places. A run that was taken off the board in the meantime has no entry."""
        return [
            Row(
                entry,
                place.rank,
                "" if place.rank else rejection(entry, self.budget, self.track.anls_threshold),
            )
            for place in found
            if (entry := entries.get(place.run))
        ]

    def _rows(self, found: Sequence[Place]) -> list[Row]:
        return self.rows(found, entries_at(self.track, found, with_checks=self.with_checks))


def heads_of(boards: Sequence[StoredBoard], length: int) -> list[list[Row]]:
    """Return the first rows of each of a track's boards, all of which are loaded together."""
    return _rows_at(boards, [board.places(0, length) for board in boards])


def rows_of(team: Team, boards: Sequence[StoredBoard]) -> list[list[Row]]:
    """Return the team's rows of each of a track's boards, all of which are loaded together."""
    return _rows_at(boards, [board.places_of(team) for board in boards])


def _rows_at(boards: Sequence[StoredBoard], found: Sequence[Sequence[Place]]) -> list[list[Row]]:
    entries = entries_at(boards[0].track, [place for places_ in found for place in places_])
    return [board.rows(places_, entries) for board, places_ in zip(boards, found, strict=True)]


def entries_at(track: Track, found: Sequence[Place], *, with_checks: bool = False) -> dict[UUID, Entry]:
    """Return the entries at these places of the track's boards, in two queries."""
    runs = Run.objects.filter(
        pk__in=[place.run for place in found],
        state=RunState.SCORED,
        submission__state=SubmissionState.SUBMITTED,
    )
    return {entry.run: entry for entry in _entries(runs, track, with_checks=with_checks)}


def stored_boards(track: Track, *, with_checks: bool = False) -> list[StoredBoard]:
    """Return all boards of the track, with every scored run of a submission that was not withdrawn."""
    return [StoredBoard(track, budget, with_checks) for budget in track.run_budgets()]


def boards_of(track: Track) -> list[Board]:
    """Return all boards of the track with all of their rows, ranked in memory."""
    return [Board(budget, _ranked(track, budget)) for budget in track.run_budgets()]


def _ranked(track: Track, budget: float | None) -> list[Row]:
    entries = _entries(listed_runs(track, budget), track)
    return rank_by_bytes(entries, track.anls_threshold) if budget is None else rank_by_anls(entries, budget)


def _entries(runs: QuerySet[Run], track: Track, *, with_checks: bool = False) -> list[Entry]:
    """Load what a row shows of these runs of the track, and nothing else of them."""
    rows = list(
        runs.order_by().values_list(
            "pk",
            F("results") if with_checks else WithoutChecks("results"),
            FlaggedChecks("results"),
            "submission_id",
            "submission__title",
            "submission__submitted_at",
            "submission__is_baseline",
            "submission__team__name",
            "disqualified_because",
        )
    )
    submissions = {row[3] for row in rows}
    verdicts, addresses = verdicts_on(track, submissions), submission_addresses(submissions)
    return [
        Entry(
            run=run,
            method=title,
            team=team,
            url=addresses[submission],
            submitted_at=submitted_at,
            results=results,
            status=verdicts[submission].status,
            status_reason=verdicts[submission].reason,
            flagged_checks=flagged,
            is_baseline=is_baseline,
            disqualified_because=disqualified,
        )
        for run, results, flagged, submission, title, submitted_at, is_baseline, team, disqualified in rows
    ]
