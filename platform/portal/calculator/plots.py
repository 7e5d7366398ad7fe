"""Where the parts of a plot lie: two logarithmic axes, lines, a level, marks. The template draws them as SVG.

Lengths are in units of the view box, of which the origin is at the top left.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

WIDTH, HEIGHT = 460, 300
# The margins around the area of the lines.
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 26, 46
# The steps within a decade at which an axis starts, ends and has its ticks.
STEPS = (1, 2, 5)
# The most ticks of an axis; a longer axis has ticks at decades, or at every second decade and so on.
MOST_TICKS = 8

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """A line through points of positive values; `kind` is its style, `label` its text in the key."""

    kind: str
    label: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Tick:
    """A value on an axis, as text, and where it lies."""

    text: str
    at: float


class Axis:
    """A logarithmic axis that covers some positive values and lies from `start` to `end`."""

    def __init__(self, values: Iterable[float], start: float, end: float) -> None:
        covered = list(values)
        numbers = round_numbers(min(covered), max(covered))
        self._low, self._high = math.log(numbers[0]), math.log(numbers[-1])
        self._start, self._end = start, end
        self.ticks = [Tick(f"{number:g}", self.at(number)) for number in numbers]

    def at(self, value: float) -> float:
        """Return the position of a value."""
        part = (math.log(value) - self._low) / (self._high - self._low)
        return round(self._start + part * (self._end - self._start), 1)


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
    def x(self) -> Axis:
        return Axis((x for line in self.lines for x, _ in line.points), self.left, self.right)

    @cached_property
    def y(self) -> Axis:
        values = [y for line in self.lines for _, y in line.points]
        return Axis(values if self.level is None else [self.level, *values], self.bottom, self.top)

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


def round_numbers(low: float, high: float) -> list[float]:
    """Return from two to `MOST_TICKS` rising round numbers: the first is at most `low`, the last at least `high`."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1
    fine = [step * 10.0**power for power in range(first, last + 1) for step in STEPS]
    numbers = _covering(fine, low, high)
    apart = 1
    while len(numbers) > MOST_TICKS:
        decades = [10.0**power for power in range(first, last + 1 + apart, apart)]
        numbers, apart = _covering(decades, low, high), apart + 1
    return numbers


def _covering(numbers: Sequence[float], low: float, high: float) -> list[float]:
    """Return the shortest part of rising `numbers` that covers the range from `low` to `high`, at least two."""
    start = max((index for index, number in enumerate(numbers) if number <= low), default=0)
    end = next((index for index, number in enumerate(numbers) if number >= high), len(numbers) - 1)
    return list(numbers[start : max(end, start + 1) + 1])
