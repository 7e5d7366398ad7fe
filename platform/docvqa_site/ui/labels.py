"""Texts beside the marks and levels of a plot, placed so that none covers another or a mark.

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

    @classmethod
    def of(cls, points: Sequence[tuple[float, float]]) -> "Box":
        """Return the smallest one with all of these points."""
        across, down = [x for x, _ in points], [y for _, y in points]
        return cls(min(across), min(down), max(across), max(down))

    def overlaps(self, other: "Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def is_crossed(self, start: tuple[float, float], end: tuple[float, float]) -> bool:
        """Whether a straight line between two points passes through it."""
        first, last = 0.0, 1.0
        sides = ((self.left, self.right), (self.top, self.bottom))
        for (low, high), at, to in zip(sides, start, end, strict=True):
            if at == to:
                if not low < at < high:
                    return False
                continue
            enters, leaves = sorted(((low - at) / (to - at), (high - at) / (to - at)))
            first, last = max(first, enters), min(last, leaves)
        return first < last

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


def placed(
    wanted: Iterable[tuple[Sequence[str], tuple[float, float]]], taken: Sequence[Box], area: Box
) -> list[Label]:
    """Return the texts, each beside its point where it has room, the first ones first; without room it is left out.

    Args:
        wanted: A text and what may take its place where there is no room for it, each with the point that it names.
        taken: What no text may cover.
        area: What no text may leave.
    """
    occupied, found = list(taken), []
    for texts, point in wanted:
        free = (
            (text, box)
            for text in texts
            for box in _places(point, text_width(text), area)
            if area.contains(box) and not any(box.overlaps(other) for other in occupied)
        )
        if place := next(free, None):
            text, box = place
            occupied.append(box)
            found.append(Label(text, round(box.left, 1), round(box.bottom - 3, 1)))
    return found


def _places(point: tuple[float, float], width: float, area: Box) -> Iterator[Box]:
    """Yield where a text may be beside its point, the best place first."""
    x, y = point
    rows = (y - APART - HEIGHT / 2, y + APART - HEIGHT / 2, y - HEIGHT / 2)
    for left in (x + APART, x - APART - width):
        for top in rows:
            yield Box(left, top, left + width, top + HEIGHT)
    # Above and below it: in the middle, or as far aside as the edge of the area demands.
    left = max(area.left, min(x - width / 2, area.right - width))
    for top in (y - APART - HEIGHT, y + APART):
        yield Box(left, top, left + width, top + HEIGHT)
