"""The number of submissions that a team and its members have left, over a window that moves with the clock."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

WINDOW = timedelta(hours=24)
# So many rejected submissions of a team and its members give their slots back within the window, and so many may be
# canceled: each has cost the site work, so their number must have an end.
RETURNED_SLOTS = 5
# The practice submissions of a team and its members in 24 hours, which count for themselves.
PRACTICE_SLOTS = 3


@dataclass(frozen=True)
class Quota:
    """`used` of `limit` slots; `next_slot` is when one becomes free, None when one is free now."""

    limit: int
    used: int
    next_slot: datetime | None

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)


def quota(times: Iterable[datetime], now: datetime, limit: int) -> Quota:
    """Return the quota against which submissions at `times` count (refunded ones left out)."""
    recent = [time for time in times if time > now - WINDOW]
    return Quota(limit=limit, used=len(recent), next_slot=next_slot(recent, now, limit))


def next_slot(times: Iterable[datetime], now: datetime, limit: int) -> datetime | None:
    """Return when the next submission is possible; None when it is possible now. A slot is used for `WINDOW`."""
    recent = sorted((time for time in times if time > now - WINDOW), reverse=True)
    return None if len(recent) < limit else recent[limit - 1] + WINDOW


def returns_slot(returned: Iterable[datetime], now: datetime) -> bool:
    """Return whether one more submission gives its slot back, after those that did at the times `returned`."""
    return sum(time > now - WINDOW for time in returned) < RETURNED_SLOTS
