"""Tables as CSV and JSON, written row by row while they are sent."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence

from django.core.serializers.json import DjangoJSONEncoder

from docvqa_site.ui.spreadsheets import without_formula


class _Echo:
    """A file that returns what is written instead of keeping it."""

    def write(self, text: str) -> str:
        return text


def as_csv(columns: Sequence[str], rows: Iterable[dict[str, object]]) -> Iterator[str]:
    """Yield the lines of a CSV file in which no text can be taken for a formula."""
    # Quoted: with another separator than ours, a part of an unquoted cell becomes a cell of its own.
    writer = csv.writer(_Echo(), quoting=csv.QUOTE_ALL)
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([cell(row[column]) for column in columns])


def as_json(rows: Iterable[dict[str, object]]) -> Iterator[str]:
    yield "["
    for number, row in enumerate(rows):
        yield (",\n" if number else "\n") + json.dumps(row, cls=DjangoJSONEncoder, ensure_ascii=False)
    yield "\n]\n"


def cell(value: object) -> object:
    """Return a value as a cell. A text that a spreadsheet would take for a formula gets an apostrophe in front."""
    match value:
        case None:
            return ""
        case bool() | int() | float():
            return value
        case dict() | list():
            text = json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)
        case _:
            text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return without_formula(text)
