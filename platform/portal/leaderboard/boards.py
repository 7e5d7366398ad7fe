"""The boards of a track: its scored runs, ranked."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import QuerySet

from evaluator.accounting.accountant import Accountant
from evaluator.contracts import TrackRules
from portal.challenge.models import Track
from portal.leaderboard.ranking import Entry, Row, Standing, rank_by_anls, rank_by_bytes
from portal.reviews.selectors import verdict_on
from portal.submissions.models import Run, RunState, SubmissionState
from portal.submissions.results import flagged


@dataclass(frozen=True)
class Board:
    """One table. `budget` is its ε; None where the track ranks by bytes."""

    budget: float | None
    rows: list[Row]


def boards_of(track: Track) -> list[Board]:
    """All boards of the track, with every scored run of a submission that was not withdrawn. Two queries."""
    entries = [(run.budget, _entry(run, track)) for run in _scored_runs(track)]
    if not track.is_private:
        return [Board(None, rank_by_bytes((entry for _, entry in entries), track.anls_threshold))]
    return [
        Board(budget, rank_by_anls((entry for held, entry in entries if held == budget), budget))
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


def _entry(run: Run, track: Track) -> Entry:
    submission = run.submission
    assert submission.submitted_at is not None  # noqa: S101  (a database constraint)
    standing, reason = Standing.SCORED, ""
    if track.is_private:
        verdict = verdict_on(submission)
        standing, reason = Standing(verdict.status), verdict.reason
    return Entry(
        run=run.pk,
        method=submission.title,
        team=submission.team.name,
        url=submission.get_absolute_url(),
        submitted_at=submission.submitted_at,
        anls=run.anls,
        accuracy=run.accuracy,
        bytes_total=run.bytes_total,
        epsilon=run.epsilon,
        epsilon_two_stage=run.epsilon_two_stage,
        epsilon_product=run.epsilon_product,
        epsilon_rdp=run.epsilon_rdp,
        decides=_deciding_column(run),
        accountant=run.accountant,
        trust=run.trust,
        flagged=flagged(run),
        standing=standing,
        standing_reason=reason,
        is_baseline=submission.is_baseline,
    )


def _deciding_column(run: Run) -> str:
    """Which of the columns of ε is compared with the budget, by the rules that the run was submitted under."""
    privacy = TrackRules.model_validate(run.rules).privacy
    if privacy is None:
        return ""
    return privacy.accountant if privacy.accountant is Accountant.RDP else privacy.sampling_rule
