"""Verifies what arrives: signed by its job's worker, with numbers that a worker could report."""

import math
from typing import TypeVar

from docvqa_site.evaluation.queue.step_secrets import is_authentic
from evaluator.messages.jobs import Outcome, Progress, ScoringDetail, WorkerReport
from evaluator.messages.signed import SignedMessage
from evaluator.worker.time_left import MAX_REMAINING_S

Content = TypeVar("Content", Progress, WorkerReport)

# The largest numbers that the database's columns can store.
LARGEST_UNITS = 2**31 - 1
LARGEST_NUMBER = 2**63 - 1


def parse_progress(message: object) -> Progress:
    """Return the progress that a message reports. Raises `ValueError` unless one of our workers could send it."""
    progress = _verified(message, Progress)
    if not (0 <= progress.done <= LARGEST_UNITS and 0 <= progress.total <= LARGEST_UNITS):
        raise ValueError(f"{progress.done} of {progress.total} is not progress")
    if progress.remaining_s is not None and not 0 <= progress.remaining_s <= MAX_REMAINING_S:
        raise ValueError(f"{progress.remaining_s} s is not a time left")
    return progress


def parse_report(message: object) -> WorkerReport:
    """Return the report that a message holds. Raises `ValueError` unless one of our workers could send it."""
    report = _verified(message, WorkerReport)
    if report.outcome is Outcome.PASSED and (report.result is None or report.result.kind != report.step):
        raise ValueError(f"the step {report.step} passed without a result of its own")
    for name, value in report.result or ():
        if isinstance(value, int | float) and not (math.isfinite(value) and 0 <= value <= LARGEST_NUMBER):
            raise ValueError(f"{name} = {value} is not a result")
    if report.scoring_detail is not None:
        _require_plausible(report.scoring_detail)
    return report


def _verified(message: object, kind: type[Content]) -> Content:
    """Return the content of a signed message. Raises `ValueError` unless its job's secret has signed it."""
    signed = SignedMessage.model_validate(message)
    content = kind.model_validate_json(signed.content)
    if not is_authentic(signed, content):
        raise ValueError(
            f"evaluation {content.evaluation}, {content.step}: it isn't signed by the job's worker"
        )
    return content


def _require_plausible(detail: ScoringDetail) -> None:
    counts = [detail.pages_without_image, *(group.questions for group in detail.groups)]
    scores = [
        value
        for group in detail.groups
        for value in (group.anls, group.anls_low, group.anls_high, group.accuracy)
    ]
    if not (
        all(0 <= count <= LARGEST_NUMBER for count in counts) and all(0 <= score <= 1 for score in scores)
    ):
        raise ValueError("the detail of a score has numbers out of range")
