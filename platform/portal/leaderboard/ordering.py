"""The order of a board, by the database: the rules of `portal.leaderboard.ranking` as one query.

A page needs a few of thousands of runs, so the database finds them by the columns of the results. What a row says, such
as why it has no rank, comes from the rules themselves.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When, Window
from django.db.models.functions import RowNumber

from portal.challenge.models import Track
from portal.reviews.models import Decision, ProofReview
from portal.submissions.models import Run, RunState, SubmissionState
from portal.teams.models import Team

# The id decides where even the times are equal.
BY_AGE = ("submission__submitted_at", "pk")


@dataclass(frozen=True)
class Place:
    """The place of a run on its board; `rank` is None where it has none."""

    run: UUID
    rank: int | None


def listed_runs(track: Track, budget: float | None) -> QuerySet[Run]:
    """Return the runs that a board lists: the scored ones of submissions that were not withdrawn."""
    return Run.objects.filter(
        state=RunState.SCORED,
        budget=budget,
        submission__state=SubmissionState.SUBMITTED,
        submission__track=track,
    )


def places(track: Track, budget: float | None, start: int = 0, stop: int | None = None) -> list[Place]:
    """Return the places of a board from `start` to `stop`, counted from 0, in the board's order."""
    found = [
        Place(run, rank) for rank, run in enumerate(_keys(_ranked(track, budget), start, stop), start + 1)
    ]
    if stop is not None and start + len(found) >= stop:
        return found
    # Those with a rank end within this part or before it.
    ranked = start + len(found) if found or not start else _ranked(track, budget).count()
    rest = _keys(_unranked(track, budget), max(0, start - ranked), None if stop is None else stop - ranked)
    return found + [Place(run, None) for run in rest]


def places_of(team: Team, track: Track, budget: float | None) -> list[Place]:
    """Return the places of the team's runs, in the board's order, with the ranks that they have among all."""
    numbered = _ranked(track, budget).annotate(rank=Window(RowNumber(), order_by=_order(budget)))
    # As one condition with the number, so that runs are numbered before the team's are picked.
    own = numbered.filter(Q(rank__lt=1) | Q(submission__team=team)).order_by("rank")
    ranked = [Place(run, rank) for run, rank in own.values_list("pk", "rank")]
    rest = _unranked(track, budget).filter(submission__team=team)
    return ranked + [Place(run, None) for run in rest.values_list("pk", flat=True)]


def _keys(runs: QuerySet[Run], start: int, stop: int | None) -> Iterable[UUID]:
    return runs.values_list("pk", flat=True)[start:stop]


def _ranked(track: Track, budget: float | None) -> QuerySet[Run]:
    """Return the runs with a rank, the best first; of equal ones the earlier first."""
    return listed_runs(track, budget).filter(_qualifies(track, budget)).order_by(*_order(budget))


def _order(budget: float | None) -> tuple[str, ...]:
    return ("bytes_total" if budget is None else "-anls", *BY_AGE)


def _unranked(track: Track, budget: float | None) -> QuerySet[Run]:
    qualifies = Case(When(_qualifies(track, budget), then=Value(True)), default=Value(False))
    return listed_runs(track, budget).annotate(has_rank=qualifies).filter(has_rank=False).order_by(*BY_AGE)


def _qualifies(track: Track, budget: float | None) -> Q:
    if budget is None:
        return Q(disqualified_because="", anls__gte=track.anls_threshold, bytes_total__isnull=False)
    rejected = ProofReview.objects.filter(submission=OuterRef("submission"), decision=Decision.REJECTED)
    return Q(~Exists(rejected), disqualified_because="", anls__isnull=False, epsilon__lte=budget)
