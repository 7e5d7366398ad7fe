"""The ranks of all boards, to compare a site before and after an upgrade."""

from collections.abc import Iterator, Mapping

from docvqa_site.boards.ordering import ranked_places
from docvqa_site.boards.selection import EVERYTHING
from docvqa_site.challenge.models import Track
from docvqa_site.ui.budgets import at_budget, plain

# By board, such as `track-2, ε = 4`, and the run's ID.
Ranks = dict[str, dict[str, int]]


def all_ranks() -> Ranks:
    """Return the ranks of the runs of every board that have one."""
    return {
        f"{track.slug}{at_budget(budget, ', ε = {}', plain)}": {
            str(place.run): place.rank
            for place in ranked_places(track, budget, EVERYTHING, 0, None)
            if place.rank is not None
        }
        for track in Track.objects.order_by("slug")
        for budget in track.run_budgets()
    }


def changed_ranks(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> list[str]:
    """Return a line for each run whose rank isn't what it was."""
    return list(_changed(before, after))


def _changed(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> Iterator[str]:
    for board in sorted(before.keys() | after.keys()):
        old, new = before.get(board, {}), after.get(board, {})
        for run in sorted(old.keys() | new.keys(), key=lambda run: (old.get(run, 0) or new.get(run, 0), run)):
            if old.get(run) != new.get(run):
                yield f"{board}: run {run}: {old.get(run, 'no rank')} → {new.get(run, 'no rank')}"
