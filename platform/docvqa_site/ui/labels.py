"""Texts beside the marks and levels of a plot, placed so that none covers another or a mark.

Lengths are in units of a view box, in which a text is 13 high.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

# Of a letter on average, as in the widest of the common sans-serif fonts.
LETTER_WIDTH = 8.0
HEIGHT = 14.0
# Between a mark's center and its text: past the ends of its interval, with the border of the letters.
APART = 11.0


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
    """A text in its box, which may be wider: where in it the text lies, its anchor says."""

    text: str
    box: Box
    anchor: str

    @property
    def x(self) -> float:
        """Where the text starts or ends, or where its middle is."""
        middle = (self.box.left + self.box.right) / 2
        return round({"start": self.box.left, "end": self.box.right}.get(self.anchor, middle), 1)

    @property
    def y(self) -> float:
        """The base line."""
        return round(self.box.bottom - 3, 1)


def placed(
    wanted: Iterable[tuple[Sequence[str], tuple[float, float]]],
    taken: Sequence[Box],
    area: Box,
    lines: Sequence[tuple[tuple[float, float], tuple[float, float]]] = (),
) -> list[Label]:
    """Return the texts, each beside its point where it has room, the first ones first; without room it is left out.

    Args:
        wanted: A text and what may take its place where there is no room for it, each with the point that it names.
        taken: What no text may cover.
        area: What no text may leave.
        lines: Straight lines that a text crosses only where it has no other room.
    """
    occupied, found = list(taken), []
    for texts, point in wanted:
        for text in texts:
            free = [
                Label(text, box, anchor)
                for box, anchor in _places(point, text_width(text), area)
                if area.contains(box) and not any(box.overlaps(other) for other in occupied)
            ]
            if free:
                label = min(free, key=lambda one: sum(one.box.is_crossed(*line) for line in lines))
                occupied.append(label.box)
                found.append(label)
                break
    return found


def _places(point: tuple[float, float], width: float, area: Box) -> Iterator[tuple[Box, str]]:
    """Yield where a text may be beside its point, and which end of it is there, the best place first."""
    x, y = point
    rows = (y - APART - HEIGHT / 2, y + APART - HEIGHT / 2, y - HEIGHT / 2)
    for left, anchor in ((x + APART, "start"), (x - APART - width, "end")):
        for top in rows:
            yield Box(left, top, left + width, top + HEIGHT), anchor
    # Above and below it: in the middle, or as far aside as the edge of the area demands.
    left = max(area.left, min(x - width / 2, area.right - width))
    for top in (y - APART - HEIGHT, y + APART):
        yield Box(left, top, left + width, top + HEIGHT), "middle"
