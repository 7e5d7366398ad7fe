"""Runs that failed through the platform's fault, by the code of the fault."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery

from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.models import Evaluation, EvaluationState, StepReport
from docvqa_site.submissions.models import Run, RunState
from evaluator.errors.codes import EXPLANATIONS, ErrorCode
from evaluator.messages.jobs import Outcome


@dataclass(frozen=True)
class Failure:
    code: str
    runs: int

    @property
    def meaning(self) -> str:
        return EXPLANATIONS[ErrorCode(self.code)].meaning if self.code in set(ErrorCode) else ""


def failures(tracks: QuerySet[Track]) -> list[Failure]:
    """Return the codes of all failed runs in these tracks, the most frequent first, in one query."""
    counts: dict[str, int] = {}
    for end in _ends(tracks).values("reported", "ended").annotate(runs=Count("pk")):
        code = _code(end["reported"], end["ended"])
        counts[code] = counts.get(code, 0) + end["runs"]
    return [
        Failure(code, runs) for code, runs in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def failed_with(code: str, tracks: QuerySet[Track]) -> list[Run]:
    """Return the failed runs in these tracks with this code, the oldest submission first."""
    runs = _ends(tracks).select_related("submission").order_by("submission__submitted_at", "pk")
    return [run for run in runs if _code(vars(run)["reported"], vars(run)["ended"]) == code]


def _ends(tracks: QuerySet[Track]) -> QuerySet[Any, Any]:
    """Return the failed runs with how their last attempt ended, and the first code that it reported."""
    attempts = Evaluation.objects.filter(run=OuterRef("pk")).order_by("-attempt")
    reports = StepReport.objects.filter(evaluation__run=OuterRef("pk"), outcome=Outcome.FAILED)
    return (
        Run.objects.filter(state=RunState.FAILED, submission__track__in=tracks.order_by())
        .order_by()
        .annotate(
            ended=Subquery(attempts.values("state")[:1]),
            reported=Subquery(reports.order_by("-received_at", "-pk").values("problems__0__code")[:1]),
        )
    )


def _code(reported: str | None, ended: str | None) -> str:
    if ended == EvaluationState.LOST:
        return ErrorCode.WORKERS_LOST
    return reported or ErrorCode.PLATFORM_FAULT
