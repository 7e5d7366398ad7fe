"""The leaderboards as data, for the API and the CSV file."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from django.conf import settings
from pydantic import BaseModel

from evaluator.messages.results import RunResults
from portal.boards.boards import StoredBoard, stored_boards
from portal.boards.ranking import Row
from portal.challenge.models import Track
from portal.evaluation.display.results import EPSILON_COLUMNS, leakage_text, public_results
from portal.evaluation.models import ScoredPart
from portal.evaluation.test_sets.parts import scored_part
from portal.ui.spreadsheets import without_formula


class PublishedRow(BaseModel):
    """One run. `reason` says why `rank` is null; scores are cut to four decimals, and ranked as they are.

    The `team` of an anonymous submission is its alias; `phase` is the one in which it was submitted.
    `proof_url` is null unless its privacy proof is public.
    """

    rank: int | None
    reason: str
    status: str
    is_baseline: bool
    is_disqualified: bool
    method: str
    team: str
    phase: str
    results: RunResults
    flagged_checks: int
    submitted_at: datetime
    url: str
    proof_url: str | None


# A result of several values has no cell of its own: of the ε there is one column each, of the checks the number of
# flags, of the leakage its AUC.
CSV_COLUMNS = [
    "track",
    "budget",
    *(name for name in PublishedRow.model_fields if name != "results"),
    *RunResults().values(),
    *(f"epsilon_{column.key}" for column in EPSILON_COLUMNS),
    "leakage",
]


class PublishedBoard(BaseModel):
    """A part of one table, which has `count` rows; `budget` is its ε, null where ε plays no part."""

    budget: float | None
    count: int
    rows: list[PublishedRow]


class PublishedTrack(BaseModel):
    """The boards of one track, with scores on this part of its test set."""

    track: str
    scored_on: ScoredPart
    boards: list[PublishedBoard]


def publish(track: Track, boards: Iterable[StoredBoard], part: slice) -> PublishedTrack:
    """Return a part of each of these boards of the track."""
    return PublishedTrack(
        track=track.slug,
        scored_on=scored_part(track),
        boards=[
            PublishedBoard(
                budget=board.budget,
                count=len(board),
                rows=[_publish(row, board.budget) for row in board[part]],
            )
            for board in boards
        ],
    )


def _publish(row: Row, budget: float | None) -> PublishedRow:
    entry = row.entry
    return PublishedRow(
        rank=row.rank,
        reason=row.reason,
        status=entry.status,
        is_baseline=entry.is_baseline,
        is_disqualified=bool(entry.disqualified_because),
        method=entry.method,
        team=entry.team,
        phase=entry.phase,
        results=public_results(entry.results, budget),
        flagged_checks=entry.flagged_checks,
        submitted_at=entry.submitted_at,
        url=settings.SITE_URL + entry.url,
        proof_url=_proof_url(row),
    )


def publish_all(track: Track, phase: str = "") -> PublishedTrack:
    """Return all rows of the track, or those of one phase, ranked among themselves; without the checks."""
    boards = []
    for board in stored_boards(track):
        rows = [_publish(row, board.budget) for row in _of_phase(board, phase)]
        boards.append(PublishedBoard(budget=board.budget, count=len(rows), rows=rows))
    return PublishedTrack(track=track.slug, scored_on=scored_part(track), boards=boards)


def _of_phase(rows: Iterable[Row], phase: str) -> Iterator[Row]:
    """Yield the rows of a phase with the ranks that they have among themselves; all of them where none is named."""
    rank = 0
    for row in rows:
        if phase in ("", row.entry.phase):
            rank += row.rank is not None
            yield replace(row, rank=rank if row.rank else None)


def as_json(track: Track, schema: str) -> str:
    """Return the boards as a JSON file that follows the schema at this address."""
    return json.dumps({"$schema": schema, **publish_all(track).model_dump(mode="json")}, ensure_ascii=False)


def as_csv(track: Track, phase: str = "") -> str:
    """Return the boards as a CSV file, one below the other, with a line for each run, or for those of one phase."""
    file = io.StringIO()
    # Every cell is quoted: with another separator than ours, a part of an unquoted one becomes a cell of its own.
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerow(CSV_COLUMNS)
    for board in stored_boards(track):
        for row in _of_phase(board, phase):
            values = {"track": track.slug, "budget": board.budget, **_values(row)}
            writer.writerow([_cell(values[name]) for name in CSV_COLUMNS])
    return file.getvalue()


def _values(row: Row) -> dict[str, object]:
    entry = row.entry
    return {
        "rank": row.rank,
        "reason": row.reason,
        "status": entry.status,
        "is_baseline": entry.is_baseline,
        "is_disqualified": bool(entry.disqualified_because),
        "method": entry.method,
        "team": entry.team,
        "phase": entry.phase,
        "flagged_checks": entry.flagged_checks,
        "submitted_at": entry.submitted_at.isoformat(),
        "url": settings.SITE_URL + entry.url,
        "proof_url": _proof_url(row),
        **entry.results.values(),
        **{f"epsilon_{column.key}": found and found.epsilon for column, found in entry.epsilons},
        "leakage": leakage_text(entry.results.leakage),
    }


def _proof_url(row: Row) -> str | None:
    return settings.SITE_URL + row.entry.proof_url if row.entry.proof_url else None


def _cell(value: object) -> object:
    return without_formula(value) if isinstance(value, str) else value
