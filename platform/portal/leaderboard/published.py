"""The leaderboards as data: what the API and the CSV file give out."""

import csv
import io
from datetime import datetime

from django.conf import settings
from pydantic import BaseModel

from portal.challenge.models import Track
from portal.leaderboard.boards import boards_of
from portal.leaderboard.ranking import Row

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class PublishedRow(BaseModel):
    """One run. `reason` says why `rank` is null; `bytes_total` is in bytes.

    `epsilon` is the one that decides; `epsilon_two_stage` and `epsilon_product` are the PLD accountant's under either
    sampling rule, `epsilon_rdp` is Rényi DP's under the rule that decides.
    """

    rank: int | None
    reason: str
    status: str
    is_baseline: bool
    method: str
    team: str
    anls: float | None
    accuracy: float | None
    bytes_total: int | None
    epsilon: float | None
    epsilon_two_stage: float | None
    epsilon_product: float | None
    epsilon_rdp: float | None
    accountant: str
    trust_level: str
    flagged_checks: int
    submitted_at: datetime
    url: str


class PublishedBoard(BaseModel):
    """One table; `budget` is its ε, null where ε plays no part."""

    budget: float | None
    rows: list[PublishedRow]


class PublishedTrack(BaseModel):
    track: str
    boards: list[PublishedBoard]


def publish(track: Track) -> PublishedTrack:
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
        status=entry.standing,
        is_baseline=entry.is_baseline,
        method=entry.method,
        team=entry.team,
        anls=entry.anls,
        accuracy=entry.accuracy,
        bytes_total=entry.bytes_total,
        epsilon=entry.epsilon,
        epsilon_two_stage=entry.epsilon_two_stage,
        epsilon_product=entry.epsilon_product,
        epsilon_rdp=entry.epsilon_rdp,
        accountant=entry.accountant,
        trust_level="" if entry.trust is None else entry.trust.label,
        flagged_checks=entry.flagged,
        submitted_at=entry.submitted_at,
        url=settings.SITE_URL + entry.url,
    )


def as_csv(published: PublishedTrack) -> str:
    """One line a run, all boards below each other."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["track", "budget", *PublishedRow.model_fields])
    for board in published.boards:
        for row in board.rows:
            values = row.model_dump(mode="json").values()
            writer.writerow([published.track, board.budget, *map(_cell, values)])
    return file.getvalue()


def _cell(value: object) -> object:
    """Text that a spreadsheet would take for a formula gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
