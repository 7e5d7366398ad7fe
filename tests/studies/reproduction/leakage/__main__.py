"""`make leakage`: attack the reproduction's models, write docs/leakage.md and the numbers that it is made of."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.console import exit_on_problem, log
from starter_kit.reporting.files import replace_file
from tests.studies.reproduction.experiment import TASK
from tests.studies.reproduction.leakage.coverage import simulate_coverage
from tests.studies.reproduction.leakage.experiment import LeakageExperiment, Size
from tests.studies.reproduction.leakage.page import page


def leakage(
    page_file: Annotated[Path, typer.Argument(help="Page to write; the numbers go beside it, as .json.")],
    folder: Annotated[
        Path, typer.Option(help="Where data and runs are kept; the reproduction's own.")
    ] = Path("var/reproduction"),
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds every row has.")] = 3,
    trained: Annotated[int, typer.Option(min=20, help="Providers that are trained on.")] = TASK.providers,
    providers: Annotated[int, typer.Option(min=4, help="Providers of each kind that are asked about.")] = 200,
    resamples: Annotated[int, typer.Option(min=100, help="Of every bootstrap.")] = 2000,
    coverage_runs: Annotated[int, typer.Option(min=10, help="Simulated attacks for the coverage.")] = 1000,
) -> None:
    """Attack every baseline on the reproduction's task, and compare what leaks with what ε allows."""
    task = TASK.model_copy(
        update={
            "providers": trained,
            "valid_forms": min(TASK.valid_forms, trained),
            "test_forms": min(TASK.test_forms, trained),
        }
    )
    with exit_on_problem():
        size = Size(providers=min(providers, trained), resamples=resamples)
        results = LeakageExperiment(folder, seeds, task=task, size=size, say=log).run()
        replace_file(page_file.with_suffix(".json"), results.model_dump_json(indent=1) + "\n")
        replace_file(page_file, page(results, simulate_coverage(coverage_runs)))
    log(f"{page_file}: written")


typer.run(leakage)
