"""Runs beside each other, as papers print them: method, ANLS, accuracy, gigabytes and ε.

Nothing is evaluated here: scores are those that `pfl evaluate` left in the run folders.
"""

import csv
import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from io import StringIO
from pathlib import Path

from rich.table import Column, Table
from rich.text import Text

from evaluator.mechanisms.units import PrivacyUnit
from evaluator.scoring.metrics import cut
from starter_kit.reporting.repetitions import Row, Spread, rows_of
from starter_kit.reporting.rounding import GIGABYTE, epsilon_text, significant

MISSING = "–"
NOT_PRIVATE = "inf"  # in CSV, where most readers take it as a number


class Format(StrEnum):
    """How a comparison is written."""

    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"


def compare(
    folders: Sequence[Path], *, form: Format = Format.TABLE, by_anls: bool = False, group: bool = False
) -> str | Table:
    """The runs in `folders` as a table to print (`Format.TABLE`) or as text.

    Args:
        by_anls: The highest ANLS first, runs without one last; otherwise rows stand as given.
        group: One row for runs whose settings differ in nothing but seed, name and device, with mean and deviation.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) Folders hold no finished run; one problem for each.
    """
    rows = rows_of(folders, group=group)
    if by_anls:
        rows.sort(key=lambda row: row.anls.mean if row.anls else -1.0, reverse=True)
    return WRITERS[form](rows)


def as_table(rows: Sequence[Row]) -> Table:
    """For a terminal, with notes below."""
    words, numbers = _columns(rows)
    table = Table(
        *(Column(name, min_width=8, overflow="fold") for name in words),
        *(Column(name, justify="right") for name in numbers),
        caption=Text("\n".join(_notes(rows))),
        caption_justify="left",
    )
    for row in rows:
        table.add_row(*map(Text, _cells(row, rows)))
    return table


def as_markdown(rows: Sequence[Row]) -> str:
    """A table as GitHub reads it, with notes below."""
    words, numbers = _columns(rows)
    lines = [words + numbers, ["---"] * len(words) + ["---:"] * len(numbers)]
    lines += [[_literal(cell) for cell in _cells(row, rows)] for row in rows]
    table = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([*table, "", *(f"- {note}" for note in _notes(rows)), ""])


def as_csv(rows: Sequence[Row]) -> str:
    """Numbers unrounded; what is missing is empty, and the ε of a run that isn't private is `inf`."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for index, row in enumerate(rows):
        record = _record(row) | {"runs": " ".join(row.runs)}
        if row.epsilon is None:
            record["epsilon"] = NOT_PRIVATE
        if index == 0:
            writer.writerow(record)
        writer.writerow(record.values())
    return file.getvalue()


def as_json(rows: Sequence[Row]) -> str:
    """A list of objects, numbers unrounded; what is missing is null, as is the ε of a run that isn't private."""
    return json.dumps([_record(row) for row in rows], indent=2, ensure_ascii=False) + "\n"


WRITERS: dict[Format, Callable[[Sequence[Row]], str | Table]] = {
    Format.TABLE: as_table,
    Format.MARKDOWN: as_markdown,
    Format.CSV: as_csv,
    Format.JSON: as_json,
}


def _columns(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Names of the columns: those of words, then those of numbers."""
    return ["run", "method"], [*(["n"] if _repeated(rows) else []), "ANLS", "accuracy", "GB", "ε"]


def _cells(row: Row, rows: Sequence[Row]) -> list[str]:
    split = f" ({row.split})" if len(_splits(rows)) > 1 else ""
    return [
        ", ".join(row.runs),
        row.method,
        *([str(len(row.runs))] if _repeated(rows) else []),
        _score(row.anls, split),
        _score(row.accuracy, split),
        significant(row.size_bytes.mean / GIGABYTE),
        _epsilon(row, rows),
    ]


def _score(score: Spread | None, split: str) -> str:
    if score is None:
        return MISSING
    deviation = "" if score.deviation is None else f" ±{score.deviation:.4f}"
    return f"{cut(score.mean)}{deviation}{split}"


def _epsilon(row: Row, rows: Sequence[Row]) -> str:
    """With what is unusual about it: a unit other than the provider, a δ that not all rows have."""
    unusual = [] if row.unit in (None, PrivacyUnit.PROVIDER) else [str(row.unit)]
    if row.delta is not None and len(_deltas(rows)) > 1:
        unusual.append(f"δ = {row.delta:g}")
    return epsilon_text(row.epsilon) + (f" ({', '.join(unusual)})" if unusual else "")


def _notes(rows: Sequence[Row]) -> list[str]:
    """What a reader must know of the numbers."""
    notes = []
    if len(splits := _splits(rows)) == 1:
        notes.append(f"ANLS and accuracy: on the split {splits[0]}.")
    if any(row.anls is None for row in rows):
        notes.append(f"{MISSING}: not evaluated yet; run `pfl evaluate` on it.")
    notes.append("GB: 10⁹ bytes, sent in both directions.")
    if deltas := _deltas(rows):
        at = f" at δ = {deltas[0]:g}" if len(deltas) == 1 else ""
        notes.append(
            f"ε{at}: for each provider unless it says otherwise, of one run alone, as its trainer claims."
        )
    if _repeated(rows):
        notes.append("±: standard deviation (n − 1) over n runs. GB is their mean, ε the largest of theirs.")
    return notes


def _record(row: Row) -> dict[str, object]:
    """The row's numbers by name, as files have them."""
    return {
        "runs": list(row.runs),
        "n": len(row.runs),
        "method": row.method,
        "anls": row.anls and row.anls.mean,
        "anls_deviation": row.anls and row.anls.deviation,
        "accuracy": row.accuracy and row.accuracy.mean,
        "accuracy_deviation": row.accuracy and row.accuracy.deviation,
        "split": row.split,
        "bytes_total": row.size_bytes.mean,
        "bytes_total_deviation": row.size_bytes.deviation,
        "epsilon": row.epsilon,
        "delta": row.delta,
        "unit": row.unit,
    }


def _splits(rows: Sequence[Row]) -> list[str]:
    return sorted({row.split for row in rows if row.split is not None and row.anls is not None})


def _deltas(rows: Sequence[Row]) -> list[float]:
    return sorted({row.delta for row in rows if row.delta is not None})


def _repeated(rows: Sequence[Row]) -> bool:
    return any(len(row.runs) > 1 for row in rows)


def _literal(text: str) -> str:
    """`text` as Markdown that shows it as it is."""
    return "".join(f"\\{c}" if c in r"\`*_[]<>|#~&" else c if c.isprintable() else " " for c in text)
