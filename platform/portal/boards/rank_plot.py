"""The plot of a run's rank over time."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta

from django.template.loader import render_to_string
from django.urls import reverse

from portal.boards.history import histories
from portal.boards.models import RankRecord
from portal.boards.plot_marks import drawn_marks, table_rows
from portal.boards.plots import BOTTOM, HEIGHT, LEFT, RIGHT, TIME_TICKS, TOP, WIDTH, Chart, Mark
from portal.submissions.models import Run
from portal.ui.axes import LinearAxis, Point, Tick
from portal.ui.budgets import at_budget, board_query

XOf = Callable[[date], float]
# Of a run's changes the last ones.
MOST_CHANGES = 60


def rank_plots(runs: Sequence[Run], today: date) -> str:
    """Return the plots of those runs whose rank has changed since it was first recorded; empty where none has."""
    recorded = histories([run.pk for run in runs])
    charts = [
        rank_chart(run, recorded[run.pk][-MOST_CHANGES:], today) for run in runs if len(recorded[run.pk]) > 1
    ]
    return "".join(
        render_to_string(
            "boards/plot.html", {"plot": chart, "marks": drawn_marks(chart), "rows": table_rows(chart)}
        )
        for chart in charts
        if chart
    )


def rank_chart(run: Run, records: Sequence[RankRecord], today: date) -> Chart | None:
    """Return the plot of a run's ranks, rank 1 at the top; None where it had none. The line ends today."""
    ranks = [record.rank for record in records if record.rank]
    if not ranks:
        return None
    y = LinearAxis([1, *ranks], TOP, HEIGHT - BOTTOM, least_step=1)
    first, last = records[0].day, max(today, records[0].day + timedelta(days=TIME_TICKS - 1))
    days = (last - first).days

    def x(day: date) -> float:
        return round(LEFT + 12 + (day - first).days / days * (WIDTH - RIGHT - LEFT - 24), 1)

    place = at_budget(run.budget)
    board = reverse("leaderboard:track", args=[run.submission.track.slug])
    query = board_query(run.budget)
    return Chart(
        name=f"rank-{run.pk}",
        title=f"Rank{place}",
        x_title="day",
        y_title="rank",
        x_ticks=[
            Tick(_day(day), x(day))
            for day in (first + timedelta(days=days * n // (TIME_TICKS - 1)) for n in range(TIME_TICKS))
        ],
        # An axis in round steps may begin at 0, which is no rank.
        y_ticks=[tick for tick in y.ticks if tick.text != "0"],
        lines=[("front", _line(part)) for part in _steps(records, x, y, last)],
        marks=[
            Mark(
                (x(record.day), y.at(record.rank)),
                "front",
                f"Rank {record.rank}{place} on {_day(record.day)}",
                board + query,
            )
            for record in records
            if record.rank
        ],
        columns=["Since", "Rank"],
        table=[(_day(record.day), str(record.rank or "no rank")) for record in records],
    )


def _steps(records: Sequence[RankRecord], x: XOf, y: LinearAxis, last: date) -> list[list[Point]]:
    """Return the corners of each time with a rank: a level from every change to the next one."""
    ends = [*(record.day for record in records[1:]), last]
    parts: list[list[Point]] = []
    had_rank = False
    for record, end in zip(records, ends, strict=True):
        if record.rank:
            level: list[Point] = [(x(day), y.at(record.rank)) for day in (record.day, end)]
            if had_rank:
                parts[-1] += level
            else:
                parts.append(level)
        had_rank = record.rank is not None
    return parts


def _line(corners: Sequence[Point]) -> str:
    return " ".join(f"{x},{y}" for x, y in corners)


def _day(day: date) -> str:
    return f"{day.day} {day:%b %Y}"
