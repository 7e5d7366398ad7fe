"""The ε that the training records of a draft claim, compared with the budgets of their runs before it is submitted.

A claim is no result: ε is recomputed after the submission. Of a training that was resumed, the first line has the claim
from before the interruption, and the later one is larger.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from docvqa_site.submissions.models import Submission
from docvqa_site.uploads.models import UploadState
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ProblemError
from evaluator.messages.jobs import ArtifactKind
from evaluator.records import reading


@dataclass(frozen=True)
class Claim:
    """The ε that the first line of a training record claims, and the budget of its run."""

    budget: float
    epsilon: float


def claims_above_budget(submission: Submission) -> list[Claim]:
    """Return the claims of the draft's records that exceed the budgets of their runs, by budget."""
    records = submission.artifacts.filter(
        kind=ArtifactKind.TRAINING_RECORD, run__budget__isnull=False, upload__state=UploadState.COMPLETED
    )
    stored: Iterable[tuple[Any, str]] = records.order_by("run__budget").values_list(
        "run__budget", "upload__store_key"
    )
    return [
        Claim(budget, epsilon)
        for budget, key in stored
        if (epsilon := _claimed_epsilon(key)) is not None and epsilon > budget
    ]


def _claimed_epsilon(key: str) -> float | None:
    """Return the claim of a stored record; None where its first line can't be read, which isn't reported here."""
    try:
        with current_store().open(key) as file:
            line, newline, _ = file.read(reading.MAX_RUN_LINE_BYTES).partition(b"\n")
        return reading.read_first_line(line + newline).claimed_epsilon
    except (FileNotFoundError, ProblemError):
        return None
