"""Plots: lines and marks between two axes, with a table of the same numbers. One template draws them as SVG.

Points are values on the axes. Lengths are in units of the view box, of which the origin is at the top left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from portal.ui.axes import Axis, Tick

WIDTH, HEIGHT = 560, 330
# The margins around the area of the lines.
LEFT, RIGHT, TOP, BOTTOM = 58, 36, 30, 56

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """A line through points; `kind` is its style, `label` its text in the key.

    A stepped one keeps each value until the next one, and the last to the end of the axis.
    """

    kind: str
    points: Sequence[Point]
    label: str = ""
    is_stepped: bool = False


@dataclass(frozen=True)
class Mark:
    """A point of its own: with an address it is a link, which needs a label.

    Attributes:
        name: What is written beside it.
        is_hollow: Whether its result is still under review.
    """

    point: Point
    kind: str
    label: str = ""
    url: str = ""
    name: str = ""
    is_hollow: bool = False

    @property
    def radius(self) -> int:
        return 4 if self.kind == "other" else 6


@dataclass(frozen=True)
class Level:
    """A line across at a value of y, with its text; below it, the area may be shaded."""

    value: float
    text: str
    is_shaded: bool = False


@dataclass(frozen=True)
class Plot:
    """How one quantity depends on another.

    Attributes:
        name: A name for its parts in the page.
        columns: The heads of the table of its numbers, which are `rows`.
        key: The kinds of marks with their meaning. Lines have theirs as labels.
    """

    name: str
    title: str
    x: Axis
    y: Axis
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    lines: Sequence[Line] = ()
    marks: Sequence[Mark] = ()
    level: Level | None = None
    key: Sequence[tuple[str, str]] = ()

    width, height = WIDTH, HEIGHT
    left, right, top, bottom = LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM
    inner_width = WIDTH - RIGHT - LEFT

    @property
    def line_key(self) -> dict[str, str]:
        """The kind of line that each label belongs to."""
        return {line.label: line.kind for line in self.lines if line.label}

    @property
    def has_links(self) -> bool:
        return any(mark.url for mark in self.marks)

    @property
    def x_ticks(self) -> list[Tick]:
        """The ticks below, where they lie in the view box."""
        return [Tick(tick.text, _across(tick.at)) for tick in self.x.ticks]

    @property
    def y_ticks(self) -> list[Tick]:
        """The ticks on the left, where they lie in the view box."""
        return [Tick(tick.text, _up(tick.at)) for tick in self.y.ticks]

    @property
    def level_at(self) -> float:
        return _up(self.y.at(self.level.value)) if self.level else self.bottom

    @property
    def shade_height(self) -> float:
        return self.bottom - self.level_at

    @property
    def corners(self) -> Iterator[tuple[str, str]]:
        """The kind of each line and its corners, as SVG's polyline has them."""
        for line in self.lines:
            places = [self._place(point) for point in line.points]
            shown = _stepped(places) if line.is_stepped else places
            yield line.kind, " ".join(f"{x},{y}" for x, y in shown)

    @property
    def circles(self) -> Iterator[tuple[Mark, Point, bool]]:
        """Each mark, where it lies, and whether a name has no room on its right."""
        for mark in self.marks:
            place = self._place(mark.point)
            yield mark, place, place[0] > WIDTH / 2

    def _place(self, point: Point) -> Point:
        return _across(self.x.at(point[0])), _up(self.y.at(point[1]))


def draw(*plots: Plot | None) -> SafeString:
    return SafeString("".join(render_to_string("ui/plot.html", {"plot": plot}) for plot in plots if plot))


def _across(part: float) -> float:
    return round(LEFT + part * (WIDTH - RIGHT - LEFT), 1)


def _up(part: float) -> float:
    return round(HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP), 1)


def _stepped(places: Sequence[Point]) -> list[Point]:
    corners = [places[0]]
    for x, y in places[1:]:
        corners += [(x, corners[-1][1]), (x, y)]
    return [*corners, (WIDTH - RIGHT, corners[-1][1])]
