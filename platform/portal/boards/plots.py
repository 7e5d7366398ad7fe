"""The plots of the leaderboards: where marks and lines lie, with the table of the same numbers. Templates draw them.

Scores are plotted as they are shown, cut to four decimals: a position must not tell more than the table.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from evaluator.scoring.metrics import cut
from portal.reviews.verdict import ResultStatus
from portal.ui.axes import LinearAxis, LogAxis, Point, Tick
from portal.ui.budgets import budget_text
from portal.ui.templatetags.ui import readable_bytes

WIDTH, HEIGHT = 560, 330
# The margins around the area of the lines.
LEFT, RIGHT, TOP, BOTTOM = 58, 36, 30, 56
# A mark's name is written beside it where it has room to the right.
NAMED = 6
NAME_CHARACTERS = 22
TIME_TICKS = 4
# Between the place of runs that sent nothing and the beginning of a logarithmic axis: room for both ticks.
ZERO_GAP = 64


@dataclass(frozen=True)
class PlottedRun:
    """What a plot shows of a run. `kind` is the style of its mark: front, other or baseline.

    Attributes:
        value: The result by which its board is ranked.
    """

    method: str
    url: str
    at: datetime
    bytes_total: int
    anls: float
    value: float
    kind: str = "other"

    @property
    def label(self) -> str:
        """The run in words."""
        return f"{self.method}: {readable_bytes(self.bytes_total)}, ANLS {cut(self.anls)}"


@dataclass(frozen=True)
class Mark:
    """A run in a plot: a link with a label, and its name where it is written beside the mark.

    Attributes:
        is_hollow: Whether its result is still under review.
    """

    at: Point
    kind: str
    label: str
    url: str
    name: str = ""
    is_hollow: bool = False

    @property
    def is_right(self) -> bool:
        """Whether the name has no room on the right of the mark."""
        return self.at[0] > WIDTH / 2


@dataclass(frozen=True)
class Chart:
    """A plot as its template draws it.

    Attributes:
        lines: The kind of each line with its corners, as SVG's polyline has them.
        level: Where a line across lies, with its text; the area below it is shaded if `is_shaded`.
        key: The kinds of lines and marks with their meaning.
        table: The plotted numbers, under `columns`.
    """

    name: str
    title: str
    x_title: str
    y_title: str
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    lines: Sequence[tuple[str, str]]
    marks: Sequence[Mark]
    columns: Sequence[str]
    table: Sequence[Sequence[str]]
    level: tuple[float, str] | None = None
    is_shaded: bool = False
    key: Sequence[tuple[str, str]] = field(default=())

    width, height = WIDTH, HEIGHT
    left, right, top, bottom = LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM

    inner_width = WIDTH - RIGHT - LEFT

    @property
    def shade_height(self) -> float:
        """The height of the area below the level."""
        return 0 if self.level is None else self.bottom - self.level[0]


class BytesAxis:
    """A logarithmic axis of bytes. It has no zero: what sent nothing lies at its start, apart from the other values."""

    def __init__(
        self, sizes: Sequence[int], start: float, end: float, gap: float = ZERO_GAP, *, least_gap: float = 0
    ) -> None:
        zero = [Tick("0 bytes", start)] if 0 in sizes else []
        begin = start + math.copysign(gap, end - start) if zero else start
        self._start = start
        sent = [size for size in sizes if size] or [1]
        self._sent = LogAxis(sent, begin, end, _bytes_text, least_gap=least_gap)
        self.ticks = [*zero, *self._sent.ticks]

    def at(self, size: float) -> float:
        """Return the position of a number of bytes."""
        return self._sent.at(size) if size else self._start


def bytes_chart(runs: Sequence[PlottedRun], threshold: tuple[float, str] | None) -> Chart:
    """Return the plot of bytes against ANLS.

    Args:
        runs: Those of the kind front are its stepped front, fewest bytes first.
        threshold: That of the ANLS with its text; None where there is none.
    """
    x = BytesAxis([run.bytes_total for run in runs], LEFT, WIDTH - RIGHT, least_gap=ZERO_GAP)
    levels = [] if threshold is None else [(threshold[0], f"threshold {threshold[1]}")]
    y = LinearAxis([*(level for level, _ in levels), *(run.anls for run in runs)], HEIGHT - BOTTOM, TOP)
    front = [(x.at(run.bytes_total), y.at(run.anls)) for run in runs if run.kind == "front"]
    marks = [
        Mark((x.at(run.bytes_total), y.at(run.anls)), run.kind, run.label, run.url, _name(run, number))
        for number, run in enumerate(runs)
    ]
    return Chart(
        name="bytes",
        title="Communication against ANLS",
        x_title="communication in bytes, logarithmic",
        y_title="ANLS",
        x_ticks=x.ticks,
        y_ticks=y.ticks,
        lines=[("front", _stepped(front, WIDTH - RIGHT))] if front else [],
        marks=marks,
        level=next(((y.at(level), words) for level, words in levels), None),
        is_shaded=bool(levels),
        key=[("front", "no run has fewer bytes and at least this ANLS"), ("other", "other runs")],
        columns=["Method", "Communication", "ANLS"],
        table=[(run.method, readable_bytes(run.bytes_total), cut(run.anls)) for run in runs],
    )


@dataclass(frozen=True)
class PlottedMethod:
    """What the plot of budgets shows of a method; of `scores`, one at each budget, those without a rank are None."""

    name: str
    url: str
    scores: Sequence[float | None]
    is_verified: bool

    @property
    def status(self) -> str:
        """Whether reviewers have accepted its proof, in words."""
        return (ResultStatus.VERIFIED if self.is_verified else ResultStatus.PROVISIONAL).label


def budgets_chart(
    methods: Sequence[PlottedMethod],
    best: Sequence[float | None],
    budgets: Sequence[float],
    without_privacy: float | None,
) -> Chart:
    """Return the plot of ANLS against ε.

    Args:
        methods: The methods in the order of the table.
        best: The best score at each budget.
        without_privacy: The best score where ε plays no part.
    """
    known = [score for method in methods for score in method.scores if score is not None]
    y = LinearAxis([*known, *([] if without_privacy is None else [without_privacy])], HEIGHT - BOTTOM, TOP)
    room = (WIDTH - RIGHT - LEFT) / len(budgets)
    x = [round(LEFT + room * (number + 0.5), 1) for number in range(len(budgets))]

    def corners(scores: Sequence[float | None]) -> list[Point]:
        return [(at, y.at(score)) for at, score in zip(x, scores, strict=True) if score is not None]

    of_methods = [corners(method.scores) for method in methods]
    lines = [("thin", line(places)) for places in of_methods if len(places) > 1]
    marks = [
        Mark(
            (at, y.at(score)),
            "front" if score == top else "other",
            f"{method.name}: ANLS {cut(score)} at {budget_text(budget)}, {method.status}",
            method.url,
            is_hollow=not method.is_verified,
        )
        for method in methods
        for at, score, top, budget in zip(x, method.scores, best, budgets, strict=True)
        if score is not None
    ]
    level = (
        None
        if without_privacy is None
        else (y.at(without_privacy), f"without privacy {cut(without_privacy)}")
    )
    return Chart(
        name="budgets",
        title="ANLS against ε",
        x_title="privacy budget",
        y_title="ANLS",
        x_ticks=[Tick(budget_text(budget), at) for budget, at in zip(budgets, x, strict=True)],
        y_ticks=y.ticks,
        lines=[*lines, ("front", line(corners(best)))],
        marks=marks,
        level=level,
        key=[
            ("front", "best at each ε"),
            ("thin", "one method"),
            ("verified", ResultStatus.VERIFIED.label),
            ("hollow", ResultStatus.PROVISIONAL.label),
        ],
        columns=["Method", *(f"ANLS at {budget_text(budget)}" for budget in budgets), "Status"],
        table=[
            (
                method.name,
                *("–" if score is None else cut(score) for score in method.scores),
                method.status,
            )
            for method in methods
        ],
    )


def progress_chart(
    name: str, title: str, runs: Sequence[PlottedRun], y_title: str, *, in_bytes: bool
) -> Chart:
    """Return the plot of the best result so far over time; `runs` are those that were better than all earlier ones."""
    times = [run.at.timestamp() for run in runs]
    low, high = min(times), max(max(times), min(times) + 24 * 3600)
    x_of = _between(low, high, LEFT + 12, WIDTH - RIGHT - 12)
    ticks = [low + (high - low) * number / (TIME_TICKS - 1) for number in range(TIME_TICKS)]
    zone = runs[0].at.tzinfo
    days = [Tick(f"{datetime.fromtimestamp(at, zone):%d %b %Y}".lstrip("0"), x_of(at)) for at in ticks]
    y: BytesAxis | LinearAxis = (
        BytesAxis([round(run.value) for run in runs], HEIGHT - BOTTOM, TOP)
        if in_bytes
        else LinearAxis([run.value for run in runs], HEIGHT - BOTTOM, TOP)
    )
    places = [(x_of(run.at.timestamp()), y.at(run.value)) for run in runs]
    return Chart(
        name=name,
        title=title,
        x_title="submitted",
        y_title=y_title,
        x_ticks=days,
        y_ticks=y.ticks,
        lines=[("front", _stepped(places, WIDTH - RIGHT))],
        marks=[
            Mark(at, "front", run.label, run.url, _short(run.method))
            for at, run in zip(places, runs, strict=True)
        ],
        columns=["Submitted", "Method", "Communication", "ANLS"],
        table=[
            (f"{run.at.day} {run.at:%b %Y}", run.method, readable_bytes(run.bytes_total), cut(run.anls))
            for run in runs
        ],
    )


def plotted(rows: Iterable[Sequence[Any]], addresses: Callable[[UUID], str], kind: str) -> list[PlottedRun]:
    """Return the runs that `portal.boards.ordering` found: `POINT`, and the result by which the board is ranked."""
    return [
        PlottedRun(title, addresses(key), at, sent, float(cut(anls)), value, _kind(kind, is_baseline))
        for key, title, is_baseline, at, sent, anls, value, *_ in rows
        if sent is not None and anls is not None
    ]


def _kind(kind: str, is_baseline: bool) -> str:
    return "baseline" if is_baseline and kind == "other" else kind


def _bytes_text(size: float) -> str:
    """Return a round number of bytes: without decimals, which are zeros."""
    number, unit = readable_bytes(round(size)).split()
    return f"{float(number):g} {unit}"


def _name(run: PlottedRun, number: int) -> str:
    return _short(run.method) if run.kind == "front" and number < NAMED else ""


def _between(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    return lambda value: round(start + (value - low) / (high - low) * (end - start), 1)


def line(places: Sequence[Point]) -> str:
    """Return the corners of a line through these places, as SVG's polyline has them."""
    return " ".join(f"{x},{y}" for x, y in places)


def _stepped(places: Sequence[Point], end: float) -> str:
    """Return the corners of a line that keeps each value until the next one, and the last to the end."""
    corners = [places[0]]
    for x, y in places[1:]:
        corners += [(x, corners[-1][1]), (x, y)]
    return line([*corners, (end, corners[-1][1])])


def _short(method: str) -> str:
    """Return the name of a method as it is written beside a mark, which shows where it was cut."""
    return method if len(method) <= NAME_CHARACTERS else method[: NAME_CHARACTERS - 1].rstrip() + "…"
