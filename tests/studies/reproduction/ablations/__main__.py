"""`make reproduce`, its second part: train the ablations that have no outcome yet, and write docs/ablations.md."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.console import log
from tests.studies.reproduction.ablations.experiment import AblationExperiment
from tests.studies.reproduction.ablations.page import page
from tests.studies.reproduction.experiment import TASK
from tests.studies.reproduction.writing import write_page


def ablations(
    page_file: Annotated[Path, typer.Argument(help="Page to write; the numbers go beside it, as .json.")],
    folder: Annotated[
        Path, typer.Option(help="Where data and runs are kept; the reproduction's own.")
    ] = Path("var/reproduction"),
    seeds: Annotated[int, typer.Option(min=1, help="How often every row is trained.")] = 3,
    again: Annotated[
        bool, typer.Option("--again", help="Train every row again, and keep no outcome.")
    ] = False,
) -> None:
    """Train the ablations of track 1's winner on the task that a small model learns, and say which claims hold.

    Outcomes are kept as those of the reproduction are.
    """
    write_page(page_file, AblationExperiment(folder, seeds, task=TASK, say=log), page, again=again)


typer.run(ablations)
