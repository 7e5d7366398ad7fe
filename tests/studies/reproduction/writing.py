"""How a page of experiments is written: outcomes beside it are kept, what is missing is trained."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from starter_kit.console import exit_on_problem, log
from starter_kit.reporting.files import replace_file
from tests.studies.reproduction.experiment import Results


class Trains(Protocol):
    """An experiment that trains what has no outcome yet."""

    def run(self, earlier: Results | None) -> Results:
        """Return all outcomes: the `earlier` ones that still count, and new ones of the rest."""

    def forget(self) -> None:
        """Delete what was trained before."""


def write_page(page_file: Path, experiment: Trains, page: Callable[[Results], str], *, again: bool) -> None:
    """Write the page with what the experiment came to, and the numbers beside it, as .json.

    Args:
        again: Train everything again, and keep no outcome.
    """
    numbers = page_file.with_suffix(".json")
    with exit_on_problem():
        if again:
            numbers.unlink(missing_ok=True)
            experiment.forget()
        earlier = Results.model_validate_json(numbers.read_bytes()) if numbers.exists() else None
        results = experiment.run(earlier)
        replace_file(numbers, results.model_dump_json(indent=1) + "\n")
        replace_file(page_file, page(results))
    log(f"{page_file}: written")
