"""`pfl data receipts`, `docile`, `imdb` and `parquet`: data sets that others made."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from starter_kit.commands.data_options import (
    DEFAULT_PRIVATE,
    Clients,
    Force,
    Out,
    PartitionRule,
    PrivatePart,
    Seed,
    Source,
    settings_that_fit,
    write_pair,
)


def receipts(
    source: Source,
    out: Out,
    seed: Seed = 7,
    clients: Clients = 10,
    partition: PartitionRule = "iid",
    private: PrivatePart = DEFAULT_PRIVATE,
    force: Force = False,
) -> None:
    """Import receipts in SROIE layout (SOURCE/img, box, key) into OUT/public and OUT/secret."""
    from starter_kit.data.receipts import ReceiptSettings, import_receipts

    with settings_that_fit():
        settings = ReceiptSettings(seed=seed, clients=clients, partition=partition)
    write_pair(
        out, force, "Importing images", partial(import_receipts, source, settings=settings), private=private
    )


def docile(
    source: Source,
    out: Out,
    only: Annotated[
        str,
        typer.Option("--split", help="Import only the documents of SOURCE/<split>.json, such as trainval."),
    ] = "",
    seed: Seed = 7,
    clients: Clients = 10,
    partition: PartitionRule = "iid",
    private: PrivatePart = DEFAULT_PRIVATE,
    force: Force = False,
) -> None:
    """Import DocILE's annotated documents (SOURCE/annotations, ocr, pdfs) into OUT/public and OUT/secret."""
    from starter_kit.data.docile import DocileSettings, import_docile

    with settings_that_fit():
        settings = DocileSettings(seed=seed, clients=clients, partition=partition, split=only)
    write_pair(
        out, force, "Importing documents", partial(import_docile, source, settings=settings), private=private
    )


def imdb(
    source: Source,
    out: Out,
    images: Annotated[Path | None, typer.Option(help="Page images, if not in SOURCE/images.")] = None,
    private: PrivatePart = DEFAULT_PRIVATE,
    force: Force = False,
) -> None:
    """Convert the competition's imdb files into OUT/public and, if the test file is there, OUT/secret.

    The documents for attacks, red_test.npy, become the split red of OUT/public.
    """
    from starter_kit.data.imdb_import import convert_imdb

    write_pair(out, force, "Importing images", partial(convert_imdb, source, images=images), private=private)


def parquet(source: Source, out: Out, private: PrivatePart = DEFAULT_PRIVATE, force: Force = False) -> None:
    """Convert Parquet files in the layout of `export --format parquet` into OUT/public and OUT/secret."""
    from starter_kit.data.parquet_files import import_parquet

    write_pair(out, force, "Importing pages", partial(import_parquet, source), private=private)
