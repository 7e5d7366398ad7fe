"""The ranks of single runs, such as a team's own, from the order of their boards, which is kept for each version."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.ordering import kept_order
from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import Run, SubmissionState


@dataclass(frozen=True)
class Standing:
    """A rank, and how many runs have one on the same board."""

    rank: int
    count: int


def standings_of(runs: Iterable[Run]) -> dict[UUID, Standing]:
    """Return the standings of those of these runs that have a rank; their submissions should be loaded."""
    boards: dict[tuple[Track, float | None], list[UUID]] = defaultdict(list)
    for run in runs:
        if run.scored_at and run.submission.state == SubmissionState.SUBMITTED:
            boards[run.submission.track, run.budget].append(run.pk)
    versions = boards_versions([track.pk for track, _ in boards]) if boards else {}
    found: dict[UUID, Standing] = {}
    for (track, budget), keys in boards.items():
        order = kept_order(track, budget, versions[track.pk])
        ranks = {key: order.rank(key) for key in keys}
        found |= {key: Standing(rank, len(order)) for key, rank in ranks.items() if rank}
    return found
