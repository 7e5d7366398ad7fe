"""The number of submissions that a team and its members have left, over a window that moves with the clock."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

WINDOW = timedelta(hours=24)
# So many rejected submissions of a team and its members give their slots back within the window, and so many may be
# canceled: each has cost the site work, so their number must have an end.
RETURNED_SLOTS = 5
# The practice submissions of a team and its members in 24 hours, which count for themselves.
PRACTICE_SLOTS = 3
# What an organizer gives a team at once.
MOST_EXTRA = 10


@dataclass(frozen=True)
class Extra:
    """Submissions beyond the quota: so many of those that follow within `WINDOW` don't count."""

    granted_at: datetime
    count: int

    def covers(self, time: datetime) -> bool:
        return self.granted_at <= time < self.granted_at + WINDOW


@dataclass(frozen=True)
class Quota:
    """`used` of `limit` slots; `next_slot` is when one becomes free, None when one is free now."""

    limit: int
    used: int
    next_slot: datetime | None

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)


def quota(times: Iterable[datetime], now: datetime, limit: int, extras: Sequence[Extra] = ()) -> Quota:
    """Return the quota against which submissions at `times` count (refunded ones left out).

    With `extras`, the times must go back `2 * WINDOW`, so that it is known which of them were used up before.
    """
    left = [extra.count for extra in extras]
    used, counted = 0, []
    for time in sorted(times):
        used += time > now - WINDOW
        place = next((at for at, one in enumerate(extras) if left[at] and one.covers(time)), None)
        if place is None:
            counted.append(time)
        else:
            left[place] -= 1
    recent = [time for time in counted if time > now - WINDOW]
    unused = sum(count for count, extra in zip(left, extras, strict=True) if extra.covers(now))
    return Quota(
        limit=limit + used - len(recent) + unused,
        used=used,
        next_slot=None if unused else next_slot(recent, now, limit),
    )


def next_slot(times: Iterable[datetime], now: datetime, limit: int) -> datetime | None:
    """Return when the next submission is possible; None when it is possible now. A slot is used for `WINDOW`."""
    recent = sorted((time for time in times if time > now - WINDOW), reverse=True)
    return None if len(recent) < limit else recent[limit - 1] + WINDOW


def returns_slot(returned: Iterable[datetime], now: datetime) -> bool:
    """Return whether one more submission gives its slot back, after those that did at the times `returned`."""
    return sum(time > now - WINDOW for time in returned) < RETURNED_SLOTS
