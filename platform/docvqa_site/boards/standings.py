"""The ranks of single runs, such as a team's own, from the order of their boards, which is kept for each version."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.caching import cached
from docvqa_site.boards.ordering import ranked_run_ids
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
        order = _order(track, budget, versions[track.pk])
        ranks = {run: rank for rank, run in enumerate(order, start=1)}
        found |= {key: Standing(ranks[str(key)], len(order)) for key in keys if str(key) in ranks}
    return found


def _order(track: Track, budget: float | None, version: str) -> list[str]:
    def read() -> str:
        return " ".join(map(str, ranked_run_ids(track, budget)))

    return cached(version, f"order {track.pk} {budget}", read).split()
