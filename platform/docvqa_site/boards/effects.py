"""What a change of the rules does to boards, as a function of each board before and after it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from docvqa_site.boards.ranking import Row


@dataclass(frozen=True)
class Effect:
    """The rows as they are after the change: those that lost their rank, those that got one, and those that moved.

    `before` has the ranks before the change, by run.
    """

    lost: list[Row] = field(default_factory=list)
    gained: list[Row] = field(default_factory=list)
    moved: list[Row] = field(default_factory=list)
    before: Mapping[UUID, int | None] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        """All rows that change."""
        return [*self.lost, *self.gained, *self.moved]

    @property
    def moves(self) -> list[tuple[int | None, Row]]:
        """The rows that moved, each with its rank before."""
        return [(self.before[row.entry.run], row) for row in self.moved]


def effect(before: Sequence[Row], after: Sequence[Row]) -> Effect:
    """Return how `after` differs from `before`, a board of the same runs."""
    ranks = {row.entry.run: row.rank for row in before}
    changed = [row for row in after if row.rank != ranks[row.entry.run]]
    return Effect(
        lost=[row for row in changed if row.rank is None],
        gained=[row for row in changed if row.rank is not None and ranks[row.entry.run] is None],
        moved=[row for row in changed if row.rank is not None and ranks[row.entry.run] is not None],
        before=ranks,
    )


def together(effects: Iterable[Effect]) -> Effect:
    """Return the effects on several boards as one."""
    found = list(effects)
    return Effect(
        lost=[row for one in found for row in one.lost],
        gained=[row for one in found for row in one.gained],
        moved=[row for one in found for row in one.moved],
        before={run: rank for one in found for run, rank in one.before.items()},
    )
