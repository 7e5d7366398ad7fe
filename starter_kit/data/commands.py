"""`pfl data`: make, import, export and inspect data sets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from evaluator.docvqa.dataset import first_line
from evaluator.errors import ErrorCode, ProblemError, shorten
from starter_kit.console import REJECTED, complain, console, progress, rejections
from starter_kit.data.folders import PUBLIC, SECRET, appearing_whole
from starter_kit.data.imdb_export import export_imdb
from starter_kit.data.imdb_import import convert_imdb
from starter_kit.data.inspection import inspect_folder
from starter_kit.data.receipts import ReceiptSettings, import_receipts
from starter_kit.data.summary import ImportSummary
from starter_kit.data.synthetic import SyntheticSettings, generate

data_app = typer.Typer(
    name="data",
    help="Make, import, export and inspect data sets.",
    no_args_is_help=True,
    add_completion=False,
)

Out = Annotated[
    Path, typer.Argument(help="Folder to write; appears whole or not at all.", show_default=False)
]
Source = Annotated[Path, typer.Argument(help="Folder to read.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace data that this command wrote before.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same data.")]
Clients = Annotated[int, typer.Option(min=1, max=1000, help="Clients to deal the training providers to.")]


@data_app.command()
def synthetic(
    out: Out,
    seed: Seed = 7,
    clients: Clients = 10,
    train_providers: Annotated[int, typer.Option(help="Providers to train on.")] = 400,
    train_pages: Annotated[int, typer.Option(help="Pages to train on, unevenly spread.")] = 900,
    valid_pages: Annotated[int, typer.Option(help="Pages to validate on, half of unseen providers.")] = 60,
    test_pages: Annotated[int, typer.Option(help="Secret test pages, half of unseen providers.")] = 120,
    force: Force = False,
) -> None:
    """Draw invoices of made-up providers into OUT/public and OUT/secret."""
    with _rejections(), progress("Drawing pages") as on_progress:
        try:
            settings = SyntheticSettings(
                seed=seed,
                clients=clients,
                train_providers=train_providers,
                train_pages=train_pages,
                valid_pages=valid_pages,
                test_pages=test_pages,
            )
        except ValidationError as error:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION, expected="settings that fit together", found=first_line(error)
            ) from error
        summary = _write_pair(
            out, force, lambda public, secret: generate(public, secret, settings, on_progress)
        )
    _print(summary)


@data_app.command()
def receipts(source: Source, out: Out, seed: Seed = 7, clients: Clients = 10, force: Force = False) -> None:
    """Import receipts in SROIE layout (SOURCE/img, box, key) into OUT/public and OUT/secret."""
    settings = ReceiptSettings(seed=seed, clients=clients)
    with _rejections(), progress("Importing images") as on_progress:
        summary = _write_pair(
            out, force, lambda public, secret: import_receipts(source, public, secret, settings, on_progress)
        )
    _print(summary)


@data_app.command()
def imdb(
    source: Source,
    out: Out,
    images: Annotated[Path | None, typer.Option(help="Page images, if not in SOURCE/images.")] = None,
    force: Force = False,
) -> None:
    """Convert the competition's imdb files into OUT/public and, if the test file is there, OUT/secret."""
    with _rejections(), progress("Importing images") as on_progress:
        summary = _write_pair(
            out, force, lambda public, secret: convert_imdb(source, public, secret, images, on_progress)
        )
    _print(summary)


@data_app.command()
def export(folder: Source, out: Out, force: Force = False) -> None:
    """Write the data folder FOLDER as imdb files, for the competition's own kit."""
    with (
        _rejections(),
        progress("Exporting pages") as on_progress,
        appearing_whole(out, force=force, entries=frozenset({"imdb", "images"})) as fresh,
    ):
        summary = export_imdb(folder, fresh, on_progress)
    _print(summary)


@data_app.command()
def inspect(folder: Source) -> None:
    """Count what the data folder FOLDER holds, and check it."""
    with _rejections(), progress("Opening images") as on_progress:
        summary, problems = inspect_folder(folder, on_progress)
    _print(summary)
    if problems:
        complain(problems)
        raise typer.Exit(REJECTED)


def _write_pair(out: Path, force: bool, write: Callable[[Path, Path], ImportSummary]) -> ImportSummary:
    with appearing_whole(out, force=force, entries=frozenset({PUBLIC, SECRET})) as fresh:
        return write(fresh / PUBLIC, fresh / SECRET)


@contextmanager
def _rejections() -> Iterator[None]:
    """As `rejections`, and a full disk or a folder without permission is told the same way."""
    with rejections():
        try:
            yield
        except OSError as error:
            raise ProblemError.of(
                ErrorCode.DATASET_FOLDER, where=str(error.filename or ""), found=error.strerror or error
            ) from error


def _print(summary: ImportSummary) -> None:
    table = Table("split", title=Text(summary.name))
    for column in (
        "pages",
        "questions",
        "words a page",
        "providers",
        "of them in training",
        "largest provider",
    ):
        table.add_column(column, justify="right")
    for split, tally in summary.splits.items():
        table.add_row(
            split,
            str(tally.pages),
            str(tally.questions),
            f"{tally.words / max(tally.pages, 1):.0f}",
            str(len(tally.pages_by_provider)),
            str(summary.seen_providers(split)) if "train" in summary.splits else "unknown",
            f"{max(tally.pages_by_provider.values(), default=0)} pages",
        )
    console.print(table)
    if summary.clients:
        fewest, most = min(summary.clients.values()), max(summary.clients.values())
        each = f"{fewest} to {most} providers" if fewest < most else f"{most} provider{'s' * (most > 1)}"
        console.print(f"{len(summary.clients)} clients with {each} each.")
    if summary.findings.counts:
        _print_findings(summary)


def _print_findings(summary: ImportSummary) -> None:
    table = Table("found and handled", "such as", title="Findings")
    table.add_column("times", justify="right")
    for finding, count in summary.findings.counts.items():
        places = "; ".join(summary.findings.examples[finding])
        table.add_row(finding.value, Text(shorten(places)), str(count))
    console.print(table)
