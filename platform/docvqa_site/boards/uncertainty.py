"""Which ranks the scores of a board can't tell apart.

Each score has a 95% interval over other draws of providers (`evaluator.scoring.groups`). Two rows count as different
where their intervals don't overlap, which is cautious: all runs answer the same questions, so rows whose intervals
overlap may still differ, as the paired interval of two runs may show (`evaluator.scoring.paired_draws`). Ranges of
ranks don't use it: the intervals suffice for any two rows of a board, from nothing more than is stored with each score.
"""

from array import array
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

# The lower and the upper end of an interval.
Ends = tuple[float, float]

# Two intervals of 95% hold together with at least this probability, however they depend on each other.
JOINT_LEVEL = 0.9
# Of the ends of intervals, as they are shown.
DECIMALS = 3


def difference(first: tuple[float | None, float | None], second: tuple[float | None, float | None]) -> Ends:
    """Return an interval of the difference of two scores, from theirs: `JOINT_LEVEL` of it, and no tighter one.

    It is that of two scores of which nothing is known together. All runs answer the same questions, so their true
    difference varies less, as `evaluator.scoring.paired_draws` finds of two runs whose workers drew the same providers.
    """
    low, high = _ends(first)
    other_low, other_high = _ends(second)
    return round(low - other_high, DECIMALS), round(high - other_low, DECIMALS)


@dataclass(frozen=True)
class RankRange:
    """The best and the worst rank that a row could have."""

    best: int
    worst: int

    def __str__(self) -> str:
        return str(self.best) if self.best == self.worst else f"{self.best}–{self.worst}"

    @property
    def in_words(self) -> str:
        """The ranks, such as "could be 1–2"; empty where it is one."""
        return f"could be {self}" if self.best < self.worst else ""


@dataclass(frozen=True)
class RankRanges:
    """The ranges of ranks on a board that is ranked by score, from the sorted ends of the intervals of its scores.

    A row without an interval could have any rank.
    """

    lows: "array[float]"
    highs: "array[float]"

    @classmethod
    def among(cls, intervals: Iterable[tuple[float | None, float | None]]) -> Self:
        """Return the ranges that these intervals allow: those of all scores with a rank."""
        known = [_ends(interval) for interval in intervals]
        return cls(array("d", sorted(low for low, _ in known)), array("d", sorted(high for _, high in known)))

    def of(self, low: float | None, high: float | None) -> RankRange:
        """Return the range of a row: better is who begins above it, worse is who ends below it."""
        low, high = _ends((low, high))
        better = len(self.lows) - bisect_right(self.lows, high)
        worse = bisect_left(self.highs, low)
        return RankRange(1 + better, len(self.lows) - worse)

    def as_text(self) -> str:
        """Return what `from_text` reads, in a fifth of the time that numbers in JSON take."""
        return " ".join(b64encode(ends.tobytes()).decode() for ends in (self.lows, self.highs))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the ranges that `as_text` has written on this machine."""
        lows, highs = (array("d", b64decode(ends)) for ends in text.split(" "))
        return cls(lows, highs)


def _ends(interval: tuple[float | None, float | None]) -> Ends:
    """Return the ends of an interval of scores; of one that is unknown, those of all scores."""
    low, high = interval
    return 0.0 if low is None else low, 1.0 if high is None else high
