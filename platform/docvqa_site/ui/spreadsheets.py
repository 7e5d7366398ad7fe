"""Text in CSV files that people open as spreadsheets."""

import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from types import NoneType
from typing import Any

# A spreadsheet takes a cell that begins with one of these for a formula, full-width forms of East Asian keyboards too.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def without_formula(text: str) -> str:
    """Return the text of a cell; one that a spreadsheet would take for a formula gets an apostrophe before it.

    Some leave out spaces before the formula, and characters that can't be seen.
    """
    # Almost every cell, and much faster than to look for characters that can't be seen.
    if not text or text[0].isalnum():
        return text
    first = next((one for one in text if not one.isspace() and unicodedata.category(one) != "Cf"), "")
    return f"'{text}" if text.startswith(FORMULA_STARTS) or first in FORMULA_STARTS else text


def csv_lines(columns: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield the lines of a CSV file, from the values of its columns; none begins a formula.

    Every cell is quoted: with another separator than ours, a part of an unquoted one becomes a cell of its own. Lines
    are those of `csv.writer` with `QUOTE_ALL`, which takes ten times as long for cells that are texts already.
    """
    for line in map('","'.join, zip(*map(_texts, columns), strict=True)):
        yield f'"{line}"\r\n'


def _texts(values: Iterable[Any]) -> list[str]:
    """Return the cells of a column. Its values are of one kind, or None: so most are written without a question."""
    found = list(values)
    kinds = set(map(type, found)) - {NoneType}
    if not kinds:
        return [""] * len(found)
    if kinds == {str}:
        # Most texts begin so, and no formula does.
        return [
            "" if not one else one if one[0].isalnum() and '"' not in one else _text(one) for one in found
        ]
    if kinds == {float}:
        return ["" if one is None else repr(one) for one in found]
    if len(kinds) > 1 or kinds == {datetime}:
        return list(map(_text, found))
    texts = {value: _text(value) for value in set(found)}
    return [texts[value] for value in found]


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    return without_formula(value).replace('"', '""') if isinstance(value, str) else str(value)
