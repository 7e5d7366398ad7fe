"""`python -m tests.studies NAME`: run what is missing of a study, and write its outcomes and its page into docs/."""

from pathlib import Path
from typing import Annotated, Any

import typer

from starter_kit.console import exit_on_problem, log
from starter_kit.reporting.files import replace_file
from tests.studies.catalog import STUDIES, derived_files
from tests.studies.notebooks.running import write_pages
from tests.studies.study import DOCS, Study


def write(study: Study[Any] | None, docs: str, again: bool, page_only: bool) -> None:
    """Write the files of the study that a command returned; other commands have written theirs."""
    if study is None:
        return
    folder = Path(docs)
    with exit_on_problem():
        outcomes = study.write_page(folder) if page_only else study.write(folder, again=again)
    log(f"{folder / study.name}.md: written")
    faults = [] if page_only else study.faults(outcomes)
    for line in faults:
        log(line)
    raise typer.Exit(1 if faults else 0)


app = typer.Typer(result_callback=write, no_args_is_help=True, add_completion=False)


@app.callback()
def options(
    docs: Annotated[Path, typer.Option(help="Folder of the page and its outcomes.")] = DOCS,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Keep no outcome, or of trained rows only those that the present code made."
        ),
    ] = False,
    page_only: Annotated[
        bool, typer.Option("--page-only", help="Run nothing: write the page of the outcomes there are.")
    ] = False,
) -> None:
    """Run what a study lacks, keep its outcomes as docs/NAME.json, and write docs/NAME.md.

    The same command continues after an interruption, also of `--again`, which then is left out.
    """


for name, study in STUDIES.items():
    app.command(name)(study)


@app.command()
def pages() -> None:
    """Write the pages of all studies from the outcomes there are."""
    for command in STUDIES.values():
        command().write_page()
    for name, text in derived_files().items():
        replace_file(DOCS / name, text)


@app.command()
def notebooks(out: Annotated[Path, typer.Option(help="Folder of the pages.")] = DOCS / "notebooks") -> None:
    """Run the kit's notebooks, and write their pages with what they print and draw."""
    write_pages(out)


if __name__ == "__main__":
    app()
