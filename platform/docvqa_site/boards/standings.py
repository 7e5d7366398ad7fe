"""The ranks of single runs, such as a team's own, from the order of their boards, which is kept for each version."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.ordering import counts, kept_orders, possible_ranks, ranks_of, would_rank_in_words
from docvqa_site.boards.uncertainty import RankRange
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
        possible = possible_ranks(track, ranks)
        found |= {
            run.pk: Standing(rank, len(orders[run.budget]), possible.get(run.pk))
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
    return str(Standing(rank, counts(track, run.budget)[0], possible_ranks(track, [run]).get(run.pk)))


def rank_at_the_time(*, run: Run, **_: object) -> str:
    """Return the same for what is read later."""
    words = rank_in_words(run)
    return words if run.submission.is_unpublished or not words else f"{words} at the time"
