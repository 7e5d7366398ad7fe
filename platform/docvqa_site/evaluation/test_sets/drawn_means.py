"""The means of runs over the same draws of providers, from which the difference of two scores has its interval.

They are in a table of their own, which nothing reads but the comparison of two runs: not the boards, which load the
results of all runs, and nothing that publishes, exports or mails results.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from docvqa_site.evaluation.models import StoredMeans
from docvqa_site.submissions.models import Run
from evaluator.messages.jobs import DrawnMeans
from evaluator.messages.results import RunResults


def store(run: Run, means: Sequence[DrawnMeans]) -> None:
    """Store the means of a run that was just scored, in place of those of an earlier attempt."""
    if means:
        parts = [one.model_dump(mode="json") for one in means]
        StoredMeans.objects.update_or_create(run=run, defaults={"parts": parts})
    else:
        StoredMeans.objects.filter(run=run).delete()


def shown_means(results: Mapping[UUID, RunResults]) -> dict[UUID, DrawnMeans]:
    """Return the means of these runs, each from the part of the test set on which its results are; not all have any."""
    stored = StoredMeans.objects.filter(run__in=results).values_list("run", "parts")
    found = ((run, _of_part(parts, results[run])) for run, parts in stored)
    return {run: means for run, means in found if means is not None}


def _of_part(parts: Sequence[object], results: RunResults) -> DrawnMeans | None:
    by_part = {means.part: means for means in map(DrawnMeans.model_validate, parts)}
    # Results on the private part have the public score beside them.
    return by_part.get("public" if results.public_anls is None else "private") or by_part.get("")
