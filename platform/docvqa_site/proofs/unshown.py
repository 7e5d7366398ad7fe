"""What of a proof its page doesn't show: counted at the top of the page, and listed with places and reasons."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

MAX_LISTED = 50
MAX_SOURCE_CHARACTERS = 200


class Kind(StrEnum):
    FORMULA = "formula"
    OUTPUT = "output"
    PICTURE = "picture"


@dataclass(frozen=True)
class Unshown:
    """A part of a proof that its page doesn't show, or not whole.

    Attributes:
        cell: The number of its cell, from 1; 0 in a Markdown file.
        source: How it was written, or its name.
        reason: Why it isn't shown.
    """

    kind: Kind
    source: str
    reason: str
    cell: int = 0


def cell_anchor(number: int) -> str:
    """Return the id of a cell on the page."""
    return f"notebook-cell-{number}"


def summary(unshown: Sequence[Unshown]) -> str:
    """Return how many parts of each kind aren't shown, such as "2 formulas, 1 picture"."""
    counts = Counter(part.kind for part in unshown)
    return ", ".join(f"{counts[kind]} {kind}{'s' * (counts[kind] > 1)}" for kind in Kind if counts[kind])


def as_notice(unshown: Sequence[Unshown]) -> SafeString:
    """Return what the page says at its top; empty if it shows everything."""
    if not unshown:
        return SafeString("")
    rest = len(unshown) - MAX_LISTED
    return format_html(
        '<details class="notice notice-info proof-unshown"><summary>Not displayed as in Jupyter: {}</summary>'
        "<ul>{}{}</ul></details>",
        summary(unshown),
        format_html_join("", "<li>{}</li>", ((_item(part),) for part in unshown[:MAX_LISTED])),
        format_html("<li>and {} more</li>", rest) if rest > 0 else "",
    )


def _item(part: Unshown) -> SafeString:
    place = format_html('<a href="#{}">Cell {}</a>: ', cell_anchor(part.cell), part.cell) if part.cell else ""
    return format_html(
        "{}{} <code>{}</code>: {}.", place, part.kind, part.source[:MAX_SOURCE_CHARACTERS], part.reason
    )
