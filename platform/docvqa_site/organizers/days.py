"""Submissions per day, as bars that the template draws as SVG."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Count
from django.db.models.functions import TruncDate

from docvqa_site.accounts.models import User
from docvqa_site.challenge.selectors import others_tracks
from docvqa_site.submissions.models import Submission

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
    bars: list[Bar]
    most: int

    width, height, base = DAYS * STEP, HEIGHT, HEIGHT - BOTTOM

    @property
    def total(self) -> int:
        return sum(bar.count for bar in self.bars)


def daily_submissions(today: date, organizer: User) -> dict[date, int]:
    """Return how many submissions were made on each of the last days that has any (UTC), in the organizer's tracks."""
    first = datetime.combine(today - timedelta(days=DAYS - 1), time.min, UTC)
    made = Submission.objects.filter(submitted_at__gte=first).order_by()
    if organizer.organizes_single_tracks:
        made = made.exclude(track__in=others_tracks(organizer))
    # Times alone, so that the index answers it.
    days = made.values_list(TruncDate("submitted_at", tzinfo=UTC)).annotate(made=Count("*"))
    return {day: count for day, count in days if day is not None}


def bars(counts: Mapping[date, int], today: date) -> Bars:
    """Return one bar for each of the last days, today's the last one."""
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    most = max(counts.get(day, 0) for day in days)
    drawn = []
    for place, day in enumerate(days):
        count = counts.get(day, 0)
        height = round((Bars.base - TOP) * count / max(most, 1), 1)
        drawn.append(Bar(day, count, place * STEP + 2, round(Bars.base - height, 1), height, count == most))
    return Bars(drawn, most)
