"""`make reproduce`: train every baseline, write docs/reproduction.md and the numbers that it is made of."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.console import exit_on_problem, log
from starter_kit.reporting.files import replace_file
from starter_kit.reproduction.experiment import TASK, Experiment
from starter_kit.reproduction.page import page


def reproduce(
    page_file: Annotated[Path, typer.Argument(help="Page to write; the numbers go beside it, as .json.")],
    folder: Annotated[Path, typer.Option(help="Where data and runs are kept.")] = Path("var/reproduction"),
    seeds: Annotated[int, typer.Option(min=1, help="How often every row is trained.")] = 3,
) -> None:
    """Train every baseline on the task that a small model learns, and say whether the papers' order holds."""
    with exit_on_problem():
        results = Experiment(folder, seeds, task=TASK, say=log).run()
        replace_file(page_file.with_suffix(".json"), results.model_dump_json(indent=1) + "\n")
        replace_file(page_file, page(results))
    log(f"{page_file}: written")


typer.run(reproduce)
