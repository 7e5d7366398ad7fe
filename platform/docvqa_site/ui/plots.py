"""Plots: lines and marks between two axes, with a table of the same numbers. One template draws them as SVG.

Points are values on the axes. Lengths are in units of a view box, of which the origin is at the top left. Each plot is
drawn in two view boxes, of which a page displays the one whose units are about as large as pixels, so that texts and
the targets of links keep their sizes on a phone. What there are many of is put together here and not by the template,
which takes several times as long.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, zip_longest
from math import dist

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from docvqa_site.ui.axes import Axis, Tick
from docvqa_site.ui.labels import HEIGHT, Box, Label, placed, text_width
from docvqa_site.ui.markup import markup

# The least diameter of what can be pressed: 24 pixels (WCAG 2.2, 2.5.8) where a page draws a plot somewhat smaller than
# its view box, as on a phone or beside another one. Marks that are closer than it share one target.
TARGET = 28
TICK_GAP = 8
# How far the ends of an interval reach to either side: past its mark, which may cover all of a short one.
CAP = 8
# Above a line across and below it, the base line of its text.
ABOVE_LEVEL, BELOW_LEVEL = -5, 14
LEVEL_GAP = 4
CIRCLE = '<circle class="plot-mark plot-{}" cx="{}" cy="{}" r="{}"{}/>'
CROSS = '<path class="plot-mark plot-out" d="M{} {}m-5-5l10 10m-10 0l10-10"{}/>'
LINK = (
    '<a href="{}" aria-label="{}"><title>{}</title><circle class="plot-target" cx="{}" cy="{}" r="{}"/></a>'
)

Point = tuple[float, float]


@dataclass(frozen=True)
class Frame:
    """A view box, and the margins around its area of lines."""

    name: str
    width: int
    height: int
    left: int
    right: int
    top: int = 30
    bottom: int = 56


WIDE, NARROW = Frame("wide", 560, 330, left=58, right=36), Frame("narrow", 330, 300, left=54, right=14)


@dataclass(frozen=True)
class Line:
    """A line through points; `kind` is its style, `label` its text in the key.

    A stepped one keeps each value until the next one, and the last to the end of the axis. An interval goes up from one
    end to the other, with a short line across at both.
    """

    kind: str
    points: Sequence[Point]
    label: str = ""
    is_stepped: bool = False
    is_interval: bool = False


@dataclass(frozen=True)
class Mark:
    """A point of its own: with an address it is a link, which needs a label.

    Attributes:
        kind: Its style; one of the kind out is a cross.
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
class Target:
    """Marks that are so close to each other that they share one link: to the one, or to the table that lists them."""

    marks: Sequence[Mark]
    place: Point
    table: str

    @property
    def url(self) -> str:
        return self.marks[0].url if len(self.marks) == 1 else f"#{self.table}"

    @property
    def label(self) -> str:
        if len(self.marks) == 1:
            return self.marks[0].label
        return f"{len(self.marks)} marks: {'; '.join(mark.label for mark in self.marks)}"

    @property
    def names(self) -> list[str]:
        """What may be written beside it, by falling length: the names of its marks, or some and how many others."""
        named = [mark.name for mark in self.marks if mark.name]
        return [
            ", ".join(named[:shown]) + (f" +{others}" if (others := len(self.marks) - shown) else "")
            for shown in range(len(named), 0, -1)
        ]


@dataclass(frozen=True)
class Level:
    """A line across at a value of y, with its text; below it, the area may be shaded. The text may be a link."""

    value: float
    text: str
    is_shaded: bool = False
    url: str = ""


@dataclass(frozen=True)
class LevelLabel:
    """Where the text of a level is: its anchor, which is its start or its end, on its base line."""

    x: float
    y: float
    anchor: str
    width: float

    @property
    def box(self) -> Box:
        left = self.x if self.anchor == "start" else self.x - self.width
        return Box(left, self.y + 3 - HEIGHT, left + self.width, self.y + 3)


@dataclass(frozen=True)
class PlacedTick:
    """A tick below the area of lines: where it lies, and where the middle of its text is."""

    text: str
    at: float
    text_at: float


@dataclass(frozen=True)
class Plot:
    """How one quantity depends on another.

    Attributes:
        name: A name for its parts in the page.
        columns: The heads of the table of its numbers, which are `rows`.
        addresses: Where the rows of the table lead, as far as they lead anywhere.
        key: The kinds of marks with their meaning. Lines have theirs as labels.
    """

    name: str
    title: str
    x: Axis
    y: Axis
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    addresses: Sequence[str] = ()
    lines: Sequence[Line] = ()
    marks: Sequence[Mark] = ()
    level: Level | None = None
    key: Sequence[tuple[str, str]] = ()

    @property
    def line_key(self) -> dict[str, str]:
        """The kind of line that each label belongs to."""
        return {line.label: line.kind for line in self.lines if line.label}

    @property
    def has_links(self) -> bool:
        return any(mark.url for mark in self.marks) or bool(self.level and self.level.url)

    @property
    def table(self) -> SafeString:
        """The rows of the table of its numbers, of which the heads lead to what they are about."""
        rows = zip_longest(self.rows, self.addresses, fillvalue="")
        return SafeString("".join(_table_row(self.columns, cells, url) for cells, url in rows))

    @property
    def drawings(self) -> list["Drawing"]:
        return [Drawing(self, WIDE), Drawing(self, NARROW)]


@dataclass(frozen=True)
class Drawing:
    """A plot in one view box."""

    plot: Plot
    frame: Frame

    @property
    def right(self) -> int:
        return self.frame.width - self.frame.right

    @property
    def bottom(self) -> int:
        return self.frame.height - self.frame.bottom

    @property
    def inner_width(self) -> int:
        return self.right - self.frame.left

    @property
    def x_ticks(self) -> Iterator[PlacedTick]:
        """The ticks below whose texts have room beside the one before, and before the edge of what is around a plot."""
        free_from = 0.0
        for tick in self.plot.x.ticks:
            at, half = self._across(tick.at), text_width(tick.text) / 2
            text_at = min(at, self.frame.width + TICK_GAP - half)
            if text_at - half >= free_from:
                free_from = text_at + half + TICK_GAP
                yield PlacedTick(tick.text, at, text_at)

    @property
    def y_ticks(self) -> list[Tick]:
        """The ticks on the left, where they lie in the view box."""
        return [Tick(tick.text, self._up(tick.at)) for tick in self.plot.y.ticks]

    @cached_property
    def lines(self) -> list[tuple[Line, list[Point]]]:
        """Each line with the places of its corners."""
        return [(line, self._corners(line)) for line in self.plot.lines]

    @property
    def level_at(self) -> float:
        return self._up(self.plot.y.at(self.plot.level.value)) if self.plot.level else self.bottom

    @property
    def shade_height(self) -> float:
        return self.bottom - self.level_at

    @property
    def corners(self) -> Iterator[tuple[str, str]]:
        """The kind of each line and its corners, as SVG's polyline has them."""
        for line, corners in self.lines:
            yield line.kind, " ".join(f"{x},{y}" for x, y in corners)

    @property
    def level_label(self) -> "LevelLabel | None":
        """Where the text of the level is: of both sides and ends, the first where it covers least of the plot."""
        if self.plot.level is None:
            return None
        width = text_width(self.plot.level.text)
        sides = (BELOW_LEVEL, ABOVE_LEVEL) if self.plot.level.is_shaded else (ABOVE_LEVEL, BELOW_LEVEL)
        places = [
            LevelLabel(x, round(self.level_at + down, 1), anchor, width)
            for down in sides
            for x, anchor in ((self.right - LEVEL_GAP, "end"), (self.frame.left + LEVEL_GAP, "start"))
        ]
        return min(places, key=self._covered)

    @property
    def marks(self) -> SafeString:
        """The marks as SVG, the larger ones below those that they would hide."""
        ordered = sorted(self.circles, key=lambda circle: -circle[0].radius)
        return SafeString("".join(_shape(mark, place) for mark, place in ordered))

    @property
    def links(self) -> SafeString:
        """What of the marks can be pressed, as SVG; empty where marks lead nowhere."""
        if not any(mark.url for mark in self.plot.marks):
            return SafeString("")
        return SafeString(
            "".join(markup(LINK, *_link_parts(target)) for target in self.targets if target.url)
        )

    @cached_property
    def circles(self) -> list[tuple[Mark, Point]]:
        """Each mark, where it lies."""
        return [(mark, self._place(mark.point)) for mark in self.plot.marks]

    @cached_property
    def targets(self) -> list[Target]:
        """What of the marks can be pressed: no two targets overlap."""
        groups: list[tuple[Point, list[Mark]]] = []
        for mark, place in self.circles:
            near = next((marks for lead, marks in groups if dist(lead, place) < TARGET), None)
            if near is None:
                groups.append((place, [mark]))
            else:
                near.append(mark)
        return [Target(marks, place, f"{self.plot.name}-numbers") for place, marks in groups]

    @property
    def labels(self) -> list[Label]:
        """The names of targets that have room where they cover no mark and no other text."""
        taken = [Box.around(place, mark.radius) for mark, place in self.circles]
        taken += [Box.of(corners) for line, corners in self.lines if line.is_interval]
        if label := self.level_label:
            # A text across the line itself would be hard to read.
            taken += [label.box, Box(self.frame.left, self.level_at - 1, self.right, self.level_at + 1)]
        area = Box(self.frame.left, 0, self.frame.width, self.bottom)
        lines = [part for line, corners in self.lines if not line.is_interval for part in pairwise(corners)]
        return placed([(target.names, target.place) for target in self.targets], taken, area, lines)

    def _corners(self, line: Line) -> list[Point]:
        places = [self._place(point) for point in line.points]
        if line.is_interval:
            (x, start), (_, end) = places
            ends = ((start, (-CAP, CAP, 0)), (end, (0, -CAP, CAP)))
            return [(round(x + aside, 1), y) for y, sides in ends for aside in sides]
        return _stepped(places, self.right) if line.is_stepped else places

    def _covered(self, label: "LevelLabel") -> int:
        """Return how many marks and parts of lines a text would cover."""
        marks = sum(label.box.overlaps(Box.around(place, mark.radius)) for mark, place in self.circles)
        return marks + sum(
            label.box.is_crossed(start, end) for _, corners in self.lines for start, end in pairwise(corners)
        )

    def _place(self, point: Point) -> Point:
        return self._across(self.plot.x.at(point[0])), self._up(self.plot.y.at(point[1]))

    def _across(self, part: float) -> float:
        return round(self.frame.left + part * self.inner_width, 1)

    def _up(self, part: float) -> float:
        return round(self.bottom - part * (self.bottom - self.frame.top), 1)


def _table_row(columns: Sequence[str], cells: Sequence[str], url: str) -> str:
    head = markup('<a href="{}">{}</a>', url, cells[0]) if url else cells[0]
    labeled = zip(columns[1:], cells[1:], strict=True)
    others = SafeString(
        "".join(markup('<td class="num" data-label="{}">{}</td>', label, cell) for label, cell in labeled)
    )
    return markup('<tr><th scope="row">{}</th>{}</tr>', head, others)


def _shape(mark: Mark, place: Point) -> SafeString:
    of = markup(' data-of="{}"', mark.url) if mark.url else SafeString("")
    if mark.kind == "out":
        return markup(CROSS, *place, of)
    kind = f"{mark.kind} plot-hollow" if mark.is_hollow else mark.kind
    return markup(CIRCLE, kind, *place, mark.radius, of)


def _link_parts(target: Target) -> tuple[object, ...]:
    return target.url, target.label, target.label, *target.place, TARGET // 2


def draw(*plots: Plot | None) -> SafeString:
    return SafeString("".join(render_to_string("ui/plot.html", {"plot": plot}) for plot in plots if plot))


def _stepped(places: Sequence[Point], right: float) -> list[Point]:
    corners = [places[0]]
    for x, y in places[1:]:
        corners += [(x, corners[-1][1]), (x, y)]
    return [*corners, (right, corners[-1][1])]
