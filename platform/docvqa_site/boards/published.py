"""The leaderboards as data, for the API and the CSV file."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, create_model

from docvqa_site.boards.boards import BATCH, StoredBoard, stored_boards
from docvqa_site.boards.column import Shown
from docvqa_site.boards.columns import COLUMNS, columns_of
from docvqa_site.boards.ranking import Row
from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.display.results import PUBLIC_FILES, public_results
from docvqa_site.evaluation.models import ScoredPart
from docvqa_site.evaluation.test_sets.parts import scored_part
from docvqa_site.ui.spreadsheets import csv_lines as table_lines
from evaluator.messages.results import RunResults

ROW = [column for column in COLUMNS if Shown.DATA in column.shown and not column.is_result]
CSV_COLUMNS = ["track", "budget", *(column.key for column in COLUMNS if Shown.DATA in column.shown)]

if TYPE_CHECKING:
    PublishedRow = BaseModel
else:
    PublishedRow = create_model(
        "PublishedRow",
        __doc__="One run. Scores are truncated to four decimals, by which runs rank; pages show `decimals` of them.",
        **{column.key: (column.type, Field(description=column.meaning)) for column in ROW},
        results=(RunResults, ...),
    )


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
    values = {column.key: column.value(row) for column in ROW}
    files = PUBLIC_FILES if row.entry.team_slug else ()
    return PublishedRow(**values, results=public_results(row.entry.results, budget, files))


def publish_all(track: Track, phase: str = "") -> PublishedTrack:
    """Return all rows of the track, or those of one phase, ranked among themselves; without the checks."""
    boards = []
    for board in stored_boards(track):
        rows = [_publish(row, board.budget) for row in of_phase(board, phase)]
        boards.append(PublishedBoard(budget=board.budget, count=len(rows), rows=rows))
    return PublishedTrack(track=track.slug, scored_on=scored_part(track), boards=boards)


def of_phase(rows: Iterable[Row], phase: str) -> Iterator[Row]:
    """Return the rows of a phase with the ranks that they have among themselves; all of them where none is named."""
    return _ranked_again(row for row in rows if row.entry.phase == phase) if phase else iter(rows)


def _ranked_again(rows: Iterable[Row]) -> Iterator[Row]:
    rank = 0
    for row in rows:
        rank += row.rank is not None
        yield replace(row, rank=rank if row.rank else None)


def json_parts(track: Track, schema: str) -> Iterator[str]:
    """Yield the boards as a JSON file that follows the schema at this address, a row at a time."""
    head = json.dumps({"$schema": schema, "track": track.slug, "scored_on": scored_part(track)})
    yield f'{head[:-1]}, "boards": ['
    for number, board in enumerate(stored_boards(track)):
        count = 0
        yield f'{", " if number else ""}{{"budget": {json.dumps(board.budget)}, "rows": ['
        for count, row in enumerate(of_phase(board, ""), start=1):
            yield f"{', ' if count > 1 else ''}{_publish(row, board.budget).model_dump_json()}"
        yield f'], "count": {count}}}'
    yield "]}"


def csv_lines(track: Track, phase: str = "") -> Iterator[str]:
    """Yield the boards as a CSV file, one below the other, with a line for each run, or for those of one phase."""
    shown = columns_of(track, Shown.DATA)
    yield from table_lines([name] for name in CSV_COLUMNS)
    for board in stored_boards(track):
        rows = of_phase(board, phase)
        while batch := list(islice(rows, BATCH)):
            of_board = (repeat(value, len(batch)) for value in (track.slug, board.budget))
            yield from table_lines(chain(of_board, (map(column.value, batch) for column in shown)))


def as_csv(track: Track, phase: str = "") -> str:
    """Return that CSV file."""
    return "".join(csv_lines(track, phase))
