"""`pfl tensorboard`."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.commands.options import RunDirectory
from starter_kit.console import print_lines


def tensorboard(
    run: RunDirectory,
    log_dir: Annotated[Path, typer.Option("--log-dir", help="Folder for TensorBoard's files.")],
) -> None:
    """Write a run's rounds for TensorBoard; view them with `tensorboard --logdir DIR`."""
    from starter_kit.reporting.tensorboard import write_events

    write_events(run, log_dir)
    print_lines(log_dir)
