"""The runs of a board in its order, by the database: the rule of the track's kind as one query.

A page needs a few of thousands of runs, so the database finds them by the columns of the results. What a row says, such
as why it has no rank, comes from the rules themselves.
"""

from collections.abc import Iterable
from functools import lru_cache, reduce
from operator import or_
from uuid import UUID

from django.db.models import Case, F, FloatField, OrderBy, Q, QuerySet, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from docvqa_site.boards.selection import Baselines
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.rankings import REMOVED_BUDGET, Ranking
from docvqa_site.reviews.tallies import rejected
from docvqa_site.submissions.judged import proof_withholds
from docvqa_site.submissions.models import Run
from docvqa_site.submissions.selectors import public_runs
from evaluator.messages.rankings import COUNTED, Limits

# The limits of a board as values that a cache can keep.
KeptLimits = tuple[tuple[str, float | None], ...]
# The id decides where even the times are equal.
BY_AGE = ("submission__submitted_at", "pk")
KEPT_QUERIES = 128


def listed_runs(track: Track, budget: float | None) -> QuerySet[Run]:
    """Return the runs that a board lists: those that everybody sees."""
    return _listed(track.pk, budget, track.kind).all()


def ranked_runs(track: Track, budget: float | None) -> QuerySet[Run]:
    """Return the runs with a rank, the best first."""
    return kept_ranked_runs(*board_key(track, budget)).all()


def ranked_on_boards(track: Track, budgets: Iterable[float | None]) -> QuerySet[Run]:
    """Return the runs with a rank on any of these boards of the track, in no order."""
    boards = tuple(board_key(track, budget)[1::2] for budget in budgets)
    return _ranked_on_boards(track.pk, track.kind, boards).all()


def unranked_runs(track: Track, budget: float | None) -> QuerySet[Run]:
    """Return the runs without a rank, those first that missed it by least."""
    return _unranked_runs(*board_key(track, budget)).all()


def in_order(track: Track, budget: float | None) -> QuerySet[Run]:
    """Return all runs of a board in its order, each with `has_rank`, as one query: its rows are of one moment."""
    return _in_order(*board_key(track, budget)).all()


def board_key(track: Track, budget: float | None) -> tuple[int, float | None, Ranking, KeptLimits]:
    """Return all that the queries of a board depend on."""
    return track.pk, budget, track.kind, tuple(track.limits(budget).items())


def order_of(kind: Ranking) -> tuple[str, ...]:
    """Return the order of the runs with a rank."""
    return (*kind.rule.order, *BY_AGE)


def keys_of(runs: QuerySet[Run], start: int, stop: int | None) -> Iterable[UUID]:
    """Return the keys of a part of these runs."""
    return runs.values_list("pk", flat=True)[start:stop]


# A page asks for parts of the same few queries again and again. To build one takes as long as to answer it, so they are
# kept, without anything that was read.
@lru_cache(maxsize=KEPT_QUERIES)
def _listed(track_id: int, budget: float | None, kind: Ranking) -> QuerySet[Run]:
    return with_results(public_runs().filter(budget=budget, submission__track_id=track_id), kind)


@lru_cache(maxsize=KEPT_QUERIES)
def kept_ranked_runs(track_id: int, budget: float | None, kind: Ranking, limits: KeptLimits) -> QuerySet[Run]:
    """Return the query of `ranked_runs`, to build another one on."""
    return _listed(track_id, budget, kind).filter(qualifies(kind, dict(limits))).order_by(*order_of(kind))


@lru_cache(maxsize=KEPT_QUERIES)
def _ranked_on_boards(
    track_id: int, kind: Ranking, boards: tuple[tuple[float | None, KeptLimits], ...]
) -> QuerySet[Run]:
    runs = with_results(public_runs().filter(submission__track_id=track_id), kind)
    ranked = [Q(qualifies(kind, dict(limits)), budget=budget) for budget, limits in boards]
    return runs.filter(reduce(or_, ranked)) if ranked else runs.none()


@lru_cache(maxsize=KEPT_QUERIES)
def _unranked_runs(track_id: int, budget: float | None, kind: Ranking, limits: KeptLimits) -> QuerySet[Run]:
    runs = _listed(track_id, budget, kind).annotate(has_rank=holds(qualifies(kind, dict(limits))))
    return runs.filter(has_rank=False).order_by(holds(rejected("submission__")), *_missed(kind), *BY_AGE)


@lru_cache(maxsize=KEPT_QUERIES)
def _in_order(track_id: int, budget: float | None, kind: Ranking, limits: KeptLimits) -> QuerySet[Run]:
    """Return the runs of `kept_ranked_runs`, and after them those of `_unranked_runs`."""
    has_rank = holds(qualifies(kind, dict(limits)))
    part = Case(
        When(has_rank=True, then=Value(0)), When(rejected("submission__"), then=Value(2)), default=Value(1)
    )
    # Of the runs of the other part, these are all null.
    best = [OrderBy(_if_rank(name, has_rank=True), descending=falls) for name, falls in kind.rule.terms]
    nearest = [
        OrderBy(_if_rank(name, has_rank=False), descending=is_least, nulls_last=True)
        for name, _, is_least in kind.rule.limits
    ]
    runs = _listed(track_id, budget, kind).annotate(has_rank=has_rank)
    return runs.order_by(part, *best, *nearest, *BY_AGE)


def _if_rank(name: str, *, has_rank: bool) -> Case:
    """Return a result of the runs with a rank, or of those without one, and null of all others."""
    return Case(When(has_rank=has_rank, then=F(name)))


def _missed(kind: Ranking) -> list[OrderBy]:
    """Return the order of runs that meet not every condition; the one that missed a rank by least comes first."""
    return [
        F(name).desc(nulls_last=True) if is_least else F(name).asc(nulls_last=True)
        for name, _, is_least in kind.rule.limits
    ]


def with_results(runs: QuerySet[Run], kind: Ranking) -> QuerySet[Run]:
    """Return the runs with every result that ranks them; those without a column of their own from the document."""
    missing = set(kind.rule.needs) - {field.name for field in Run._meta.get_fields()}
    return runs.annotate(**{name: Cast(KeyTextTransform(name, "results"), FloatField()) for name in missing})


def qualifies(kind: Ranking, limits: Limits) -> Q:
    """Return the condition for a rank, as `Ranking.shortfall` decides it."""
    if limits.get(REMOVED_BUDGET) is not None:
        return Q(pk__in=[])
    needed = Q(**{f"{name}__isnull": False for name in kind.rule.needs})
    met = {
        f"{name}__{'gte' if is_least else 'lte'}": limits[limit] for name, limit, is_least in kind.rule.limits
    }
    return Q(
        ~proof_withholds("submission__"),
        needed,
        _confirmed(limits[kind.rule.confirmed_from]) if kind.rule.confirmed_from else Q(),
        _believed() if kind.rule.ranks_bytes else Q(),
        disqualified_because="",
        failed_level__isnull=True,
        **met,
    )


def _confirmed(level: float | None) -> Q:
    """Return the condition that a run is bound to its record, or has the trust level from which others rank."""
    return Q(unbound__isnull=True) | Q(trust_level__gte=level or 0)


def _believed() -> Q:
    """Return the condition that a run's bytes are counted, or may be declared and give no reason to doubt them."""
    counted = Q(counting=COUNTED) | Q(submission__phase__requires_counted=False)
    return counted & (Q(log_flag__isnull=True) | Q(log_accepted_at__isnull=False))


def holds(condition: Q) -> Case:
    """Return whether a condition holds, as a column; where it compares with null, it doesn't."""
    return Case(When(condition, then=Value(True)), default=Value(False))


def of_baselines(runs: QuerySet[Run], baselines: Baselines) -> QuerySet[Run]:
    """Return those of the runs that are baselines, or aren't, as a visitor chose."""
    if baselines is Baselines.ALL:
        return runs
    return runs.filter(submission__is_baseline=baselines is Baselines.ONLY)
