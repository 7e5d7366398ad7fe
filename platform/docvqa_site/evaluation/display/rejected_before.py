"""Why the files of a draft were rejected before, when they are those of a submission that was copied."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from docvqa_site.evaluation.display.status import statuses
from docvqa_site.submissions.models import Artifact, Run, RunState, Submission
from docvqa_site.uploads.models import UploadState
from evaluator.errors import Problem


@dataclass(frozen=True)
class RejectedBefore:
    """A run of a draft that still has every file of a rejected run, and what was wrong with them."""

    run: Run
    submission: Submission
    problems: list[Problem]


def rejected_before(draft: Submission) -> list[RejectedBefore]:
    """Return the draft's runs that would be rejected again; a run isn't among them once a file is replaced or removed.

    A copy has the very uploads of what it was copied from.
    """
    runs = list(draft.runs.all())
    files = _uploads_of(runs)
    uploads = set().union(*files.values())
    earlier = Run.objects.filter(
        submission__team=draft.team_id, state=RunState.REJECTED, artifacts__upload__in=uploads
    )
    newest_first = earlier.distinct().order_by("-submission__submitted_at").select_related("submission")
    rejected = statuses(newest_first)
    files_of_rejected = _uploads_of(status.run for status in rejected)
    found = (
        next((one for one in rejected if files_of_rejected[one.run.pk] <= files[run.pk]), None)
        for run in runs
    )
    return [
        RejectedBefore(run, status.run.submission, status.problems)
        for run, status in zip(runs, found, strict=True)
        if status
    ]


def _uploads_of(runs: Iterable[Run]) -> dict[UUID, set[UUID]]:
    """Return the files of each run that are still stored; a copy doesn't get the others."""
    found: dict[UUID, set[UUID]] = {run.pk: set() for run in runs}
    stored = Artifact.objects.filter(run__in=found, upload__state=UploadState.COMPLETED)
    for run, upload in stored.values_list("run", "upload"):
        found[run].add(upload)
    return found
