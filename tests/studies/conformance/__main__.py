"""`python -m tests.studies.conformance`: count what examinations find, and write docs/conformance.md."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.console import log
from starter_kit.reporting.files import replace_file
from tests.studies.conformance.counting import (
    Counts,
    count_mutants,
    honest_codes,
    private_configs,
    try_config,
)
from tests.studies.conformance.page import page, read_counts
from tests.studies.conformance.tallies import count, current, started


def main(
    page_file: Annotated[Path, typer.Argument(help="Page to write; the counts go beside it, as .json.")],
    examinations: Annotated[
        int, typer.Option(min=0, help="Examinations of every private config by the present code.")
    ] = 100,
    processes: Annotated[int, typer.Option(min=1)] = 1,
    page_only: Annotated[
        bool, typer.Option("--page-only", help="Write the page of the counts there are.")
    ] = False,
) -> None:
    """Examine all mutants, and every private config of the kit many times.

    Counts that the present code has made already are continued, and each examination is written as it ends.
    """
    numbers = page_file.with_suffix(".json")
    counts = read_counts(numbers)
    if page_only:
        replace_file(page_file, page(counts))
        raise typer.Exit
    codes = honest_codes(private_configs())
    known = started(counts.honest, codes)
    counts = Counts(mutants=list(count_mutants(counts.mutants)), honest=known)
    replace_file(numbers, counts.model_dump_json(indent=1) + "\n")
    for _, tallies in count(known, codes, examinations, try_config, processes):
        counts = Counts(mutants=counts.mutants, honest=tallies)
        replace_file(numbers, counts.model_dump_json(indent=1) + "\n")
    replace_file(page_file, page(counts))
    missed = [found.mutant for found in counts.mutants if not found.caught_by]
    failed = [tally.name for tally in current(counts.honest, codes) if tally.alarms]
    log(f"{page_file}: written; missed mutants: {missed or 'none'}; false alarms: {failed or 'none'}")
    raise typer.Exit(1 if missed or failed else 0)


if __name__ == "__main__":
    typer.run(main)
