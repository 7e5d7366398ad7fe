"""The plots of the leaderboards and of methods.

Scores are plotted as they are shown, cut to the decimals that the test set supports: a position must not tell more than
the table.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.urls import reverse

from docvqa_site.boards.models import RankRecord
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.rankings import Result, threshold_text
from docvqa_site.reviews.verdict import ResultStatus
from docvqa_site.submissions.models import Run
from docvqa_site.ui.axes import Axis, categories, linear, logarithmic, stretch
from docvqa_site.ui.budgets import at_budget, board_query, budget_text, plain
from docvqa_site.ui.plots import Level, Line, Mark, Plot, Point
from docvqa_site.ui.rounding import INTERVAL_DECIMALS, interval_text, outward_high, outward_low
from docvqa_site.ui.templatetags.ui import readable_bytes
from evaluator.messages.results import MOST_DECIMALS
from evaluator.scoring.metrics import cut

# A mark's name is written beside it where it has room. Of the methods with a line of their own, the first are named.
NAMED = 6
# Of the marks in the plot of bytes: more names than these would hide the lines.
MOST_NAMES = 12
NAME_CHARACTERS = 22
TIME_TICKS = 4
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 24 * 3600
# Between ticks of an axis of times. None is more than twice the one before, so that the first with few enough ticks has
# two of them at least.
TIME_STEPS_S = (
    *(minutes * MINUTE_S for minutes in (1, 2, 3, 5, 10, 15, 30)),
    *(hours * HOUR_S for hours in (1, 2, 3, 6, 12)),
    *(days * DAY_S for days in (1, 2, 4)),
    *(7 * DAY_S * 2**doubled for doubled in range(12)),
)
# Between the ticks of an axis of bytes, as a part of the axis.
BYTES_GAP = 0.14
OUT = ("out", "rejected or disqualified")
FRONT = "Pareto front of ranked runs"
# What the marks of the plot of bytes say by their shape, by color, and in words.
KINDS = {
    "front": "on the Pareto front",
    "front-baseline": "baseline, on the front",
    "other": "not on the front",
    "baseline": "baseline, not on the front",
    OUT[0]: OUT[1],
}
ON_FRONT = ("front", "front-baseline")
# Which marks have their names written first, where not all have room; those that aren't here have none.
NAMED_FIRST = ("front", "front-baseline", "baseline", "other")
# What a mark of each kind becomes if its run is a baseline.
OF_BASELINES = {"front": "front-baseline", "other": "baseline"}
REVIEWED = [("verified", ResultStatus.VERIFIED.label), ("hollow", ResultStatus.PROVISIONAL.label)]


@dataclass(frozen=True)
class PlottedRun:
    """What a plot shows of a run. `kind` is the style of its mark, one of `KINDS`.

    Attributes:
        value: The result by which its board is ranked.
        withheld: Why it lost its rank, such as "disqualified"; empty for all others.
        is_verified: Whether reviewers have accepted its proof; nobody has where it needs none.
        interval: The 95% interval of its ANLS as it is shown.
    """

    method: str
    url: str
    at: datetime
    bytes_total: int
    anls: float
    value: float
    kind: str = "other"
    decimals: int = MOST_DECIMALS
    withheld: str = ""
    is_verified: bool = False
    interval: tuple[float, float] | None = None

    @property
    def score(self) -> str:
        """Its ANLS as it is shown."""
        return cut(self.anls, self.decimals)

    @property
    def score_with_interval(self) -> str:
        return _with_interval(self.score, self.interval, self.decimals)

    @property
    def name(self) -> str:
        """Its method, with why it lost its rank."""
        return f"{self.method} ({self.withheld})" if self.withheld else self.method

    @property
    def label(self) -> str:
        """The run in words."""
        return f"{self.name}: {readable_bytes(self.bytes_total)}, ANLS {self.score}"


def plotted(rows: Iterable[Sequence[Any]], addresses: Callable[[UUID], str], kind: str) -> list[PlottedRun]:
    """Return the runs that `docvqa_site.boards.points` found.

    A row is `POINT`, the result by which the board is ranked and, where that has been asked, whether it is verified.
    """
    return [
        PlottedRun(
            title,
            addresses(key),
            at,
            sent,
            float(cut(anls, decimals or MOST_DECIMALS)),
            value,
            OF_BASELINES.get(kind, kind) if is_baseline else kind,
            decimals or MOST_DECIMALS,
            is_verified=any(verified),
            interval=shown_interval(low, high, decimals),
        )
        for key, title, is_baseline, at, sent, anls, decimals, low, high, value, *verified in rows
        if sent is not None and anls is not None
    ]


def shown_interval(low: float | None, high: float | None, decimals: int | None) -> tuple[float, float] | None:
    """Return an interval of scores as it is shown, rounded outward; None where an end is missing."""
    if low is None or high is None:
        return None
    places = min(decimals or MOST_DECIMALS, INTERVAL_DECIMALS)
    return outward_low(low, places), outward_high(high, places)


def withheld_marks(
    rows: Iterable[Sequence[Any]], addresses: Callable[[UUID], str]
) -> list[tuple[float | None, PlottedRun]]:
    """Return the runs that `docvqa_site.boards.points.withheld_points` found, each after its budget."""
    return [
        (budget, replace(run, withheld=why))
        for budget, why, *row in rows
        for run in plotted([row], addresses, "out")
    ]


def bytes_plot(runs: Sequence[PlottedRun], threshold: float | None) -> Plot:
    """Return the plot of bytes against ANLS; `runs` of the kind front are its stepped front, fewest bytes first."""
    named = _named(runs)
    levels = [] if threshold is None else [threshold]
    front = [(run.bytes_total, run.anls) for run in runs if run.kind in ON_FRONT]
    return Plot(
        name="bytes",
        title="ANLS vs. communication",
        x=logarithmic(
            _log_title("communication", runs),
            [run.bytes_total for run in runs],
            _bytes_text,
            least_gap=BYTES_GAP,
        ),
        y=linear("ANLS", [*levels, *(run.anls for run in runs), *_ends(run.interval for run in runs)]),
        lines=[
            *_whiskers((run.bytes_total, run.interval) for run in runs),
            *([Line("front", front, FRONT, is_stepped=True)] if front else []),
        ],
        marks=[
            Mark(
                (run.bytes_total, run.anls),
                run.kind,
                run.label if run.withheld else f"{run.label}, {KINDS[run.kind]}",
                run.url,
                _short(run.method) if number in named else "",
            )
            for number, run in enumerate(runs)
        ],
        level=None
        if threshold is None
        else Level(threshold, f"threshold {threshold_text(threshold)}", is_shaded=True),
        key=[(kind, words) for kind, words in KINDS.items() if kind in {run.kind for run in runs}],
        columns=["Method", "Communication", "ANLS", "Shown as"],
        rows=[
            (run.name, readable_bytes(run.bytes_total), run.score_with_interval, KINDS[run.kind])
            for run in runs
        ],
        addresses=[run.url for run in runs],
    )


@dataclass(frozen=True)
class PlottedMethod:
    """What the plot of budgets shows of a method: at each budget its score with the interval, None without a rank."""

    name: str
    url: str
    scores: Sequence[float | None]
    intervals: Sequence[tuple[float, float] | None]
    is_verified: bool
    is_baseline: bool = False
    decimals: int = MOST_DECIMALS

    @property
    def known_as(self) -> str:
        """Its name, which says whether it is a baseline."""
        return f"{self.name} (baseline)" if self.is_baseline else self.name

    @property
    def short_name(self) -> str:
        """The same, or where that is too long to be written beside a mark its name alone, shortened."""
        return self.known_as if len(self.known_as) <= NAME_CHARACTERS else _short(self.name)

    @property
    def status(self) -> str:
        """Whether reviewers have accepted its proof, in words."""
        return _status(self.is_verified)


def budgets_plot(
    methods: Sequence[PlottedMethod],
    best: Sequence[str],
    budgets: Sequence[float],
    without_privacy: PlottedRun | None,
    withheld: Sequence[tuple[float | None, PlottedRun]] = (),
) -> Plot:
    """Return the plot of ANLS vs. ε.

    Args:
        methods: The methods in the order of the table.
        best: The address of the method with the first rank at each budget; empty where none has one.
        without_privacy: The run with the best score where ε plays no part.
        withheld: Runs that have lost their ranks, each after its budget.
    """
    out = [(budgets.index(budget), run) for budget, run in withheld if budget in budgets]
    level = None
    if without_privacy is not None:
        text = f"without privacy {without_privacy.score} ({_short(without_privacy.method)})"
        level = Level(without_privacy.anls, text, url=without_privacy.url)
    curves = [_known(method.scores) for method in methods]
    scores_of = {method.url: method.scores for method in methods}
    best_scores = [scores_of[url][number] if url else None for number, url in enumerate(best)]
    intervals = [
        *(pair for method in methods for pair in enumerate(method.intervals)),
        *((number, run.interval) for number, run in out),
    ]
    scores = [
        *(score for curve in curves for _, score in curve),
        *(run.anls for _, run in out),
        *_ends(interval for _, interval in intervals),
    ]
    return Plot(
        name="budgets",
        title="ANLS vs. ε",
        x=categories("privacy budget", [budget_text(budget) for budget in budgets]),
        y=linear("ANLS", scores if level is None else [level.value, *scores]),
        lines=[
            *_whiskers(intervals),
            *(Line("thin", curve, "one line per method") for curve in curves if len(curve) > 1),
            Line("front", _known(best_scores), "best at each ε"),
        ],
        marks=[
            Mark(
                (number, score),
                "front" if method.url == best[number] else "other",
                f"{method.known_as}: ANLS {cut(score, method.decimals)}{at_budget(budgets[number])}, {method.status}",
                method.url,
                # At the end of its line.
                method.short_name if place < NAMED and number == curve[-1][0] else "",
                is_hollow=not method.is_verified,
            )
            for place, (method, curve) in enumerate(zip(methods, curves, strict=True))
            for number, score in curve
        ]
        + [
            Mark(
                (number, run.anls),
                run.kind,
                f"{run.name}: ANLS {run.score}{at_budget(budgets[number])}",
                run.url,
            )
            for number, run in out
        ],
        level=level,
        key=[
            *REVIEWED,
            *([OUT] if out else []),
        ],
        addresses=[*(method.url for method in methods), *(run.url for _, run in out)],
        columns=["Method", *(f"ANLS{at_budget(budget)}" for budget in budgets), "Status"],
        rows=[
            (
                method.known_as,
                *(
                    "–"
                    if score is None
                    else _with_interval(cut(score, method.decimals), interval, method.decimals)
                    for score, interval in zip(method.scores, method.intervals, strict=True)
                ),
                method.status,
            )
            for method in methods
        ]
        + [
            (
                run.method,
                *(run.score_with_interval if at == number else "–" for at in range(len(budgets))),
                run.withheld,
            )
            for number, run in out
        ],
    )


def _values(words: Result, runs: Sequence[PlottedRun]) -> tuple[list[float], Axis, list[str]]:
    """Return what ranks each run, as a board shows it, the axis for it, and its text if it isn't the score."""
    if words.in_bytes:
        values = [run.value for run in runs]
        axis = logarithmic(_log_title(words.title, runs), values, _bytes_text)
        return values, axis, [readable_bytes(run.bytes_total) for run in runs]
    values = [float(cut(run.value, run.decimals)) for run in runs]
    step = 10.0 ** -max(run.decimals for run in runs)
    # With room around the values, so that none is on the edge.
    covered = [max(min(values) - step, 0), min(max(values) + step, 1)]
    return values, linear(words.title, covered, least_step=step), []


def progress_plot(track: Track, budget: float | None, runs: Sequence[PlottedRun]) -> Plot:
    """Return the plot of the best result so far over time; `runs` are those that were better than all earlier ones."""
    times = [run.at.timestamp() for run in runs]
    reviewed = track.kind.is_reviewed
    status = [_status(run.is_verified) if reviewed else "" for run in runs]
    labels = [
        ", ".join(filter(None, [run.label, status_])) for run, status_ in zip(runs, status, strict=True)
    ]
    values, axis, sizes = _values(track.kind.words, runs)
    table = {
        "Submitted": [_day(run.at) for run in runs],
        "Method": [run.method for run in runs],
        "Communication": sizes,
        "ANLS": [run.score for run in runs],
        "Status": status if reviewed else [],
    }
    columns = [title for title, cells in table.items() if cells]
    return Plot(
        name="progress" + at_budget(budget, "-{}", plain).replace(".", "-"),
        title=f"{track.kind.best} so far{at_budget(budget)}",
        x=time_axis("submitted", times),
        y=axis,
        lines=[Line("front", list(zip(times, values, strict=True)), is_stepped=True)],
        marks=[
            Mark(
                (at, value),
                "front",
                label,
                run.url,
                _short(run.method),
                is_hollow=reviewed and not run.is_verified,
            )
            for at, value, run, label in zip(times, values, runs, labels, strict=True)
        ],
        key=REVIEWED if reviewed else (),
        columns=columns,
        rows=list(zip(*(table[title] for title in columns), strict=True)),
        addresses=[run.url for run in runs],
    )


def time_axis(title: str, times: Sequence[float]) -> Axis:
    """Return an axis from the first to the last of some times, with ticks at whole minutes, hours or days of UTC."""
    low, high = min(times), max(times)
    within = ((step, _multiples(low, high, step)) for step in TIME_STEPS_S)
    step, ticks = next((step, ticks) for step, ticks in within if len(ticks) <= TIME_TICKS)
    if len(ticks) < 2:
        # These times are within two minutes: the axis is longer.
        start = low - low % step
        ticks = _multiples(start, max(high + step - 1, start + step), step)
    is_long = step >= DAY_S
    return stretch(
        title if is_long else f"{title} (UTC)",
        ticks,
        lambda at: (_day if is_long else _minute)(datetime.fromtimestamp(at, UTC)),
        (min(low, ticks[0]), max(high, ticks[-1])),
    )


def _multiples(low: float, high: float, step: int) -> range:
    """Return the multiples of a step between two numbers."""
    return range(math.ceil(low / step) * step, math.floor(high) + 1, step)


def rank_plot(run: Run, records: Sequence[RankRecord], today: date) -> Plot | None:
    """Return the plot of a run's ranks, rank 1 at the top; None where it had none. The line ends today."""
    ranked = [(record.day, record.rank) for record in records if record.rank]
    if not ranked:
        return None
    first, last = records[0].day, max(today, records[0].day + timedelta(days=TIME_TICKS - 1))
    days = (last - first).days
    track, place = run.submission.track, at_budget(run.budget)
    board = reverse("leaderboard:track", args=[track.slug]) + board_query(run.budget)
    url = board if run.budget in track.run_budgets() else ""
    y = linear("rank", [1, *(rank for _, rank in ranked)], least_step=1).reversed()
    return Plot(
        name=f"rank-{run.pk}",
        title=f"Rank{place}",
        x=stretch(
            "day",
            [first.toordinal() + days * number // (TIME_TICKS - 1) for number in range(TIME_TICKS)],
            lambda at: _day(date.fromordinal(int(at))),
        ),
        # An axis in round steps may begin at 0, which is no rank.
        y=replace(y, ticks=[tick for tick in y.ticks if tick.text != "0"]),
        lines=[Line("front", part) for part in _times_with_rank(records, last)],
        marks=[
            Mark((day.toordinal(), rank), "front", f"Rank {rank}{place} on {_day(day)}", url)
            for day, rank in ranked
        ],
        columns=["Since", "Rank"],
        rows=[(_day(record.day), str(record.rank or "no rank")) for record in records],
    )


def _times_with_rank(records: Sequence[RankRecord], last: date) -> list[list[Point]]:
    """Return the corners of each time with a rank: a level from every change to the next one."""
    ends = [*(record.day for record in records[1:]), last]
    parts: list[list[Point]] = [[]]
    for record, end in zip(records, ends, strict=True):
        if record.rank:
            parts[-1] += [(day.toordinal(), record.rank) for day in (record.day, end)]
        else:
            parts.append([])
    return [part for part in parts if part]


def _whiskers(intervals: Iterable[tuple[float, tuple[float, float] | None]]) -> list[Line]:
    """Return a line from end to end of each interval, each after its place across."""
    known = [(x, interval) for x, interval in intervals if interval]
    return [
        Line("whisker", [(x, low), (x, high)], "95% interval", is_interval=True) for x, (low, high) in known
    ]


def _ends(intervals: Iterable[tuple[float, float] | None]) -> list[float]:
    return [end for interval in intervals if interval for end in interval]


def _with_interval(score: str, interval: tuple[float, float] | None, decimals: int) -> str:
    return f"{score} ({interval_text(*interval, decimals)})" if interval else score


def _status(is_verified: bool) -> str:
    """Return whether reviewers have accepted a proof, in words."""
    return (ResultStatus.VERIFIED if is_verified else ResultStatus.PROVISIONAL).label


def _known(values: Sequence[float | None]) -> list[tuple[int, float]]:
    """Return the values that there are, each after its number."""
    return [(number, value) for number, value in enumerate(values) if value is not None]


def _log_title(quantity: str, runs: Sequence[PlottedRun]) -> str:
    """Return the title of a logarithmic axis of bytes, on which a run that sent nothing lies apart."""
    return f"{quantity} (log scale{'' if all(run.bytes_total for run in runs) else ', 0 set apart'})"


def _bytes_text(size: float) -> str:
    """Return a round number of bytes: without decimals, which are zeros."""
    if not size:
        return "0 bytes"
    number, unit = readable_bytes(round(size)).split()
    return f"{float(number):g} {unit}"


def _named(runs: Sequence[PlottedRun]) -> set[int]:
    """Return the numbers of the runs whose names are written beside their marks."""
    numbers = [number for number, run in enumerate(runs) if run.kind in NAMED_FIRST]
    return set(sorted(numbers, key=lambda number: NAMED_FIRST.index(runs[number].kind))[:MOST_NAMES])


def _short(method: str) -> str:
    """Return the name of a method as it is written beside a mark, which shows where it was cut."""
    return method if len(method) <= NAME_CHARACTERS else method[: NAME_CHARACTERS - 1].rstrip() + "…"


def _minute(at: datetime) -> str:
    return f"{at:%b} {at.day}, {at:%H:%M}"


def _day(day: date) -> str:
    return f"{day:%b} {day.day}, {day:%Y}"
