"""Which ranks the scores of a board can't tell apart.

Each score has a 95 % interval over other draws of providers (`evaluator.scoring.groups`). Two rows count as different
where their intervals don't overlap, which is cautious: all runs answer the same questions, so rows whose intervals
overlap may still differ, which only each question's own scores could show. Those never leave the workers.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class RankRange:
    """The best and the worst rank that a row could have."""

    best: int
    worst: int

    def __str__(self) -> str:
        return str(self.best) if self.best == self.worst else f"{self.best}–{self.worst}"


class RankRanges:
    """The ranges of ranks on a board that is ranked by score.

    Args:
        intervals: Those of the scores with a rank; of some that overlap, and all that overlap those. A row without one
            could have any rank.
        above: How many of the others are better than all of these.
    """

    def __init__(self, intervals: Iterable[tuple[float | None, float | None]], above: int = 0) -> None:
        self._above = above
        known = [(0.0 if low is None else low, 1.0 if high is None else high) for low, high in intervals]
        self._lows = sorted(low for low, _ in known)
        self._highs = sorted(high for _, high in known)

    def of(self, low: float | None, high: float | None) -> RankRange:
        """Return the range of a row: better is who begins above it, worse is who ends below it."""
        low, high = 0.0 if low is None else low, 1.0 if high is None else high
        better = self._above + len(self._lows) - bisect_right(self._lows, high)
        worse = bisect_left(self._highs, low)
        return RankRange(1 + better, self._above + len(self._lows) - worse)
