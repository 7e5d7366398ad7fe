"""Submissions per day, as bars that the template draws as SVG."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Count
from django.db.models.functions import TruncDate

from portal.submissions.models import Submission

DAYS = 30
STEP, HEIGHT, TOP, BOTTOM = 20, 148, 18, 30


@dataclass(frozen=True)
class Bar:
    """A day with its number of submissions, and where its bar lies in the view box.

    Of bars that are narrow on the screen, only those with `is_most` have their number beside them.
    """

    day: date
    count: int
    x: int
    y: float
    height: float
    is_most: bool = False


@dataclass(frozen=True)
class Bars:
    """The bars of consecutive days."""

    bars: list[Bar]
    most: int
    width: int
    height: int = HEIGHT
    top: int = TOP
    base: int = HEIGHT - BOTTOM

    @property
    def total(self) -> int:
        """The number of submissions on all days."""
        return sum(bar.count for bar in self.bars)


def daily_submissions(today: date) -> dict[date, int]:
    """Return how many submissions were made on each of the last days that has any, in UTC."""
    first = datetime.combine(today - timedelta(days=DAYS - 1), time.min, UTC)
    made = Submission.objects.filter(submitted_at__gte=first).order_by()
    # Times alone, so that the index answers it.
    days = made.values_list(TruncDate("submitted_at", tzinfo=UTC)).annotate(made=Count("*"))
    return {day: count for day, count in days if day is not None}


def bars(counts: Mapping[date, int], today: date) -> Bars:
    """Return one bar for each of the last days, today's the last one."""
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    most = max((counts.get(day, 0) for day in days), default=0)
    room = HEIGHT - BOTTOM - TOP
    heights = [round(room * counts.get(day, 0) / max(most, 1), 1) for day in days]
    drawn = [
        Bar(
            day,
            count := counts.get(day, 0),
            place * STEP + 2,
            round(TOP + room - height, 1),
            height,
            is_most=count == most,
        )
        for place, (day, height) in enumerate(zip(days, heights, strict=True))
    ]
    return Bars(drawn, most, DAYS * STEP)
