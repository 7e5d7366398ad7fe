"""What the papers and the published code print about methods on PFL-DocVQA: published.yaml, as values."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Self

import yaml
from pydantic import BaseModel, ConfigDict, model_validator

FILE = Path(__file__).with_suffix(".yaml")
# What the sources print as GB; the baselines' are GiB.
BYTES = {"MB": 10**6, "GB": 10**9, "GiB": 2**30}


class Source(StrEnum):
    """Who printed a number."""

    PRIVACY = "privacy"
    COMPETITION = "competition"
    KIT = "kit"
    WINNER = "winner"


@dataclass(frozen=True)
class Number:
    """A published number, as printed in its unit."""

    source: Source
    table: str
    row: str
    column: str
    value: float
    unit: str

    @property
    def share(self) -> float:
        """A score or an accuracy, from 0 to 1."""
        return self.value / 100 if self.unit == "%" else self.value

    @property
    def bytes(self) -> float:
        """A size in bytes."""
        return self.value * BYTES[self.unit]


class Table(BaseModel):
    """A table of a source, or the part of its text that has numbers.

    Attributes:
        columns: The unit of each column.
        rows: The values of each row, in the order of the columns; None where none is printed.
        configs: The kit's config that trains a row.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: Source
    table: str
    title: str
    columns: dict[str, str]
    rows: dict[str, list[float | None]]
    configs: dict[str, str] = {}

    @model_validator(mode="after")
    def _rows_have_all_columns(self) -> Self:
        wrong = [row for row, values in self.rows.items() if len(values) != len(self.columns)]
        if unknown := wrong or sorted(self.configs.keys() - self.rows.keys()):
            raise ValueError(f"table {self.table} of {self.source}: {', '.join(unknown)}")
        return self

    def numbers(self) -> Iterator[Number]:
        """Yield all that is printed."""
        for row, values in self.rows.items():
            for (column, unit), value in zip(self.columns.items(), values, strict=True):
                if value is not None:
                    yield Number(self.source, self.table, row, column, value, unit)

    def number(self, row: str, column: str) -> Number:
        """Return a number that is printed; raises KeyError where there is none."""
        for number in self.numbers():
            if (number.row, number.column) == (row, column):
                return number
        raise KeyError(f"table {self.table} of {self.source} has no {column} of {row}")


class Published(BaseModel):
    """All that is published, by table.

    Attributes:
        sources: What each source is cited as.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: dict[Source, str]
    tables: list[Table]

    def table(self, source: Source, name: str) -> Table:
        """Return a table of a source; raises KeyError where there is none."""
        for table in self.tables:
            if (table.source, table.table) == (source, name):
                return table
        raise KeyError(f"{source} has no table {name}")


@cache
def published() -> Published:
    """Return the numbers of the file."""
    return Published.model_validate(yaml.safe_load(FILE.read_text(encoding="utf-8")))
