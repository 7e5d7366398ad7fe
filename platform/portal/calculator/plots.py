"""Where the parts of a plot lie: lines, a level and marks between two axes. The template draws them as SVG.

Lengths are in units of the view box, of which the origin is at the top left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from portal.ui.axes import LogAxis, Point

WIDTH, HEIGHT = 460, 300
# The margins around the area of the lines.
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 26, 46


@dataclass(frozen=True)
class Line:
    """A line through points of positive values; `kind` is its style, `label` its text in the key."""

    kind: str
    label: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Plot:
    """Lines that show how one quantity depends on another.

    Attributes:
        name: A name for its parts in the page.
        axis: The title of the x axis.
        lines: At least one, each with at least two points.
        quantity: The title of the y axis.
        level: A value of y to draw across.
        here: The value of x that is marked on each line.
    """

    name: str
    axis: str
    lines: Sequence[Line]
    quantity: str = "ε"
    level: float | None = None
    here: float | None = None

    width, height = WIDTH, HEIGHT
    left, right, top, bottom = LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM

    @cached_property
    def x(self) -> LogAxis:
        return LogAxis((x for line in self.lines for x, _ in line.points), self.left, self.right)

    @cached_property
    def y(self) -> LogAxis:
        values = [y for line in self.lines for _, y in line.points]
        return LogAxis(values if self.level is None else [self.level, *values], self.bottom, self.top)

    @property
    def paths(self) -> list[tuple[str, str]]:
        """The kind of each line and its corners, as SVG's polyline has them."""
        return [
            (line.kind, " ".join(f"{self.x.at(x)},{self.y.at(y)}" for x, y in line.points))
            for line in self.lines
        ]

    @property
    def marks(self) -> list[tuple[str, Point]]:
        """The kind of each line, and where in the view box its point at `here` lies."""
        return [
            (line.kind, (self.x.at(x), self.y.at(y)))
            for line in self.lines
            for x, y in line.points
            if x == self.here
        ]

    @property
    def level_at(self) -> float | None:
        return None if self.level is None else self.y.at(self.level)

    @property
    def table(self) -> list[tuple[float, list[float | None]]]:
        """Each value of x with every line's value there."""
        columns = [dict(line.points) for line in self.lines]
        values = sorted({x for line in self.lines for x, _ in line.points})
        return [(x, [column.get(x) for column in columns]) for x in values]
