"""What plots show of runs: few values of many of them."""

from collections.abc import Collection
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db.models import (
    Case,
    CharField,
    F,
    IntegerField,
    Max,
    Min,
    Q,
    QuerySet,
    RowRange,
    Value,
    When,
    Window,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from docvqa_site.boards.queries import (
    BY_AGE,
    KEPT_QUERIES,
    KeptLimits,
    board_key,
    holds,
    kept_ranked_runs,
    keys_of,
    listed_runs,
    of_baselines,
    order_of,
    ranked_on_boards,
    ranked_runs,
    unranked_runs,
    with_results,
)
from docvqa_site.boards.selection import Baselines
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.rankings import Ranking
from docvqa_site.reviews.tallies import rejected, verified
from docvqa_site.submissions.judged import taken_off
from docvqa_site.submissions.models import Run

# What a plot needs of a run; before the interval of its score, how many decimals are shown, None for the most.
POINT = (
    "submission",
    "submission__title",
    "submission__is_baseline",
    "submission__submitted_at",
    "bytes_total",
    "anls",
    Cast(KeyTextTransform("decimals", "results"), IntegerField()),
    "anls_low",
    "anls_high",
)


def _is_verified(reviews_needed: int | None) -> Case:
    return holds(verified(reviews_needed, "submission__"))


def first_points(track: Track, budget: float | None, length: int) -> list[tuple[Any, ...]]:
    """Return `POINT` of the first runs with a rank, the result that ranks each, and whether that is verified."""
    return list(_ranked_points(*board_key(track, budget), track.reviews_needed)[:length])


def first_baselines(track: Track) -> dict[float | None, tuple[Any, ...]]:
    """Return the same of the first baseline with a rank on each board that has one; there are few of them."""
    ranked = of_baselines(ranked_on_boards(track, track.run_budgets()), Baselines.ONLY)
    found: dict[float | None, tuple[Any, ...]] = {}
    rows = ranked.order_by(*order_of(track.kind)).values_list(
        "budget", *_shown(track.kind, track.reviews_needed)
    )
    for budget, *point in rows:
        found.setdefault(budget, tuple(point))
    return found


def withheld_points(track: Track, runs: Collection[UUID]) -> list[tuple[Any, ...]]:
    """Return the budget of each of these runs, why it was taken off its board, `POINT` and the result that ranks."""
    if not runs:
        return []
    why = Case(
        When(~Q(disqualified_because=""), then=Value("disqualified")),
        When(rejected("submission__"), then=Value("proof rejected")),
        default=Value("failed an examination"),
        output_field=CharField(),
    )
    known = with_results(Run.objects.filter(pk__in=list(runs)), track.kind)
    return list(known.order_by(*BY_AGE).values_list("budget", why, *POINT, F(track.kind.first)))


def front_and_nearest_points(
    track: Track, of_front: int, nearest: int
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return `POINT` of the first runs by bytes whose ANLS none with fewer bytes reaches, and of the next to a rank."""
    by_bytes = ("bytes_total", "-anls", *BY_AGE)
    before = Window(Max("anls"), order_by=by_bytes, frame=RowRange(None, -1))
    front = Q(before__isnull=True) | Q(anls__gt=F("before"))
    runs = ranked_runs(track, None).annotate(before=before).filter(front)
    on_front = list(keys_of(runs.order_by(*by_bytes), 0, of_front))
    unranked = list(keys_of(unranked_runs(track, None).exclude(taken_off()), 0, nearest))
    found = _points_of([*on_front, *unranked], track)
    return [found[key] for key in on_front if key in found], [found[key] for key in unranked if key in found]


def record_points(track: Track, budget: float | None, length: int) -> list[tuple[Any, ...]]:
    """Return `POINT` of the last of the runs with a rank that were better than all earlier ones, oldest first."""
    name, is_falling = track.kind.rule.terms[0]
    best: Max | Min = Max(name) if is_falling else Min(name)
    before = Window(best, order_by=BY_AGE, frame=RowRange(None, -1))
    better = Q(**{f"{name}__{'gt' if is_falling else 'lt'}": F("before")})
    runs = ranked_runs(track, budget).annotate(before=before).filter(Q(before__isnull=True) | better)
    return _points(runs.order_by(*BY_AGE).reverse(), length, track)[::-1]


def best_point(track: Track) -> tuple[Any, ...] | None:
    """Return `POINT` of the run with the best ANLS of a track without budgets."""
    runs = listed_runs(track, None).filter(anls__isnull=False)
    return runs.order_by("-anls", *BY_AGE).values_list(*POINT, "anls").first()


def _points(runs: QuerySet[Run], length: int, track: Track) -> list[tuple[Any, ...]]:
    """Return `POINT` of the first of these runs, for which the database reads the rows of no others."""
    keys = list(keys_of(runs, 0, length))
    found = _points_of(keys, track)
    return [found[key] for key in keys if key in found]


def _points_of(keys: Collection[UUID], track: Track) -> dict[UUID, tuple[Any, ...]]:
    """Return `POINT` of these runs, the result that ranks each, and whether that is verified."""
    runs = with_results(Run.objects.filter(pk__in=list(keys)), track.kind)
    rows = runs.order_by().values_list("pk", *_shown(track.kind, track.reviews_needed))
    return {key: tuple(point) for key, *point in rows}


@lru_cache(maxsize=KEPT_QUERIES)
def _ranked_points(
    track_id: int,
    budget: float | None,
    kind: Ranking,
    limits: KeptLimits,
    reviews_needed: int | None,
) -> "QuerySet[Run, tuple[Any, ...]]":
    return kept_ranked_runs(track_id, budget, kind, limits).values_list(*_shown(kind, reviews_needed))


def _shown(kind: Ranking, reviews_needed: int | None) -> tuple[Any, ...]:
    return *POINT, F(kind.first), _is_verified(reviews_needed)
