"""The way of `pfl evaluate`: a score by the workers' own code, and what is told of it."""

from collections.abc import Callable
from pathlib import Path

from rich.table import Column, Table
from rich.text import Text

from evaluator.contracts import ArtifactKind, ScoringDetail, ScoringResult, TrackRules
from evaluator.pipeline import StepInputs, StepOutput, score
from evaluator.scoring.metrics import cut
from starter_kit.console import console

NUMBERS = ("questions", "ANLS", "95 % interval", "accuracy")


def evaluate(
    checkpoint: Path, *, base: Path, data: Path, split: str, on_progress: Callable[[int, int], None]
) -> StepOutput[ScoringResult]:
    """ANLS and accuracy of a checkpoint on a split of a data folder, by the evaluator's own scoring step."""
    rules = TrackRules(reference="local", test_set="local", clients=1)
    inputs = StepInputs(
        {ArtifactKind.CHECKPOINT: checkpoint}, rules, reference=base, test_set=data, split=split
    )
    return score(inputs, on_progress)


def tell(findings: StepOutput[ScoringResult], split: str) -> None:
    """Print the means over the split and, where they were found, those over its groups of questions."""
    result = findings.result
    console.print(
        f"ANLS {cut(result.anls)}, accuracy {cut(result.accuracy)} on {result.questions} questions ({split})"
    )
    if findings.detail is not None:
        _tell_detail(findings.detail)


def _tell_detail(detail: ScoringDetail) -> None:
    if detail.groups:
        table = Table("by", "group", *(Column(name, justify="right", no_wrap=True) for name in NUMBERS))
        for group in detail.groups:
            interval = f"{cut(group.anls_low)} to {cut(group.anls_high)}"
            numbers = (f"{group.questions:,}", cut(group.anls), interval, cut(group.accuracy))
            table.add_row(group.by, Text(group.group), *numbers)
        console.print(table)
    if detail.pages_without_image:
        console.print(
            f"Pages whose image is missing or can't be read: {detail.pages_without_image:,}. "
            "The model saw gray in its place.",
            soft_wrap=True,
        )
