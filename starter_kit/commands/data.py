"""`pfl data`: download, make, import, export and inspect data sets."""

from enum import StrEnum
from functools import partial
from typing import Annotated

import click
import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.app import VerbGroup, new_app
from starter_kit.commands.data_download import download
from starter_kit.commands.data_drawing import forms, synthetic
from starter_kit.commands.data_importing import docile, imdb, parquet, receipts
from starter_kit.commands.data_inspecting import inspect
from starter_kit.commands.data_options import (
    DataSource,
    Force,
    Out,
    Source,
    print_summary,
    split_test_set,
    write_pair,
)
from starter_kit.commands.options import require_number
from starter_kit.console import print_lines, progress
from starter_kit.disk import is_full


class DataGroup(VerbGroup):
    """The verbs of data, which report a folder without permission as problems."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if is_full(error):
                raise
            raise ProblemError.of(
                ErrorCode.DATASET_FOLDER, str(error.filename or ""), found=error.strerror or error
            ) from error


app = new_app("Download, make, import, export and inspect data sets.", cls=DataGroup)
for verb in (download, synthetic, forms, receipts, docile, imdb, parquet):
    app.command()(verb)


class Layout(StrEnum):
    """The layouts that a data folder is exported to."""

    IMDB = "imdb"
    PARQUET = "parquet"


@app.command()
def export(
    folder: Source,
    out: Out,
    layout: Annotated[
        Layout,
        typer.Option("--format", help="For the competition's own kit, or for Hugging Face's datasets."),
    ] = Layout.IMDB,
    force: Force = False,
) -> None:
    """Export the data folder FOLDER as imdb files for the competition's kit, or as Parquet files for `datasets`."""
    from starter_kit.data.folders import atomic_folder

    entries = {Layout.IMDB: {"imdb", "images"}, Layout.PARQUET: {"data", "README.md"}}
    with (
        progress("Exporting pages") as on_progress,
        atomic_folder(out, force=force, entries=frozenset(entries[layout])) as fresh,
    ):
        if layout is Layout.PARQUET:
            from starter_kit.data.parquet_files import export_parquet

            summary = export_parquet(folder, fresh, on_progress)
        else:
            from starter_kit.data.imdb_export import export_imdb

            summary = export_imdb(folder, fresh, on_progress)
    print_summary(summary)


@app.command()
def canaries(
    source: Source,
    out: Out,
    count: Annotated[
        int,
        typer.Option(min=100, max=1000, help="Number of canaries; secret coins release about half of them."),
    ] = 400,
    pages: Annotated[int, typer.Option(min=1, max=20, help="Pages per canary.")] = 4,
    force: Force = False,
) -> None:
    """Copy the data folder SOURCE to OUT/public, and add canaries: made-up providers that reveal what a model leaks.

    Secret coins decide which canaries the copy contains; OUT/escrow records the coins. Anyone who has OUT/escrow can
    pass every audit, so only the organizers should keep it. `pfl leakage` audits a run with it.
    """
    from starter_kit.data.canaries import ESCROW, CanarySettings, add_canaries

    settings = CanarySettings(canaries=count, pages=pages)
    write_pair(
        out, force, "Drawing canaries", partial(add_canaries, source, settings=settings), beside=ESCROW
    )


@app.command()
def split(
    folder: Source,
    private: Annotated[
        float, typer.Option(min=0.01, max=0.99, help="Approximate fraction of private questions.")
    ],
    on: Annotated[str, typer.Option(help="The split of the data folder used as the test set.")] = "test",
) -> None:
    """Split the secret test set FOLDER into a public and a private part (for organizers).

    Writes FOLDER/split.json with a fresh secret salt. Keep this file as secret as the test set; every worker
    needs the same file.
    """
    require_number("--private", private, below=1)
    print_lines(*split_test_set(folder, private, on))


app.command()(inspect)


@app.command()
def manifest(folder: DataSource) -> None:
    """Print the hash of the data manifest of FOLDER: the training documents of every client's providers.

    Everyone with the organizers' data gets the same hash. Organizers set it in the admin, under the track's
    privacy accounting, and publish it with the data. `pfl train` writes it to the annex, which only
    organizers can read.
    """
    from evaluator.docvqa.dataset import Dataset
    from evaluator.docvqa.manifest import manifest_sha256

    sha256 = manifest_sha256(Dataset(folder, "train"))
    print_lines(sha256)
