"""`make reproduce`: train the rows that have no outcome yet, and write docs/reproduction.md with its numbers."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.console import log
from tests.studies.reproduction.experiment import TASK, Experiment
from tests.studies.reproduction.page import page
from tests.studies.reproduction.writing import write_page


def reproduce(
    page_file: Annotated[Path, typer.Argument(help="Page to write; the numbers go beside it, as .json.")],
    folder: Annotated[Path, typer.Option(help="Where data and runs are kept.")] = Path("var/reproduction"),
    seeds: Annotated[int, typer.Option(min=1, help="How often every row is trained.")] = 3,
    again: Annotated[
        bool, typer.Option("--again", help="Train every row again, and keep no outcome.")
    ] = False,
) -> None:
    """Train every row on the task that a small model learns, and say whether the papers' order holds.

    Outcomes beside the page are kept while their rows' settings are the same. After an interruption, also of `--again`,
    the same command without it trains the rest.
    """
    write_page(page_file, Experiment(folder, seeds, task=TASK, say=log), page, again=again)


typer.run(reproduce)
