"""The boards of a track: its scored runs, ranked."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import QuerySet

from portal.challenge.models import Track
from portal.evaluation.results import public_results
from portal.leaderboard.ranking import Entry, Row, rank_by_anls, rank_by_bytes
from portal.reviews.selectors import verdict_on
from portal.submissions.models import Run, RunState, SubmissionState


@dataclass(frozen=True)
class Board:
    """One table. `budget` is its ε; None where the track ranks by bytes."""

    budget: float | None
    rows: list[Row]


def boards_of(track: Track) -> list[Board]:
    """Return all boards of the track, with every scored run of a submission that was not withdrawn, in two queries."""
    entries = [(run.budget, _entry(run)) for run in _scored_runs(track)]
    if not track.is_private:
        return [Board(None, rank_by_bytes((entry for _, entry in entries), track.anls_threshold))]
    return [
        Board(budget, rank_by_anls((entry for run_budget, entry in entries if run_budget == budget), budget))
        for budget in _budgets(track)
    ]


def _scored_runs(track: Track) -> QuerySet[Run]:
    return (
        Run.objects.filter(
            state=RunState.SCORED, submission__state=SubmissionState.SUBMITTED, submission__track=track
        )
        .select_related("submission__team", "submission__track")
        .prefetch_related("submission__reviews")
    )


def _budgets(track: Track) -> Iterator[float]:
    for budget in track.run_budgets():
        if budget is not None:
            yield budget


def _entry(run: Run) -> Entry:
    submission = run.submission
    assert submission.submitted_at is not None  # noqa: S101  (a database constraint)
    verdict = verdict_on(submission)
    return Entry(
        run=run.pk,
        method=submission.title,
        team=submission.team.name,
        url=submission.get_absolute_url(),
        submitted_at=submission.submitted_at,
        results=public_results(run),
        status=verdict.status,
        status_reason=verdict.reason,
        is_baseline=submission.is_baseline,
    )
