"""A column of results: its value in data, and how a head and a cell show it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from html import escape
from typing import Any

from django.utils.safestring import SafeString

from docvqa_site.boards.ranking import Row
from docvqa_site.boards.selection import Sort
from docvqa_site.boards.uncertainty import Ends
from docvqa_site.challenge.models import Track
from docvqa_site.docs.glossary import linked
from docvqa_site.ui.templatetags.ui import MISSING

# What the heads of columns lead to in the glossary, by the keys of the columns.
TERMS = {
    "accountant": "accountant",
    "accuracy": "accuracy",
    "anls": "ANLS",
    "bytes_sent": "bytes in the log",
    "bytes_total": "communication",
    "counting": "counted",
    "epsilon": "ε",
    "epsilon_product": "amplification rule",
    "epsilon_rdp": "accountant",
    "epsilon_two_stage": "amplification rule",
    "first_download_bytes": "first download",
    "joint_epsilon": "joint ε",
    "leakage": "leakage",
    "rank": "rank",
    "status": "proof accepted",
    "trust_level": "trust level",
}
SORTING = '<a class="board-sort" href="{}"><span class="visually-hidden">Sort by </span>{}</a>'

SORTED = '<a class="board-sorted" href="{}">{}<span class="visually-hidden"> (reverse the order)</span></a>'


class Shown(Flag):
    """Where a column is shown; CSV and JSON have it for every track, the others where it applies."""

    BOARD = auto()
    MORE = auto()
    METHOD = auto()
    COMPARISON = auto()
    TEXT = auto()
    DATA = auto()


def _always(_: Track) -> bool:
    return True


@dataclass(frozen=True)
class Order:
    """The order of a board's rows, and the addresses at which they have another one.

    Attributes:
        address: Returns that of an order and its direction.
    """

    current: Sort
    is_reversed: bool
    address: Callable[[Sort, bool], str]

    def head(self, sort: Sort, title: str) -> tuple[str, str]:
        """Return what the head of a column contains that has this order, and its state as an attribute."""
        if sort is self.current:
            direction = sort.direction(is_reversed=self.is_reversed)
            return SORTED.format(
                escape(self.address(sort, not self.is_reversed)), title
            ), f' aria-sort="{direction}"'
        return SORTING.format(escape(self.address(sort, False)), title), ""


@dataclass(frozen=True)
class Column:
    """A column: its value in data, and what people read of it.

    Attributes:
        key: Its name in data, the same in CSV and JSON.
        title: Its head.
        meaning: What the value is, for the documentation and the schema.
        value: A row's value in data: a number, a text or None.
        shown: Where it is shown; by default in data alone.
        type: The value's type in the schema.
        is_result: Whether the value is a field of `RunResults`, which JSON has as one object.
        text: A row's value in plain text; `MISSING` where it is empty.
        cell: The content of a row's cell in HTML; by default the text.
        applies: Whether a track has it, where it isn't data.
        css: The classes of the cell.
        has_label: Whether the cell names its column on phones, where rows are cards.
        heads_row: Whether the cell is the head of its row.
        link: Where the head leads to; by default to its term in the glossary, if it is one.
        sort: The order of a board by this column; None if there is none.
        difference: What a comparison says of two rows, with the paired interval of their scores' difference if there is
            one; empty where there is nothing to say.
        quantity: What its number measures, if columns of the same may repeat each other; empty for any other column.
    """

    key: str
    title: str
    meaning: str
    value: Callable[[Row], Any]
    shown: Shown = Shown.DATA
    type: Any = str
    is_result: bool = False
    text: Callable[[Row], str] | None = None
    cell: Callable[[Row], str] | None = None
    applies: Callable[[Track], bool] = _always
    css: str = ""
    has_label: bool = True
    heads_row: bool = False
    link: str = ""
    sort: Sort | None = None
    difference: Callable[[Row, Row, Ends | None], str] = lambda *_: ""
    quantity: str = ""

    def head(self, order: "Order | None" = None) -> SafeString:
        """Return the head as HTML; on a board, in this order, it leads to the order by this column, if there is one."""
        name, title, state = escape(self.title), str(self.term), ""
        if order is not None and self.sort is not None:
            title, state = order.head(self.sort, name)
        elif self.link:
            title = f'<a class="term" href="{self.link}">{name}</a>'
        # Named apart from its content, since a screen reader repeats the name with every cell.
        return SafeString(f'<th scope="col" class="{self.css}" aria-label="{name}"{state}>{title}</th>')

    def repeats(self, other: "Column", rows: Sequence[Row]) -> bool:
        """Whether it has the numbers of another column in all of these rows, and has any."""
        if not self.quantity or self.quantity != other.quantity:
            return False
        values = [self.value(row) for row in rows]
        return any(value is not None for value in values) and values == [other.value(row) for row in rows]

    @property
    def term(self) -> SafeString:
        """The title, which leads to the glossary where that explains it."""
        return linked(TERMS[self.key], self.title) if self.key in TERMS else SafeString(escape(self.title))

    def plain(self, row: Row) -> str:
        """Return a row's value in plain text."""
        if self.text is not None:
            return self.text(row) or MISSING
        value = self.value(row)
        return MISSING if value in (None, "") else str(value)

    def content(self, row: Row) -> SafeString:
        """Return what a row's cell contains."""
        found = self.plain(row) if self.cell is None else self.cell(row)
        return found if isinstance(found, SafeString) else SafeString(escape(found))

    def element(self, row: Row, extra: str = "") -> SafeString:
        """Return a row's cell, with `extra` classes."""
        label = f' data-label="{escape(self.title)}"' if self.has_label else ""
        css = f"{self.css} {extra}".strip()
        if self.heads_row:
            return SafeString(f'<th scope="row" class="{css}"{label}>{self.content(row)}</th>')
        return SafeString(f'<td class="{css}"{label}>{self.content(row)}</td>')
