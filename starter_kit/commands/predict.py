"""`pfl predict`."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.commands.evaluate import Split, print_unseen
from starter_kit.commands.options import BaseFolder, DataFolder
from starter_kit.console import print_lines, progress


def predict(
    checkpoint: Annotated[Path, typer.Argument(help="A safetensors file, or a run folder.")],
    out: Annotated[
        Path, typer.Argument(help="File to write: a line of JSON for each question.", dir_okay=False)
    ],
    base: BaseFolder,
    data: DataFolder,
    split: Annotated[Split, typer.Option(help="Split of the data folder to answer.")] = Split.TEST,
) -> None:
    """Write a checkpoint's answers to a file. The questions need no gold answers."""
    from evaluator.messages.jobs import ArtifactKind
    from starter_kit.evaluation.predictions import write_predictions
    from starter_kit.runs.folder import RunFolder

    path = RunFolder(checkpoint).file(ArtifactKind.CHECKPOINT) if checkpoint.is_dir() else checkpoint
    with progress("questions") as show:
        answered = write_predictions(path, out, base=base, data=data, split=split, on_progress=show)
    print_lines(f"{out}: answers to {len(answered.predictions):,} questions ({split})")
    print_unseen(len(answered.without_image))
