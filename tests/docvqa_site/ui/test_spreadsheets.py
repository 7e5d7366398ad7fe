"""CSV files as exports write them, a column at a time."""

import csv
import io
from datetime import UTC, datetime

from docvqa_site.reviews.verdict import ResultStatus
from docvqa_site.ui.spreadsheets import csv_lines

COLUMNS: list[list[object]] = [
    ["plain", 'quotes " and "" more', "a,b;c", "two\r\nlines", ""],
    [1.0, 1e-05, 0.30000000000000004, None, -2.5],
    [True, False, True, 10**12, 0],
    [ResultStatus.VERIFIED, ResultStatus.SCORED, ResultStatus.VERIFIED, "é", "\u200bx"],
]


def test_lines_are_those_of_the_csv_module():
    expected = io.StringIO()
    csv.writer(expected, quoting=csv.QUOTE_ALL).writerows(zip(*COLUMNS, strict=True))
    assert "".join(csv_lines(COLUMNS)) == expected.getvalue()


def test_times_are_in_iso_format_and_no_cell_is_a_formula():
    at = datetime(2026, 11, 29, 8, 30, tzinfo=UTC)
    (line,) = csv_lines([[at], ["=1+1"], [" @now"], [-1]])
    assert line == '"2026-11-29T08:30:00+00:00","\'=1+1","\' @now","-1"\r\n'
