"""The ε that the training records of a draft claim, compared with the budgets of their runs before it is submitted.

A claim is no result: ε is recomputed after the submission. Of a training that was resumed, the first line has the claim
from before the interruption, and the later one is larger.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from docvqa_site.submissions.models import Submission
from docvqa_site.submissions.record_heads import first_line
from docvqa_site.uploads.models import UploadState
from evaluator.messages.jobs import ArtifactKind


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
        Claim(budget, line.claimed_epsilon)
        for budget, key in stored
        if (line := first_line(key)) is not None and line.claimed_epsilon > budget
    ]
