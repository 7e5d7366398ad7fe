"""What `pfl evaluate` tells of a score: the means that a board shows, and the groups that organizers see."""

from rich.table import Column, Table
from rich.text import Text

from evaluator.contracts import ScoringDetail, ScoringResult
from evaluator.metrics import cut
from evaluator.pipeline import Findings
from starter_kit.console import console

NUMBERS = ("questions", "ANLS", "95 % interval", "accuracy")


def tell(findings: Findings[ScoringResult], split: str) -> None:
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
            "The model saw grey in its place.",
            soft_wrap=True,
        )
