"""`make reproduce`: train the rows that have no outcome yet, and write docs/reproduction.md with its numbers."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.console import exit_on_problem, log
from starter_kit.reporting.files import replace_file
from starter_kit.reproduction.experiment import TASK, Experiment, Results
from starter_kit.reproduction.page import page


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
    numbers = page_file.with_suffix(".json")
    experiment = Experiment(folder, seeds, task=TASK, say=log)
    with exit_on_problem():
        if again:
            numbers.unlink(missing_ok=True)
            experiment.forget()
        earlier = Results.model_validate_json(numbers.read_bytes()) if numbers.exists() else None
        results = experiment.run(earlier)
        replace_file(numbers, results.model_dump_json(indent=1) + "\n")
        replace_file(page_file, page(results))
    log(f"{page_file}: written")


typer.run(reproduce)
