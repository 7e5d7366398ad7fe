"""`pfl compare`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

from starter_kit.console import console

if TYPE_CHECKING:
    from starter_kit.reporting.comparison import RunComparison


class Format(StrEnum):
    """How a comparison is written."""

    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    form: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TABLE,
    group: Annotated[
        bool, typer.Option("--group", help="Show runs that differ only in their seed as one row.")
    ] = False,
    by_anls: Annotated[bool, typer.Option("--by-anls", help="Sort by ANLS, highest first.")] = False,
) -> None:
    """Print runs side by side: experiment, ANLS, accuracy, gigabytes and ε."""
    from starter_kit.reporting.comparison import RunComparison

    comparison = RunComparison.of(runs, by_anls=by_anls, group=group)
    as_text = {
        Format.MARKDOWN: comparison.as_markdown,
        Format.CSV: comparison.as_csv,
        Format.JSON: comparison.as_json,
    }
    if form in as_text:
        typer.echo(as_text[form](), nl=False)
    else:
        console.print(_table(comparison))
        for note in comparison.notes:
            console.print(Text(note))


def _table(comparison: "RunComparison") -> Table:
    """The comparison as a table for the terminal."""
    table = Table(
        *(Column(name, min_width=8, overflow="fold") for name in comparison.text_columns),
        *(Column(name, justify="right") for name in comparison.number_columns),
    )
    for cells in comparison.cells:
        table.add_row(*map(Text, cells))
    return table
