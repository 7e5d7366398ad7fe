"""The order of a board, by the database: the rule of the track's kind as one query.

A page needs a few of thousands of runs, so the database finds them by the columns of the results. What a row says, such
as why it has no rank, comes from the rules themselves.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import (
    Case,
    CharField,
    Count,
    F,
    FloatField,
    IntegerField,
    Max,
    Min,
    OrderBy,
    Q,
    QuerySet,
    RowRange,
    Value,
    When,
    Window,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Greatest, Lower, RowNumber

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.caching import cached
from docvqa_site.boards.selection import EVERYTHING, Baselines, Selection, Sort
from docvqa_site.challenge.models import Phase, Track
from docvqa_site.challenge.rankings import Ranking
from docvqa_site.reviews.tallies import rejected, verified
from docvqa_site.submissions.judged import proof_withholds, taken_off
from docvqa_site.submissions.models import Run
from docvqa_site.submissions.selectors import public_runs
from docvqa_site.teams.models import Team
from evaluator.messages.jobs import TrustLevel
from evaluator.messages.rankings import COUNTED, Limits

# The limits of a board as values that a cache can keep.
KeptLimits = tuple[tuple[str, float | None], ...]
# The id decides where even the times are equal.
BY_AGE = ("submission__submitted_at", "pk")
KEPT_QUERIES = 128
# Of a key in hexadecimal, and what separates it from the next.
KEY_LENGTH = 33
# The orders that a visitor may choose in place of the ranks.
ORDERS: dict[Sort, tuple[str, ...]] = {
    Sort.ANLS: ("-anls", *BY_AGE),
    Sort.EPSILON: ("epsilon", *BY_AGE),
    Sort.BYTES: ("bytes_total", *BY_AGE),
    Sort.NEWEST: ("-submission__submitted_at", "pk"),
    Sort.METHOD: ("submission__lower_title", *BY_AGE),
}


@dataclass(frozen=True)
class Place:
    """The place of a run on its board; `rank` is None where it has none."""

    run: UUID
    rank: int | None


def listed_runs(track: Track, budget: float | None) -> QuerySet[Run]:
    """Return the runs that a board lists: those that everybody sees."""
    return _listed(track.pk, budget, track.kind).all()


def places(track: Track, budget: float | None, start: int = 0, stop: int | None = None) -> list[Place]:
    """Return the places of a board from `start` to `stop`, counted from 0, in the board's order."""
    found = ranked_places(track, budget, EVERYTHING, start, stop)
    if stop is not None and start + len(found) >= stop:
        return found
    # Those with a rank end within this part or before it.
    ranked = start + len(found) if found or not start else _ranked(track, budget).count()
    after = max(0, start - ranked)
    return found + unranked_places(track, budget, EVERYTHING, after, None if stop is None else stop - ranked)


def ranked_places(
    track: Track, budget: float | None, selection: Selection, start: int, stop: int | None
) -> list[Place]:
    """Return a part of the selected places with a rank, each with its rank among all."""
    if selection == EVERYTHING:
        return [
            Place(run, rank) for rank, run in enumerate(_keys(_ranked(track, budget), start, stop), start + 1)
        ]
    order = ORDERS.get(selection.sort) or _order(track.kind)
    kept = kept_order(track, budget, boards_versions([track.pk])[track.pk])
    keys = _keys(_selected_ranked(track, budget, selection).order_by(*order), start, stop)
    ranks = ((run, kept.rank(run)) for run in keys)
    # A run may have got its rank between the two queries.
    return [Place(run, rank) for run, rank in ranks if rank]


def unranked_places(
    track: Track, budget: float | None, selection: Selection, start: int, stop: int | None
) -> list[Place]:
    """Return a part of the selected places without a rank, nearest to one first."""
    runs = _filtered(_unranked(track, budget), track, selection)
    return [Place(run, None) for run in _keys(runs, start, stop)]


def in_order(track: Track, budget: float | None) -> QuerySet[Run]:
    """Return all runs of a board in its order, each with `has_rank`, as one query: its rows are of one moment."""
    return _in_order(*_board(track, budget)).all()


@dataclass(frozen=True)
class KeptOrder:
    """The runs of a board that have a rank, the best first: their keys in hexadecimal, each in a line of its own."""

    keys: str

    def __len__(self) -> int:
        return (len(self.keys) + 1) // KEY_LENGTH

    def rank(self, run: UUID) -> int | None:
        """Return the rank of a run among all; None if it has none."""
        place = self.keys.find(run.hex)
        return None if place < 0 else place // KEY_LENGTH + 1


def kept_order(track: Track, budget: float | None, version: str) -> KeptOrder:
    """Return the order of this version of the track's boards, for which a process asks the database once.

    For pages, which are of a version. Whoever changes a run asks `ranks_of`.
    """

    def read() -> str:
        # As text: to make identifiers of thousands, of which a page shows few, takes longer than the query.
        keys = _ranked(track, budget).values_list(Cast("pk", CharField()), flat=True)
        return "\n".join(keys).replace("-", "")

    return KeptOrder(cached(version, f"order of keys {track.pk} {budget}", read))


def ranks_of(track: Track, budget: float | None, runs: Collection[UUID]) -> dict[UUID, int]:
    """Return the ranks among all of those of these runs that have one."""
    if not runs:
        return {}
    numbered = _ranked(track, budget).annotate(rank=Window(RowNumber(), order_by=_order(track.kind)))
    # As one condition with the number, so that runs are numbered before these are picked.
    found = numbered.filter(Q(rank__lt=1) | Q(pk__in=list(runs)))
    return dict(found.values_list("pk", "rank"))


def rank_in_words(*, run: Run, **_: object) -> str:
    """Return the rank of a run among all, such as "rank 2 of 3"; empty where it has none."""
    track = run.submission.track
    # The test of a draft with budgets has none, and is on no board.
    if run.budget not in track.run_budgets():
        return ""
    rank = ranks_of(track, run.budget, [run.pk]).get(run.pk)
    return f"rank {rank} of {counts(track, run.budget)[0]}" if rank else ""


def rank_if_published(run: Run) -> int | None:
    """Return the rank that a run that isn't public would have among those that are; None if it would have none."""
    track, budget = run.submission.track, run.budget
    own = _with_results(Run.objects.filter(pk=run.pk, scored_at__isnull=False), track.kind)
    if not own.filter(_qualifies(track.kind, track.limits(budget))).exists():
        return None
    better, equal = Q(pk__in=[]), Q()
    for name, is_falling in track.kind.rule.terms:
        value = getattr(run.results, name)
        better |= equal & Q(**{f"{name}__{'gt' if is_falling else 'lt'}": value})
        equal &= Q(**{name: value})
    at = run.submission.submitted_at
    earlier = Q(submission__submitted_at__lt=at) | Q(submission__submitted_at=at, pk__lt=run.pk)
    return 1 + _ranked(track, budget).filter(better | equal & earlier).count()


def pending_levels(track: Track, budget: float | None, phase: str = "") -> dict[UUID, TrustLevel]:
    """Return the ranked runs whose rank isn't final, each with the level that it lacks, as `ranking.pending` decides.

    Where a phase is named, only runs that were submitted in it.
    """
    return {
        run: TrustLevel(requiring.examined_level)
        for requiring in track.phases.all()
        if requiring.examined_ranks and phase in ("", requiring.name)
        for run, level in first_of_phase(requiring, budget, requiring.examined_ranks)
        if level < requiring.examined_level
    }


def first_of_phase(phase: Phase, budget: float | None, length: int) -> list[tuple[UUID, int]]:
    """Return the first of a board's ranked runs that were submitted in the phase, with their trust levels."""
    ranked = _ranked(phase.track, budget).filter(submission__phase=phase)
    return list(ranked.values_list("pk", "trust_level")[:length])


def unranked_counts(track: Track, selection: Selection = EVERYTHING) -> dict[float | None, int]:
    """Return how many of the selected runs of each board have no rank."""
    boards = [
        Q(_qualifies(track.kind, track.limits(budget)), budget=budget) for budget in track.run_budgets()
    ]
    runs = _with_results(public_runs().filter(submission__track=track), track.kind)
    listed = _filtered(runs, track, selection).order_by().values("budget")
    is_ranked = Count("pk", filter=reduce(or_, boards))
    found = listed.annotate(listed=Count("pk"), ranked=is_ranked).values_list("budget", "listed", "ranked")
    unranked = {budget: listed - ranked for budget, listed, ranked in found}
    return {budget: unranked.get(budget, 0) for budget in track.run_budgets()}


def counts(track: Track, budget: float | None, selection: Selection = EVERYTHING) -> tuple[int, int]:
    """Return how many of the selected runs have a rank, and how many have none."""
    listed = _filtered(listed_runs(track, budget), track, selection).order_by()
    is_ranked = Count("pk", filter=_qualifies(track.kind, track.limits(budget)))
    found = listed.aggregate(listed=Count("pk"), ranked=is_ranked)
    ranked = _selected_ranked(track, budget, selection).count() if selection.best else found["ranked"]
    return ranked, found["listed"] - found["ranked"]


def overlapping_scores(
    track: Track, budget: float | None, low: float, high: float
) -> tuple[int, list[tuple[float | None, float | None]]]:
    """Return how many intervals of scores with a rank begin above `high`, and those that overlap `low` to `high`."""
    ranked = _ranked(track, budget).order_by()
    above = ranked.filter(anls_low__gt=high).count() if high < 1 else 0
    overlap = Q(anls_low__lte=high, anls_high__gte=low) | Q(anls_low__isnull=True) | Q(anls_high__isnull=True)
    return above, list(ranked.filter(overlap).values_list("anls_low", "anls_high"))


def newest_places(track: Track, length: int) -> list[tuple[datetime, Place]]:
    """Return the runs of all boards whose scores became public last, with the time."""
    shown_at = Greatest("scored_at", "submission__published_at")
    runs = public_runs().filter(submission__track=track).annotate(shown_at=shown_at)
    found = runs.order_by("-shown_at", "pk").values_list("shown_at", "pk")[:length]
    return [(at, Place(run, None)) for at, run in found if at]


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


def first_points(
    track: Track, budget: float | None, length: int, baselines: Baselines = Baselines.ALL
) -> list[tuple[Any, ...]]:
    """Return `POINT` of the first runs with a rank, the result that ranks each, and whether that is verified."""
    return list(_ranked_points(*_board(track, budget), track.reviews_needed, baselines)[:length])


def _is_verified(reviews_needed: int | None) -> Case:
    return _holds(verified(reviews_needed, "submission__"))


def first_verified(track: Track, budget: float | None) -> UUID | None:
    """Return the first run with a rank whose result is verified."""
    return _verified(_ranked(track, budget), track).values_list("pk", flat=True).first()


def withheld_runs(track: Track, selection: Selection, length: int) -> list[UUID]:
    """Return the newest of the selected runs that reviewers, organizers or an examination took off the track's boards.

    As queries each of which an index answers; where a team is selected, that of its submissions answers one for all.
    """
    runs = _filtered(public_runs().filter(submission__track=track), track, selection)
    why = [taken_off(), rejected("submission__")] if track.kind.is_reviewed else [taken_off()]
    found: dict[UUID, datetime] = {}
    for part in map(runs.filter, [reduce(or_, why)] if selection.team else why):
        newest = part.order_by("-submission__submitted_at", "pk")
        rows = newest.values_list("pk", "submission__submitted_at")[:length]
        found |= {run: at for run, at in rows if at}
    return sorted(found, key=lambda run: found[run], reverse=True)[:length]


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
    known = _with_results(Run.objects.filter(pk__in=list(runs)), track.kind)
    return list(known.order_by(*BY_AGE).values_list("budget", why, *POINT, F(track.kind.first)))


def front_and_nearest_points(
    track: Track, of_front: int, nearest: int
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return `POINT` of the first runs by bytes whose ANLS none with fewer bytes reaches, and of the next to a rank."""
    by_bytes = ("bytes_total", "-anls", *BY_AGE)
    before = Window(Max("anls"), order_by=by_bytes, frame=RowRange(None, -1))
    front = Q(before__isnull=True) | Q(anls__gt=F("before"))
    runs = _ranked(track, None).annotate(before=before).filter(front)
    on_front = list(_keys(runs.order_by(*by_bytes), 0, of_front))
    unranked = list(_keys(_unranked(track, None).exclude(taken_off()), 0, nearest))
    found = _points_of([*on_front, *unranked], track)
    return [found[key] for key in on_front if key in found], [found[key] for key in unranked if key in found]


def record_points(track: Track, budget: float | None, length: int) -> list[tuple[Any, ...]]:
    """Return `POINT` of the last of the runs with a rank that were better than all earlier ones, oldest first."""
    name, is_falling = track.kind.rule.terms[0]
    best: Max | Min = Max(name) if is_falling else Min(name)
    before = Window(best, order_by=BY_AGE, frame=RowRange(None, -1))
    better = Q(**{f"{name}__{'gt' if is_falling else 'lt'}": F("before")})
    runs = _ranked(track, budget).annotate(before=before).filter(Q(before__isnull=True) | better)
    return _points(runs.order_by(*BY_AGE).reverse(), length, track)[::-1]


def _points(runs: QuerySet[Run], length: int, track: Track) -> list[tuple[Any, ...]]:
    """Return `POINT` of the first of these runs, for which the database reads the rows of no others."""
    keys = list(_keys(runs, 0, length))
    found = _points_of(keys, track)
    return [found[key] for key in keys if key in found]


def _points_of(keys: Collection[UUID], track: Track) -> dict[UUID, tuple[Any, ...]]:
    """Return `POINT` of these runs, the result that ranks each, and whether that is verified."""
    runs = _with_results(Run.objects.filter(pk__in=list(keys)), track.kind)
    rows = runs.order_by().values_list("pk", *POINT, F(track.kind.first), _is_verified(track.reviews_needed))
    return {key: tuple(point) for key, *point in rows}


def best_point(track: Track) -> tuple[Any, ...] | None:
    """Return `POINT` of the run with the best ANLS of a track without budgets."""
    runs = listed_runs(track, None).filter(anls__isnull=False)
    return runs.order_by("-anls", *BY_AGE).values_list(*POINT, "anls").first()


def _keys(runs: QuerySet[Run], start: int, stop: int | None) -> Iterable[UUID]:
    return runs.values_list("pk", flat=True)[start:stop]


def _ranked(track: Track, budget: float | None) -> QuerySet[Run]:
    """Return the runs with a rank, the best first."""
    return _ranked_runs(*_board(track, budget)).all()


def _unranked(track: Track, budget: float | None) -> QuerySet[Run]:
    """Return the runs without a rank, those first that missed it by least."""
    return _unranked_runs(*_board(track, budget)).all()


def _board(track: Track, budget: float | None) -> tuple[int, float | None, Ranking, KeptLimits]:
    """Return all that the queries of a board depend on."""
    return track.pk, budget, track.kind, tuple(track.limits(budget).items())


def _order(kind: Ranking) -> tuple[str, ...]:
    return (*kind.rule.order, *BY_AGE)


# A page asks for parts of the same few queries again and again. To build one takes as long as to answer it, so they are
# kept, without anything that was read.
@lru_cache(maxsize=KEPT_QUERIES)
def _listed(track_id: int, budget: float | None, kind: Ranking) -> QuerySet[Run]:
    return _with_results(public_runs().filter(budget=budget, submission__track_id=track_id), kind)


@lru_cache(maxsize=KEPT_QUERIES)
def _ranked_runs(track_id: int, budget: float | None, kind: Ranking, limits: KeptLimits) -> QuerySet[Run]:
    return _listed(track_id, budget, kind).filter(_qualifies(kind, dict(limits))).order_by(*_order(kind))


@lru_cache(maxsize=KEPT_QUERIES)
def _ranked_points(
    track_id: int,
    budget: float | None,
    kind: Ranking,
    limits: KeptLimits,
    reviews_needed: int | None,
    baselines: Baselines,
) -> "QuerySet[Run, tuple[Any, ...]]":
    runs = _of_baselines(_ranked_runs(track_id, budget, kind, limits), baselines)
    return runs.values_list(*POINT, F(kind.first), _is_verified(reviews_needed))


@lru_cache(maxsize=KEPT_QUERIES)
def _unranked_runs(track_id: int, budget: float | None, kind: Ranking, limits: KeptLimits) -> QuerySet[Run]:
    runs = _listed(track_id, budget, kind).annotate(has_rank=_holds(_qualifies(kind, dict(limits))))
    return runs.filter(has_rank=False).order_by(_holds(rejected("submission__")), *_missed(kind), *BY_AGE)


@lru_cache(maxsize=KEPT_QUERIES)
def _in_order(track_id: int, budget: float | None, kind: Ranking, limits: KeptLimits) -> QuerySet[Run]:
    """Return the runs of `_ranked_runs`, and after them those of `_unranked_runs`."""
    has_rank = _holds(_qualifies(kind, dict(limits)))
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


def _with_results(runs: QuerySet[Run], kind: Ranking) -> QuerySet[Run]:
    """Return the runs with every result that ranks them; those without a column of their own from the document."""
    missing = set(kind.rule.needs) - {field.name for field in Run._meta.get_fields()}
    return runs.annotate(**{name: Cast(KeyTextTransform(name, "results"), FloatField()) for name in missing})


def _qualifies(kind: Ranking, limits: Limits) -> Q:
    """Return the condition for a rank, as `Ranking.shortfall` decides it."""
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


def _holds(condition: Q) -> Case:
    """Return whether a condition holds, as a column; where it compares with null, it doesn't."""
    return Case(When(condition, then=Value(True)), default=Value(False))


def _selected_ranked(track: Track, budget: float | None, selection: Selection) -> QuerySet[Run]:
    runs = _filtered(_ranked(track, budget), track, selection)
    if not selection.best:
        return runs
    of_team = Window(RowNumber(), partition_by=_author(), order_by=_order(track.kind))
    return runs.annotate(place_in_team=of_team).filter(place_in_team=1)


def _author() -> Case:
    """Return whose run it is, for all to see: an anonymous submission is of nobody else."""
    submission, team = (Cast(name, CharField()) for name in ("submission_id", "submission__team_id"))
    return Case(When(submission__anonymous=True, then=submission), default=team)


def _filtered(runs: QuerySet[Run], track: Track, selection: Selection) -> QuerySet[Run]:
    if selection.verified:
        runs = _verified(runs, track)
    # What is hidden of an anonymous submission can't be found by a filter either.
    is_named = Q(submission__anonymous=False)
    if selection.phase:
        runs = runs.filter(submission__phase__name=selection.phase)
    if selection.since:
        runs = runs.filter(submission__submitted_at__date__gte=selection.since)
    if selection.until:
        runs = runs.filter(submission__submitted_at__date__lte=selection.until)
    if selection.open_code:
        runs = runs.filter(is_named).exclude(submission__code_url="")
    runs = _of_baselines(runs, selection.baselines)
    if selection.text:
        title = Q(submission__lower_title__contains=Lower(Value(selection.text)))
        # Not by a join: there are fewer teams than submissions whose team's name it would compare.
        teams = Team.objects.filter(name__icontains=selection.text)
        team = is_named & Q(submission__team__in=teams)
        alias = ~is_named & Q(submission__alias__icontains=selection.text)
        runs = runs.filter(title | team | alias)
    if selection.submissions:
        runs = runs.filter(submission__in=selection.submissions)
    if selection.team:
        runs = runs.filter(is_named, submission__team__slug=selection.team)
    return runs


def _of_baselines(runs: QuerySet[Run], baselines: Baselines) -> QuerySet[Run]:
    if baselines is Baselines.ALL:
        return runs
    return runs.filter(submission__is_baseline=baselines is Baselines.ONLY)


def _verified(runs: QuerySet[Run], track: Track) -> QuerySet[Run]:
    """Return those of the runs whose results are verified, as `docvqa_site.reviews.verdict.verdict` decides."""
    return runs.filter(verified(track.reviews_needed, "submission__"))
