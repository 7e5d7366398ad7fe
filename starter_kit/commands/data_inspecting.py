"""`pfl data inspect`."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

from starter_kit.commands.data_options import DataSource, print_summary
from starter_kit.console import EXIT_REJECTED, console, log, print_lines, print_problems, progress

if TYPE_CHECKING:
    from starter_kit.data.summary import ImportSummary


def inspect(
    folder: DataSource,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="Compare the counts with the published ones of the competition's data."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    plots: Annotated[
        Path | None, typer.Option(help="A folder for plots of documents by provider and questions by key.")
    ] = None,
) -> None:
    """Validate the data folder FOLDER and count its contents, by split, client and question type."""
    from starter_kit.data.inspection import differences_from_published, inspect_folder

    with progress("Opening images") as on_progress:
        summary, problems = inspect_folder(folder, on_progress)
    if published:
        problems += differences_from_published(summary)
    if as_json:
        console.print_json(data=_counts(summary))
    else:
        print_summary(summary)
        _print_parts(summary, published)
        _print_documents(summary)
    if plots:
        from starter_kit.reporting.data_plots import write_data_plots

        for path in write_data_plots(plots, summary.splits):
            log(f"{path}: written")
    if problems:
        print_problems(problems)
        raise typer.Exit(EXIT_REJECTED)


def _counts(summary: "ImportSummary") -> dict[str, object]:
    """Return what `pfl data inspect` counts, for programs."""
    return {
        "name": summary.info.name,
        "partition": summary.info.partition,
        "parts": [asdict(part) for part in summary.parts()],
        "questions_by_key": {split: dict(tally.questions_by_key) for split, tally in summary.splits.items()},
    }


def _print_parts(summary: "ImportSummary", published: bool) -> None:
    """Print the counts of each client, and of the seen and unseen providers of each other split."""
    from starter_kit.data.inspection import PART_COUNTS, published_parts

    columns = (Column(name, justify="right") for name in PART_COUNTS)
    table = Table(Column("part", no_wrap=True), *columns, title="As in Table A1 of the papers")
    printed = published_parts() if published else {}
    for part in summary.parts():
        table.add_row(Text(part.name), *(f"{getattr(part, name):,}" for name in PART_COUNTS))
        if known := printed.get(part.name):
            table.add_row(
                "  published", *(f"{known[name]:,}" if name in known else "–" for name in PART_COUNTS)
            )
    console.print(table)


def _print_documents(summary: "ImportSummary") -> None:
    """Print how many documents there are, and how many questions about each field, the most frequent first."""
    splits = summary.splits
    print_lines(
        f"Documents: {', '.join(f'{len(tally.documents):,} in {split}' for split, tally in splits.items())}."
    )
    keys = sum((tally.questions_by_key for tally in splits.values()), Counter[str]())
    table = Table("questions about", *(Column(split, justify="right") for split in splits))
    for key, _ in keys.most_common():
        table.add_row(
            Text(key or "unknown"), *(str(tally.questions_by_key[key]) for tally in splits.values())
        )
    console.print(table)
