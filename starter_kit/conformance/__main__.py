"""`python -m starter_kit.conformance`: count what examinations find, and write docs/conformance.md."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from starter_kit.conformance.counting import Counts, count_honest, count_mutants
from starter_kit.conformance.page import page
from starter_kit.console import log
from starter_kit.reporting.files import replace_file


def count(
    page_file: Annotated[Path, typer.Argument(help="Page to write; the counts go beside it, as .json.")],
    examinations: Annotated[int, typer.Option(min=0, help="Examinations of every private config.")] = 100,
    seed: Annotated[int | None, typer.Option(help="Of the synthetic data; by default a new one.")] = None,
) -> None:
    """Examine all mutants, and every private config of the kit many times."""
    first = secrets.randbits(32) if seed is None else seed
    counts = Counts(
        mutants=list(count_mutants(first, log)), honest=list(count_honest(examinations, first, log))
    )
    replace_file(page_file.with_suffix(".json"), counts.model_dump_json(indent=1) + "\n")
    replace_file(page_file, page(counts))
    missed = [found.mutant for found in counts.mutants if not found.caught_by]
    failed = [honest.config for honest in counts.honest if honest.failed]
    log(f"{page_file}: written; missed mutants: {missed or 'none'}; false alarms: {failed or 'none'}")
    raise typer.Exit(1 if missed or failed else 0)


typer.run(count)
