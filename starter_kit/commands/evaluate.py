"""`pfl evaluate`."""

from decimal import ROUND_CEILING
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

from starter_kit.commands.options import BaseFolder, DataFolder
from starter_kit.console import console, print_lines, progress

if TYPE_CHECKING:
    from evaluator.messages.jobs import GroupScore, ScoringResult
    from evaluator.pipeline import StepOutput

# A mean over fewer questions of a key says hardly anything.
FEWEST_QUESTIONS = 20
SCORES = ("questions", "ANLS", "95% interval", "accuracy")


class Split(StrEnum):
    """The splits that a data folder may have."""

    TRAIN = "train"
    VALID = "valid"
    TEST = "test"
    RED = "red"


def evaluate(
    checkpoint: Annotated[Path, typer.Argument(help="A safetensors file, or a run folder.")],
    base: BaseFolder,
    data: DataFolder,
    split: Annotated[Split, typer.Option(help="Split of the data folder to score.")] = Split.VALID,
) -> None:
    """Score a checkpoint with the evaluator's code. A run folder keeps the score for the report and `compare`."""
    from evaluator.messages.jobs import ArtifactKind
    from starter_kit.evaluation.scores import score_checkpoint
    from starter_kit.reporting.report import write_report
    from starter_kit.runs.folder import RunFolder
    from starter_kit.runs.results import keep_scores

    with progress("questions") as show:
        path = RunFolder(checkpoint).file(ArtifactKind.CHECKPOINT) if checkpoint.is_dir() else checkpoint
        output = score_checkpoint(path, base=base, data=data, split=split, on_progress=show)
    print_scores(output, split)
    if checkpoint.is_dir() and keep_scores(checkpoint, output.result, split.value):
        write_report(checkpoint)


def print_scores(output: "StepOutput[ScoringResult]", split: str) -> None:
    """Print the means over the split and, where there are any, those over its groups of questions."""
    from evaluator.messages.jobs import ScoringDetail
    from evaluator.messages.results import supported_decimals
    from evaluator.scoring.metrics import cut

    result, detail = output.result, output.detail
    decimals = supported_decimals(result.questions)
    anls, accuracy = cut(result.anls, decimals), cut(result.accuracy, decimals)
    print_lines(f"ANLS {anls}, accuracy {accuracy} on {result.questions} questions ({split})")
    if not isinstance(detail, ScoringDetail):
        return
    if detail.groups:
        listed = [group for group in detail.groups if _is_listed(group)]
        console.print(_table(listed))
        if few := len(detail.groups) - len(listed):
            keys = "key" if few == 1 else "keys"
            print_lines(f"Not listed: {few} {keys} with too few questions or providers for an interval.")
    print_unseen(detail.pages_without_image)


def print_unseen(pages: int) -> None:
    """Print how many pages the model didn't see, if there are any."""
    if pages:
        print_lines(
            f"Pages whose image is missing or can't be read: {pages:,}. The model saw gray in its place."
        )


def _has_interval(group: "GroupScore") -> bool:
    return (group.anls_low, group.anls_high) != (0, 1)


def _is_listed(group: "GroupScore") -> bool:
    return group.by != "key" or (group.questions >= FEWEST_QUESTIONS and _has_interval(group))


def _table(groups: "list[GroupScore]") -> Table:
    from evaluator.messages.results import supported_decimals
    from evaluator.scoring.metrics import cut

    table = Table("by", "group", *(Column(name, justify="right", no_wrap=True) for name in SCORES))
    for group in groups:
        decimals = supported_decimals(group.questions)
        anls, low, accuracy = (cut(mean, decimals) for mean in (group.anls, group.anls_low, group.accuracy))
        high = cut(group.anls_high, decimals, ROUND_CEILING)
        interval = f"{low} to {high}" if _has_interval(group) else "–"
        table.add_row(group.by, Text(group.group), f"{group.questions:,}", anls, interval, accuracy)
    return table
