"""Texts beside the marks of a plot, placed so that none covers another or a mark.

Lengths are in units of a view box, in which a text is 13 high.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

# Of a letter on average, as in the widest of the common sans-serif fonts.
LETTER_WIDTH = 8.0
HEIGHT = 14.0
# Between a mark's center and its text.
APART = 9.0


def text_width(text: str) -> float:
    return LETTER_WIDTH * len(text)


@dataclass(frozen=True)
class Box:
    """A rectangle, from its left upper corner to its right lower one."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, point: tuple[float, float], radius: float) -> "Box":
        x, y = point
        return cls(x - radius, y - radius, x + radius, y + radius)

    def overlaps(self, other: "Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def contains(self, other: "Box") -> bool:
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )


@dataclass(frozen=True)
class Label:
    """A text that begins at `x`, on the base line at `y`."""

    text: str
    x: float
    y: float


def placed(wanted: Iterable[tuple[str, tuple[float, float]]], taken: Sequence[Box], area: Box) -> list[Label]:
    """Return the texts, each beside its point where it has room, the first ones first; without room it is left out.

    Args:
        wanted: Texts, each with the point that it names.
        taken: What no text may cover.
        area: What no text may leave.
    """
    occupied, found = list(taken), []
    for text, point in wanted:
        free = (
            box
            for box in _places(point, text_width(text))
            if area.contains(box) and not any(box.overlaps(other) for other in occupied)
        )
        if box := next(free, None):
            occupied.append(box)
            found.append(Label(text, round(box.left, 1), round(box.bottom - 3, 1)))
    return found


def _places(point: tuple[float, float], width: float) -> Iterator[Box]:
    """Yield where a text may be beside its point, the best place first."""
    x, y = point
    rows = (y - APART - HEIGHT / 2, y + APART - HEIGHT / 2, y - HEIGHT / 2)
    for left in (x + APART, x - APART - width):
        for top in rows:
            yield Box(left, top, left + width, top + HEIGHT)
    for top in (y - APART - HEIGHT, y + APART):
        yield Box(x - width / 2, top, x + width / 2, top + HEIGHT)
