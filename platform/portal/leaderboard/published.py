"""The leaderboards as data, for the API and the CSV file."""

import csv
import io
from datetime import datetime

from django.conf import settings
from pydantic import BaseModel

from evaluator.results import RunResults
from portal.challenge.models import Track
from portal.evaluation.results import EPSILON_COLUMNS
from portal.leaderboard.boards import boards_of
from portal.leaderboard.ranking import Row

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class PublishedRow(BaseModel):
    """One run. `reason` says why `rank` is null."""

    rank: int | None
    reason: str
    status: str
    is_baseline: bool
    method: str
    team: str
    results: RunResults
    flagged_checks: int
    submitted_at: datetime
    url: str


# A result that is a list has no cell of its own: of the ε there is one column each, of the checks the number of flags.
CSV_COLUMNS = [
    "track",
    "budget",
    *(name for name in PublishedRow.model_fields if name != "results"),
    *RunResults().values(),
    *(f"epsilon_{column.key}" for column in EPSILON_COLUMNS),
]


class PublishedBoard(BaseModel):
    """One table; `budget` is its ε, null where ε plays no part."""

    budget: float | None
    rows: list[PublishedRow]


class PublishedTrack(BaseModel):
    """All boards of one track."""

    track: str
    boards: list[PublishedBoard]


def publish(track: Track) -> PublishedTrack:
    """Return all boards of the track."""
    return PublishedTrack(
        track=track.slug,
        boards=[
            PublishedBoard(budget=board.budget, rows=[_publish(row) for row in board.rows])
            for board in boards_of(track)
        ],
    )


def _publish(row: Row) -> PublishedRow:
    entry = row.entry
    return PublishedRow(
        rank=row.rank,
        reason=row.reason,
        status=entry.status,
        is_baseline=entry.is_baseline,
        method=entry.method,
        team=entry.team,
        results=entry.results,
        flagged_checks=entry.results.flagged_checks,
        submitted_at=entry.submitted_at,
        url=settings.SITE_URL + entry.url,
    )


def as_csv(published: PublishedTrack) -> str:
    """Return the boards as a CSV file, one below the other, with one line for each run."""
    file = io.StringIO()
    writer = csv.DictWriter(file, CSV_COLUMNS)
    writer.writeheader()
    for board in published.boards:
        for row in board.rows:
            cells = {name: _cell(value) for name, value in _values(row).items()}
            writer.writerow({"track": published.track, "budget": board.budget, **cells})
    return file.getvalue()


def _values(row: PublishedRow) -> dict[str, object]:
    epsilons = {column.key: column.of(row.results) for column in EPSILON_COLUMNS}
    return {
        **row.model_dump(mode="json", exclude={"results"}),
        **row.results.values(),
        **{f"epsilon_{key}": epsilon and epsilon.epsilon for key, epsilon in epsilons.items()},
    }


def _cell(value: object) -> object:
    """Return the cell's value; text that a spreadsheet would take for a formula gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
