"""Runs beside each other, as papers print them: experiment, ANLS, accuracy, gigabytes and ε.

Nothing is evaluated here: scores are those that `pfl evaluate` left in the run folders.
"""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Self

from evaluator.mechanisms.units import PrivacyUnit
from evaluator.scoring.metrics import cut
from starter_kit.reporting.repetitions import RunGroup, Spread, run_groups
from starter_kit.reporting.rounding import GIGABYTE, epsilon_text, significant
from starter_kit.settings.words import written

MISSING = "–"
SHOWN_SETTINGS = 8
SHOWN_DIGITS = 12  # of a hash
NOT_PRIVATE = "inf"  # in CSV, where most readers parse it as a number


@dataclass(frozen=True)
class RunComparison:
    """The rows of compared runs, and the ways to write them."""

    rows: Sequence[RunGroup]

    @classmethod
    def of(cls, folders: Sequence[Path], *, by_anls: bool = False, group: bool = False) -> Self:
        """Read the runs in `folders`.

        Args:
            by_anls: Sort by ANLS, the highest first and runs without one last; otherwise the given order is kept.
            group: Make one row of runs whose settings differ in nothing but seed, name and device.

        Raises:
            ProblemError: (`E_RUN_FOLDER`) Folders hold no finished run; one problem for each.
        """
        rows = run_groups(folders, group=group)
        if by_anls:
            rows.sort(key=lambda row: row.anls.mean if row.anls else -1.0, reverse=True)
        return cls(rows)

    @property
    def text_columns(self) -> list[str]:
        """Return the names of the first columns, which hold text."""
        return ["run", "experiment"]

    @property
    def number_columns(self) -> list[str]:
        """Return the names of the columns after those of text."""
        return [*(["n"] if self._repeated else []), "ANLS", "accuracy", "GB", "ε"]

    @property
    def cells(self) -> list[list[str]]:
        """Return the text of every cell, row by row, rounded as people read it."""
        return [self._cells(row) for row in self.rows]

    @property
    def notes(self) -> list[str]:
        """Return what a reader must know about the numbers, a sentence or two each."""
        notes = []
        if len(splits := self._splits) == 1:
            notes.append(f"ANLS and accuracy: on the split {splits[0]}.")
        if any(row.anls is None for row in self.rows):
            notes.append(f"{MISSING}: not evaluated yet; run `pfl evaluate` on it.")
        notes.append("GB: 10⁹ bytes, sent in both directions.")
        if deltas := self._deltas:
            at = f" at δ = {deltas[0]:g}" if len(deltas) == 1 else ""
            notes.append(
                f"ε{at}: for each provider unless it says otherwise, of one run alone, as its trainer claims."
            )
        if self._repeated:
            notes.append(
                "±: standard deviation (n − 1) over n runs. GB is their mean, ε the largest of theirs."
            )
        return notes + self._differences

    @property
    def differing(self) -> list[str]:
        """Return the settings that differ within a method, or between methods that all have them."""
        names = list(dict.fromkeys(name for row in self.rows for name in row.settings))
        methods: dict[str, list[RunGroup]] = {}
        for row in self.rows:
            methods.setdefault(row.method, []).append(row)
        common = [rows for rows in (self.rows,) if len(methods) > 1]
        return [
            name
            for name in names
            if any(_differ(name, rows) for rows in methods.values())
            or any(_differ(name, rows) for rows in common if all(name in row.settings for row in rows))
        ]

    def as_markdown(self) -> str:
        """Write a table as GitHub reads it, with the notes below."""
        lines = [
            self.text_columns + self.number_columns,
            ["---"] * len(self.text_columns) + ["---:"] * len(self.number_columns),
        ]
        lines += [[_escaped(cell) for cell in cells] for cells in self.cells]
        table = [f"| {' | '.join(line)} |" for line in lines]
        return "\n".join([*table, "", *(f"- {note}" for note in self.notes), ""])

    def as_csv(self) -> str:
        """Write numbers unrounded; what is missing is empty, and the ε of a run that isn't private is `inf`."""
        file = StringIO()
        writer = csv.writer(file, lineterminator="\n")
        for index, row in enumerate(self.rows):
            record = _record(row) | {"runs": " ".join(row.runs)}
            if row.epsilon is None:
                record["epsilon"] = NOT_PRIVATE
            if index == 0:
                writer.writerow(record)
            writer.writerow(record.values())
        return file.getvalue()

    def as_json(self) -> str:
        """Write a list of objects, numbers unrounded; null stands for what is missing and for a missing guarantee.

        `settings` has the settings in which rows differ.
        """
        differing = self.differing
        records = [
            _record(row) | {"settings": {name: row.settings.get(name) for name in differing}}
            for row in self.rows
        ]
        return json.dumps(records, indent=2, ensure_ascii=False, default=str) + "\n"

    @property
    def _differences(self) -> list[str]:
        """A line for each of the first settings that differ, with the rows of each value."""
        lines = []
        for name in self.differing[:SHOWN_SETTINGS]:
            values: dict[str, list[str]] = {}
            for row in self.rows:
                value = written(row.settings[name]) if name in row.settings else MISSING
                value = value[:SHOWN_DIGITS] if name.endswith("sha256") else value
                values.setdefault(value, []).append(row.runs[0])
            said = "; ".join(f"{value} ({', '.join(runs)})" for value, runs in values.items())
            lines.append(f"{name}: {said}.")
        if (more := len(self.differing) - SHOWN_SETTINGS) > 0:
            lines.append(
                f"{more} more setting{'s differ' if more > 1 else ' differs'}: --format json lists them."
            )
        return lines

    @property
    def _splits(self) -> list[str]:
        return sorted({row.split for row in self.rows if row.split is not None and row.anls is not None})

    @property
    def _deltas(self) -> list[float]:
        return sorted({row.delta for row in self.rows if row.delta is not None})

    @property
    def _repeated(self) -> bool:
        return any(len(row.runs) > 1 for row in self.rows)

    def _cells(self, row: RunGroup) -> list[str]:
        split = f" ({row.split})" if len(self._splits) > 1 else ""
        return [
            ", ".join(row.runs),
            row.experiment,
            *([str(len(row.runs))] if self._repeated else []),
            _score(row.anls, split, row.decimals),
            _score(row.accuracy, split, row.decimals),
            significant(row.size_bytes.mean / GIGABYTE),
            self._epsilon(row),
        ]

    def _epsilon(self, row: RunGroup) -> str:
        """The ε of a row, with what is unusual: a unit other than the provider, a δ that not all rows have."""
        unusual = [] if row.unit in (None, PrivacyUnit.PROVIDER) else [str(row.unit)]
        if row.delta is not None and len(self._deltas) > 1:
            unusual.append(f"δ = {row.delta:g}")
        return epsilon_text(row.epsilon) + (f" ({', '.join(unusual)})" if unusual else "")


def _differ(name: str, rows: Sequence[RunGroup]) -> bool:
    first, *others = (row.settings.get(name, MISSING) for row in rows)
    return any(other != first for other in others)


def _score(score: Spread | None, split: str, decimals: int) -> str:
    if score is None:
        return MISSING
    deviation = "" if score.deviation is None else f" ±{score.deviation:.{decimals}f}"
    return f"{cut(score.mean, decimals)}{deviation}{split}"


def _record(row: RunGroup) -> dict[str, object]:
    """The row's numbers by name, as files have them."""
    return {
        "runs": list(row.runs),
        "n": len(row.runs),
        "experiment": row.experiment,
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


def _escaped(text: str) -> str:
    """`text` as Markdown that shows it as it is."""
    return "".join(f"\\{c}" if c in r"\`*_[]<>|#~&" else c if c.isprintable() else " " for c in text)
