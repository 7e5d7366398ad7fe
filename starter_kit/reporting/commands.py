"""`pfl report`, `pfl compare` and `pfl tensorboard`: runs, for people to look at."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.console import console, rejections, say
from starter_kit.options import RunDirectory
from starter_kit.reporting.comparison import Format


def report(run: RunDirectory) -> None:
    """Write RUN/report.html again, from the run's settings and numbers."""
    from starter_kit.reporting.report import write_report

    with rejections():
        path = write_report(run)
    say(path)


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.", show_default=False)],
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TABLE,
    group: Annotated[
        bool, typer.Option("--group", help="One row for runs that differ in nothing but their seed.")
    ] = False,
    by_anls: Annotated[bool, typer.Option("--by-anls", help="The highest ANLS first.")] = False,
) -> None:
    """Print runs beside each other: method, ANLS, accuracy, gigabytes and ε."""
    from starter_kit.reporting.comparison import compare as compared

    with rejections():
        comparison = compared(runs, form=form, by_anls=by_anls, group=group)
    if isinstance(comparison, str):
        typer.echo(comparison, nl=False)
    else:
        console.print(comparison)


def tensorboard(
    run: RunDirectory,
    log_dir: Annotated[
        Path, typer.Option("--log-dir", help="Folder for TensorBoard's files.", show_default=False)
    ],
) -> None:
    """Write the run's rounds for TensorBoard: `tensorboard --logdir DIR` shows them."""
    from starter_kit.reporting.tensorboard import write_events

    with rejections():
        write_events(run, log_dir)
    say(log_dir)
