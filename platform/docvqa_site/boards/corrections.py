"""Final results that a later decision on a run contradicts.

Published results never change; organizers correct them by another publication of the same phase. A change of rules is
no reason for that, but a run that was found invalid since, or that no longer is, leaves wrong ranks behind.
"""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.urls import resolve

from docvqa_site.boards.models import FinalResults, newest_results
from docvqa_site.evaluation.display.results import shortfall
from docvqa_site.reviews.selectors import verdict_on
from docvqa_site.submissions.lifted import Lifting, lifted_since
from docvqa_site.submissions.models import Run, SubmissionState
from docvqa_site.ui.budgets import at_budget, plain


@dataclass(frozen=True)
class Correction:
    """A run whose place in final results is wrong by now: its rank there, None where it has none, and why."""

    results: FinalResults
    run: Run
    rank: int | None
    because: str

    def __str__(self) -> str:
        place = f"published as rank {self.rank}" if self.rank else "published without a rank"
        return f"{self.run}, {place}: {self.because}"


def published_places(run: Run) -> list[tuple[FinalResults, int | None]]:
    """Return the newest final results whose files have the run, each with its rank there, None where it has none."""
    page, budget = run.submission.get_absolute_url(), at_budget(run.budget, "{}", plain)
    return [
        (file.results, int(row["rank"]) if row["rank"] else None)
        for results in newest_results().filter(phase=run.submission.phase_id)
        for file in results.files.filter(name=f"{run.submission.track.slug}.csv")
        for row in csv.DictReader(io.StringIO(file.content.decode()))
        if row["url"].endswith(page) and row["budget"] == budget
    ]


def corrections(published: Iterable[FinalResults]) -> list[Correction]:
    """Return what is wrong by now in each of these results, of the ranks that their pages show."""
    shown = {results: _ranks(results) for results in published}
    if not shown:
        return []
    phases: dict[int | None, FinalResults] = {results.phase_id: results for results in shown}
    methods = {submission for ranks in shown.values() for submission, _ in ranks}
    lifted = lifted_since(min(results.made_at for results in shown))
    runs = Run.objects.filter(scored_at__isnull=False, submission__phase__in=phases)
    runs = runs.filter(submission__in=methods) | runs.filter(pk__in=lifted)
    found = runs.select_related("submission__track", "submission__phase", "submission__team")
    made = []
    for run in found.prefetch_related("submission__reviews"):
        results = phases[run.submission.phase_id]
        rank = shown[results].get((run.submission_id, _board(run)))
        lifting = lifted.get(run.pk)
        if lifting and lifting.at <= results.made_at:
            lifting = None
        if because := _contradiction(run, rank, lifting):
            made.append(Correction(results, run, rank, because))
    return made


def _contradiction(run: Run, rank: int | None, lifting: Lifting | None) -> str:
    """Return what contradicts that the run has this published rank, or none; empty if nothing does."""
    submission = run.submission
    rejected = verdict_on(submission).rejection
    reason = shortfall(run, rejected=rejected)
    if rank:
        return reason.sentence if reason and (reason.is_invalid or rejected) else ""
    is_public = submission.state == SubmissionState.SUBMITTED and not submission.is_unpublished
    if lifting is None or not is_public or reason is not None:
        return ""
    return ": ".join(filter(None, ["it is no longer disqualified", lifting.reason]))


def _ranks(results: FinalResults) -> dict[tuple[UUID, str], int]:
    """Return the ranks that the page of the results shows, by submission and board."""
    return {
        (resolve(row["url"]).kwargs["submission_id"], part["board"]): row["rank"]
        for part in results.standings
        for row in part["rows"]
    }


def _board(run: Run) -> str:
    return at_budget(run.budget, "ε = {}", plain)
