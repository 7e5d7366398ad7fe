"""The ranks of single runs, such as a team's own, from the order of their boards, which is kept for each version."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.ordering import kept_orders
from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import Run, SubmissionState


@dataclass(frozen=True)
class Standing:
    """A rank, and how many runs have one on the same board."""

    rank: int
    count: int


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
        ranks = ((run, orders[run.budget].rank(run.pk)) for run in own)
        found |= {run.pk: Standing(rank, len(orders[run.budget])) for run, rank in ranks if rank}
    return found
