"""The places of runs on their boards: ranks, parts, counts and selections."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from uuid import UUID

from django.db.models import Case, CharField, Count, FloatField, OrderBy, Q, QuerySet, Value, When, Window
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Greatest, Lower, RowNumber

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.caching import cached_together
from docvqa_site.boards.queries import (
    BY_AGE,
    holds,
    keys_of,
    listed_runs,
    of_baselines,
    order_of,
    qualifies,
    ranked_on_boards,
    ranked_runs,
    unranked_runs,
    with_results,
)
from docvqa_site.boards.selection import EVERYTHING, Selection, Sort
from docvqa_site.boards.uncertainty import RankRanges
from docvqa_site.challenge.models import Phase, Track
from docvqa_site.reviews.tallies import rejected, verified
from docvqa_site.submissions.judged import taken_off
from docvqa_site.submissions.keys import KeyAsText
from docvqa_site.submissions.models import Artifact, Run
from docvqa_site.submissions.selectors import public_runs
from docvqa_site.teams.models import Team
from evaluator.messages.jobs import ArtifactKind, TrustLevel
from evaluator.messages.results import MOST_DECIMALS, RunResults

# Of a key as text, and what separates it from the next.
KEY_LENGTH = 37
# Where no leakage was found, none is stored.
LEAKED = Case(
    When(
        results__leakage__auc__isnull=False,
        then=Cast(KeyTextTransform("auc", KeyTextTransform("leakage", "results")), FloatField()),
    ),
    When(results__leakage__isnull=False, then=Value(0.0)),
)
# The orders that a visitor may choose in place of the ranks.
ORDERS: dict[Sort, tuple[str | OrderBy, ...]] = {
    Sort.ANLS: ("-anls", *BY_AGE),
    Sort.EPSILON: ("epsilon", *BY_AGE),
    Sort.BYTES: ("bytes_total", *BY_AGE),
    Sort.NEWEST: ("-submission__submitted_at", "pk"),
    Sort.METHOD: ("submission__lower_title", *BY_AGE),
    Sort.LEAKAGE: (LEAKED.asc(nulls_last=True), *BY_AGE),
}


@dataclass(frozen=True)
class Place:
    """The place of a run on its board; `rank` is None where it has none."""

    run: UUID
    rank: int | None


def places(track: Track, budget: float | None, start: int = 0, stop: int | None = None) -> list[Place]:
    """Return the places of a board from `start` to `stop`, counted from 0, in the board's order."""
    found = ranked_places(track, budget, EVERYTHING, start, stop)
    if stop is not None and start + len(found) >= stop:
        return found
    # Those with a rank end within this part or before it.
    ranked = start + len(found) if found or not start else ranked_runs(track, budget).count()
    after = max(0, start - ranked)
    return found + unranked_places(track, budget, EVERYTHING, after, None if stop is None else stop - ranked)


def ranked_places(
    track: Track,
    budget: float | None,
    selection: Selection,
    start: int,
    stop: int | None,
    version: str | None = None,
) -> list[Place]:
    """Return a part of the selected places with a rank, each with its rank among all; see `ranked_on_each`."""
    (found,) = ranked_on_each(track, [budget], selection, start, stop, version)
    return found


def ranked_on_each(
    track: Track,
    budgets: Sequence[float | None],
    selection: Selection,
    start: int,
    stop: int | None,
    version: str | None = None,
) -> list[list[Place]]:
    """Return the same of each of these boards.

    Args:
        version: That of the track's boards, where the caller has read it.
    """
    if selection == EVERYTHING:
        parts = [keys_of(ranked_runs(track, budget), start, stop) for budget in budgets]
        return [[Place(run, rank) for rank, run in enumerate(part, start + 1)] for part in parts]
    order = _order(track, selection.sort)
    kept = kept_orders(track, budgets, version or boards_versions([track.pk])[track.pk])
    found = []
    for budget in budgets:
        runs = _selected_ranked(track, budget, selection).order_by(*order)
        keys = keys_of(runs.reverse() if selection.is_reversed else runs, start, stop)
        ranks = ((run, kept[budget].rank(run)) for run in keys)
        # A run may have got its rank between the two queries.
        found.append([Place(run, rank) for run, rank in ranks if rank])
    return found


def unranked_places(
    track: Track, budget: float | None, selection: Selection, start: int, stop: int | None
) -> list[Place]:
    """Return a part of the selected places without a rank, nearest to one first."""
    runs = _filtered(unranked_runs(track, budget), track, selection)
    return [Place(run, None) for run in keys_of(runs, start, stop)]


@dataclass(frozen=True)
class KeptOrder:
    """The runs of a board that have a rank, the best first: their keys, each in a line of its own."""

    keys: str

    def __len__(self) -> int:
        return (len(self.keys) + 1) // KEY_LENGTH

    def rank(self, run: UUID) -> int | None:
        """Return the rank of a run among all; None if it has none."""
        place = self.keys.find(str(run))
        return None if place < 0 else place // KEY_LENGTH + 1


def kept_orders(
    track: Track, budgets: Collection[float | None], version: str
) -> dict[float | None, KeptOrder]:
    """Return the orders of these boards in this version, for which a process asks the database once.

    For pages, which are of a version. Whoever changes a run asks `ranks_of`.
    """
    by_name = {f"keys in order {track.pk} {budget}": budget for budget in budgets}

    def read(names: Collection[str]) -> dict[str, str]:
        if len(names) == 1:
            # Without the budgets, which take as long to read as the keys.
            (name,) = names
            return {
                name: "\n".join(ranked_runs(track, by_name[name]).values_list(KeyAsText("pk"), flat=True))
            }
        runs = ranked_on_boards(track, [by_name[name] for name in names]).order_by(*order_of(track.kind))
        rows = list(runs.values_list("budget", KeyAsText("pk")))
        return {name: "\n".join([key for budget, key in rows if budget == by_name[name]]) for name in names}

    kept = cached_together(version, by_name, read)
    return {budget: KeptOrder(kept[name]) for name, budget in by_name.items()}


def ranks_of(track: Track, budget: float | None, runs: Collection[UUID]) -> dict[UUID, int]:
    """Return the ranks among all of those of these runs that have one."""
    if not runs:
        return {}
    numbered = ranked_runs(track, budget).annotate(rank=Window(RowNumber(), order_by=order_of(track.kind)))
    # As one condition with the number, so that runs are numbered before these are picked.
    found = numbered.filter(Q(rank__lt=1) | Q(pk__in=list(runs)))
    return dict(found.values_list("pk", "rank"))


def would_rank_in_words(run: Run) -> str:
    """Return the rank that a run would have if it were ranked today; empty where it would have none."""
    ranks = rank_if_published(run)
    if ranks is None:
        return ""
    why = " (practice scores are rounded)" if ranks.is_open else ""
    return f"would be rank {ranks} of {_ranked_beside(run).count() + 1} today{why}"


@dataclass(frozen=True)
class WouldRank:
    """The best and the worst rank that a run could have; they differ where its score is stored with fewer decimals."""

    best: int
    worst: int

    @property
    def is_open(self) -> bool:
        return self.best != self.worst

    def __str__(self) -> str:
        return str(self.worst) if not self.is_open else f"{self.best}–{self.worst}"


def rank_if_published(run: Run) -> WouldRank | None:
    """Return the rank that a run that isn't public would have among those that are; None if it would have none."""
    track, results = run.submission.track, run.results
    own = with_results(Run.objects.filter(pk=run.pk, scored_at__isnull=False), track.kind)
    if not own.filter(qualifies(track.kind, track.limits(run.budget))).exists():
        return None
    worst = _rank_with(run, results)
    if not run.submission.practice or results.anls is None:
        return WouldRank(worst, worst)
    # The score of practice is stored with few decimals: the true one is below this.
    above = results.model_copy(update={"anls": round(results.anls + 10**-results.decimals, MOST_DECIMALS)})
    return WouldRank(min(worst, _rank_with(run, above)), worst)


def _ranked_beside(run: Run) -> QuerySet[Run]:
    """Return the ranked runs that a run would compete with: not those of its team with the same checkpoint."""
    submission = run.submission
    checkpoints = Artifact.objects.filter(kind=ArtifactKind.CHECKPOINT)
    own = checkpoints.filter(run=run).values("upload__sha256")
    same = checkpoints.filter(
        upload__sha256__in=own, submission__team=submission.team_id, submission__track=submission.track_id
    )
    return ranked_runs(submission.track, run.budget).exclude(pk__in=list(same.values_list("run", flat=True)))


def _rank_with(run: Run, results: RunResults) -> int:
    """Return the rank that the run would have with these results."""
    track = run.submission.track
    better, equal = Q(pk__in=[]), Q()
    for name, is_falling in track.kind.rule.terms:
        value = getattr(results, name)
        better |= equal & Q(**{f"{name}__{'gt' if is_falling else 'lt'}": value})
        equal &= Q(**{name: value})
    at = run.submission.submitted_at
    earlier = Q(submission__submitted_at__lt=at) | Q(submission__submitted_at=at, pk__lt=run.pk)
    return 1 + _ranked_beside(run).filter(better | equal & earlier).count()


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
    ranked = ranked_runs(phase.track, budget).filter(submission__phase=phase)
    return list(ranked.values_list("pk", "trust_level")[:length])


def unranked_counts(track: Track, selection: Selection = EVERYTHING) -> dict[float | None, int]:
    """Return how many of the selected runs of each board have no rank."""
    boards = [Q(qualifies(track.kind, track.limits(budget)), budget=budget) for budget in track.run_budgets()]
    runs = with_results(public_runs().filter(submission__track=track), track.kind)
    listed = _filtered(runs, track, selection).order_by().values("budget")
    is_ranked = Count("pk", filter=reduce(or_, boards))
    found = listed.annotate(listed=Count("pk"), ranked=is_ranked).values_list("budget", "listed", "ranked")
    unranked = {budget: listed - ranked for budget, listed, ranked in found}
    return {budget: unranked.get(budget, 0) for budget in track.run_budgets()}


def counts(track: Track, budget: float | None, selection: Selection = EVERYTHING) -> tuple[int, int]:
    """Return how many of the selected runs have a rank, and how many have none."""
    listed = _filtered(listed_runs(track, budget), track, selection).order_by()
    is_ranked = Count("pk", filter=qualifies(track.kind, track.limits(budget)))
    found = listed.aggregate(listed=Count("pk"), ranked=is_ranked)
    ranked = _selected_ranked(track, budget, selection).count() if selection.best else found["ranked"]
    return ranked, found["listed"] - found["ranked"]


def rank_ranges(
    track: Track, budgets: Collection[float | None], version: str | None = None
) -> dict[float | None, RankRanges]:
    """Return for each of these boards what gives the possible ranks of its runs; for none where scores don't rank.

    Args:
        version: That of the boards, for which a process asks the database once. Whoever changes a run names none.
    """
    if track.kind.first != "anls":
        return {}
    by_name = {f"ranges of ranks {track.pk} {budget}": budget for budget in budgets}

    def read(names: Collection[str]) -> dict[str, str]:
        rows = ranked_on_boards(track, [by_name[name] for name in names])
        intervals: dict[float | None, list[tuple[float | None, float | None]]] = defaultdict(list)
        for budget, *interval in rows.values_list("budget", "anls_low", "anls_high"):
            intervals[budget].append((interval[0], interval[1]))
        return {name: RankRanges.among(intervals[by_name[name]]).as_text() for name in names}

    kept = cached_together(version, by_name, read) if version else read(by_name)
    return {budget: RankRanges.from_text(kept[name]) for name, budget in by_name.items()}


def newest_places(track: Track, length: int) -> list[tuple[datetime, Place]]:
    """Return the runs of all boards whose scores became public last, with the time."""
    shown_at = Greatest("scored_at", "submission__published_at")
    runs = public_runs().filter(submission__track=track).annotate(shown_at=shown_at)
    found = runs.order_by("-shown_at", "pk").values_list("shown_at", "pk")[:length]
    return [(at, Place(run, None)) for at, run in found if at]


def first_verified(track: Track, budget: float | None) -> UUID | None:
    """Return the first run with a rank whose result is verified."""
    return _verified(ranked_runs(track, budget), track).values_list("pk", flat=True).first()


def withheld_runs(track: Track, selection: Selection, length: int) -> list[UUID]:
    """Return the newest of the selected runs that reviewers, organizers or an examination took off the track's boards.

    As parts each of which an index answers; where a team is selected, that of its submissions answers one for all.
    """
    runs = _filtered(public_runs().filter(submission__track=track), track, selection)
    why = [taken_off(), rejected("submission__")] if track.kind.is_reviewed else [taken_off()]
    parts = [reduce(or_, why)] if selection.team else why
    newest = [runs.filter(part).order_by("-submission__submitted_at", "pk")[:length] for part in parts]
    first, *others = (_times_of(part) for part in newest)
    found = {run: at for run, at in (first.union(*others) if others else first) if at}
    return sorted(found, key=lambda run: found[run], reverse=True)[:length]


def _times_of(part: QuerySet[Run]) -> "QuerySet[Run, tuple[UUID, datetime | None]]":
    """Return these runs with the time of each submission, as a query that can be united with others.

    SQLite unites none of which a part is taken, but those of runs that are in a part.
    """
    runs = Run.objects.filter(pk__in=part.values("pk")).order_by()
    return runs.values_list("pk", "submission__submitted_at")


def _order(track: Track, sort: Sort) -> tuple[str | OrderBy, ...]:
    """Return an order of the runs of a track that have a rank."""
    by_rank = order_of(track.kind)
    if sort is Sort.STATUS:
        return (holds(verified(track.reviews_needed, "submission__")).desc(), *by_rank)
    return ORDERS.get(sort, by_rank)


def _selected_ranked(track: Track, budget: float | None, selection: Selection) -> QuerySet[Run]:
    runs = _filtered(ranked_runs(track, budget), track, selection)
    if not selection.best:
        return runs
    of_team = Window(RowNumber(), partition_by=_author(), order_by=order_of(track.kind))
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
    runs = of_baselines(runs, selection.baselines)
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


def _verified(runs: QuerySet[Run], track: Track) -> QuerySet[Run]:
    """Return those of the runs whose results are verified, as `docvqa_site.reviews.verdict.verdict` decides."""
    return runs.filter(verified(track.reviews_needed, "submission__"))
