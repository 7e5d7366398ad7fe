"""The columns of one view of a track, as the table that a page shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.utils.safestring import SafeString

from docvqa_site.boards import cells
from docvqa_site.boards.column import TERMS, Column, Order, Shown
from docvqa_site.boards.columns import EPSILON, JOINT_EPSILON, LEAKAGE, METHOD, columns_of
from docvqa_site.boards.ranking import Row
from docvqa_site.challenge.models import Track
from docvqa_site.ui.templatetags.bounds import epsilon

# On the page of a track, where the legend, the button that compares and the widest table are.
ON_TRACK_PAGE = {
    "method": replace(METHOD, cell=lambda row: cells.method(row.entry, has_pick=True)),
    "joint_epsilon": replace(JOINT_EPSILON, cell=lambda row: epsilon(row.entry.results.joint_epsilon)),
    "leakage": replace(LEAKAGE, link="#leakage"),
}

# Beside ε by other rules and accountants.
WITH_MORE = {"epsilon": replace(EPSILON, cell=lambda row: cells.deciding_epsilon(row.entry.results.epsilon))}
# Where joint ε has no column of its own.
WITHOUT_MORE = {"epsilon": replace(EPSILON, cell=lambda row: cells.epsilon_with_joint(row.entry.results))}


@dataclass(frozen=True)
class Table:
    """The columns of one view of a track, with their heads and rows as HTML.

    Attributes:
        left_out: The columns that repeat another one in every row, by the title of that one.
    """

    track: Track
    columns: Sequence[Column]
    order: Order | None = None
    left_out: Mapping[str, Sequence[Column]] = field(default_factory=dict)

    def without_repeats(self, rows: Sequence[Row]) -> "Table":
        """Return the table of these rows without those of its further columns that repeat an earlier one."""
        kept: list[Column] = []
        left_out: dict[str, list[Column]] = {}
        for column in self.columns:
            earlier = None
            if Shown.MORE in column.shown:
                earlier = next((other for other in kept if column.repeats(other, rows)), None)
            if earlier is None:
                kept.append(column)
            else:
                left_out.setdefault(earlier.title, []).append(column)
        return replace(self, columns=kept, left_out=left_out)

    @property
    def heads(self) -> list[SafeString]:
        """The heads of the columns."""
        return [column.head(self.order) for column in self.columns]

    @property
    def terms(self) -> list[SafeString]:
        """The columns that the glossary explains, as links to it."""
        return [column.term for column in self.columns if column.key in TERMS]

    def cells(self, row: Row) -> list[SafeString]:
        """Return the cells of a row."""
        first = self.track.kind.first
        return [
            column.element(row, "board-decides" if column.key == first else "") for column in self.columns
        ]

    def row(self, row: Row) -> SafeString:
        """Return a row of the table."""
        return SafeString(f"<tr>{''.join(self.cells(row))}</tr>\n")


def board_table(
    track: Track,
    *,
    more: bool = False,
    picks: bool = False,
    trust: bool = False,
    order: Order | None = None,
) -> Table:
    """Return the table of a board.

    Args:
        more: Whether it has the columns that most visitors don't need.
        picks: Whether the page is that of the track, on which rows are picked for a comparison.
        trust: Whether it has the level of verification, which is shown where the runs of a track differ in it.
        order: The order of its rows, if a visitor may choose another one.
    """
    where = Shown.BOARD | Shown.MORE if more else Shown.BOARD
    found = columns_of(track, where, () if trust else ("trust_level",))
    other = (ON_TRACK_PAGE if picks else {}) | (WITH_MORE if more else WITHOUT_MORE)
    shown = [other.get(column.key, column) for column in found]
    return Table(track, shown, order)
