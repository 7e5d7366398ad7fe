"""The ranks of single runs, such as a team's own, from the order of their boards, which is kept for each version."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.ordering import counts, kept_orders, rank_ranges, ranks_of, would_rank_in_words
from docvqa_site.boards.uncertainty import RankRange, RankRanges
from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import Run, SubmissionState


@dataclass(frozen=True)
class Standing:
    """A rank, how many runs have one on the same board, and which ranks the run could have, where scores rank."""

    rank: int
    count: int
    possible: RankRange | None = None

    @property
    def possible_ranks(self) -> str:
        """The ranks that the intervals of scores allow, such as "could be 1–2"; empty where that is one."""
        return self.possible.in_words if self.possible else ""

    def __str__(self) -> str:
        return f"#{self.rank} of {self.count}{f' ({self.possible_ranks})' if self.possible_ranks else ''}"


def standings_of(runs: Iterable[Run]) -> dict[UUID, Standing]:
    """Return the standings of those of these runs that have a rank; their submissions should be loaded."""
    by_track: dict[Track, list[Run]] = defaultdict(list)
    for run in runs:
        if run.scored_at and run.submission.state == SubmissionState.SUBMITTED:
            by_track[run.submission.track].append(run)
    versions = boards_versions([track.pk for track in by_track]) if by_track else {}
    found: dict[UUID, Standing] = {}
    for track, own in by_track.items():
        orders = kept_orders(track, {run.budget for run in own}, versions[track.pk])
        ranks = {run: rank for run in own if (rank := orders[run.budget].rank(run.pk))}
        ranges = rank_ranges(track, {run.budget for run in ranks}, versions[track.pk])
        found |= {
            run.pk: Standing(rank, len(orders[run.budget]), _possible(run, ranges))
            for run, rank in ranks.items()
        }
    return found


def rank_in_words(run: Run) -> str:
    """Return the rank that a run has or would have among all, such as "#2 of 3"; empty where it has none."""
    track = run.submission.track
    # The test of a draft with budgets has none, and is on no board.
    if run.budget not in track.run_budgets():
        return ""
    if run.submission.is_unpublished:
        return would_rank_in_words(run)
    rank = ranks_of(track, run.budget, [run.pk]).get(run.pk)
    if not rank:
        return ""
    possible = _possible(run, rank_ranges(track, [run.budget]))
    return str(Standing(rank, counts(track, run.budget)[0], possible))


def _possible(run: Run, ranges: Mapping[float | None, RankRanges]) -> RankRange | None:
    """Return which ranks a run that has one could have; None where scores don't rank."""
    return ranges[run.budget].of(run.results.anls_low, run.results.anls_high) if ranges else None


def rank_at_the_time(*, run: Run, **_: object) -> str:
    """Return the same for what is read later."""
    words = rank_in_words(run)
    return words if run.submission.is_unpublished or not words else f"{words} at the time"
