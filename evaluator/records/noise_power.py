"""What the tests of the opened blocks would have detected, by the public numbers of a run.

A test that finds nothing says something only where it would have found something. Each function here returns the
smallest deviation that a test of `noise_tests` detects with a probability of `CERTAINTY` or more, whatever the updates
are: they may imitate the noise that is missing, up to the length that clipping leaves the expected number of
providers. The deviation is in one round; one in all rounds is no harder to detect. A signal that lies in parts of the
vector only is taken to lie in the blocks that are drawn with its share of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from evaluator.records.characteristic_function import FREQUENCIES, limit
from evaluator.records.noise_tests import (
    MOST_EARLIER,
    correlation_limit,
    least_norm,
    shape_p,
    size_p,
    taken_back_p,
)

CERTAINTY = 0.99
_MARGIN = NormalDist().inv_cdf(CERTAINTY)


@dataclass(frozen=True)
class RoundSize:
    """The public numbers of an opened round.

    Attributes:
        coordinates: n, how many are opened.
        numel: d, of how many.
        signal: The largest norm of the expected providers' updates together, in units of the noise's standard
            deviation.
        rounded: Whether a codec rounded the values after the noise was drawn.
    """

    coordinates: int
    numel: int
    signal: float
    rounded: bool = False

    @property
    def energy(self) -> float:
        """The signal's largest mean square over the coordinates, where that of the noise is 1."""
        return self.signal**2 / self.numel

    @property
    def signal_opened(self) -> float:
        """The largest norm of the signal in the opened blocks, if they have their share of it."""
        return self.signal * math.sqrt(self.coordinates / self.numel)


def noise_detected(rounds: Sequence[RoundSize]) -> float:
    """Return the share of the declared standard deviation below which noise is detected in every round by `size`.

    It is 0 where even a round without noise may pass.
    """
    p = size_p(len(rounds))
    return min(_noise_detected(one, least_norm(one.coordinates, p, rounded=one.rounded)) for one in rounds)


def bare_share_detected(rounds: Sequence[RoundSize]) -> float:
    """Return from which share of the coordinates on `shape` detects, in every round, that they lack noise.

    It is infinite, or above 1, where a round without noise may pass.
    """
    return max(_bare_share_detected(one, shape_p(len(rounds), one.coordinates)) for one in rounds)


def reuse_detected(rounds: Sequence[RoundSize]) -> float:
    """Return the part of a round's noise from which on it is detected that it is an earlier round's, or its opposite.

    `repetition` and `taken_back` detect it in every round. It is above 1 where noise that is all used again, or all
    taken back, may pass.
    """
    count = len(rounds)
    correlated = max(_reuse_correlated(one, correlation_limit(count)) for one in rounds)
    if count > MOST_EARLIER + 1:
        return correlated
    return min(correlated, max(_reuse_turned(one, taken_back_p(count)) for one in rounds))


def noise_left_by_leaks(rounds: Sequence[RoundSize]) -> float:
    """Return the part of the whole run's noise that is left where every round takes back what `repetition` lets pass.

    In units of a round's noise, the sum of all noise so far is r long; a round shortens it by f, at most the limit of a
    correlation, and adds its own: r becomes √((r − f)² + 1), where honest rounds lead to √T.
    """
    most, length = correlation_limit(len(rounds)), 1.0
    for one in rounds[1:]:
        taken = (most + one.signal) / math.sqrt(one.coordinates)
        length = math.hypot(max(0.0, length - taken), 1.0)
    return length / math.sqrt(len(rounds))


def _noise_detected(one: RoundSize, least: float) -> float:
    n, energy = one.coordinates, one.energy

    def passes(share: float) -> bool:
        """Return whether x·z + a may be as long as the least norm."""
        variance = (2 * share**4 + 4 * share**2 * energy) / n
        return share**2 + energy + _MARGIN * math.sqrt(variance) >= least**2

    low, high = 0.0, 1.0
    if passes(low):
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return low


def _bare_share_detected(one: RoundSize, p: float) -> float:
    """Return s of the smallest s + (1 − s)e^(−k²/2) − k²·energy/2 beyond the limit.

    That is the least |mean e^(iku)| can be without noise in a part s of the coordinates, as cos x ≥ 1 − x²/2.
    """
    if one.rounded:
        return math.inf
    return min(
        (_beyond(one, k, p) - math.exp(-(k**2) / 2) + k**2 * one.energy / 2) / (1 - math.exp(-(k**2) / 2))
        for k in FREQUENCIES
    )


def _reuse_correlated(one: RoundSize, most: float) -> float:
    """Return f so that f·z, along z and the signal of its round, is beyond chance and two signals that may hide it."""
    reached = most + one.signal + _MARGIN + one.signal_opened
    return reached * math.sqrt((1 + one.energy) / one.coordinates)


def _reuse_turned(one: RoundSize, p: float) -> float:
    """Return f so that e^(−k²(1 − f))·(1 − 2k²·energy), the least with two signals, is beyond the limit."""
    if one.rounded:
        return math.inf
    found = []
    for k in FREQUENCIES:
        left = 1 - 2 * k**2 * one.energy
        if left > 0:
            found.append(1 + math.log(_beyond(one, k, p) / left) / k**2)
    return min(found, default=math.inf)


def _beyond(one: RoundSize, k: float, p: float) -> float:
    """Return the expected |mean e^(iku)| that is beyond its limit with a probability of `CERTAINTY`."""
    deviation = math.sqrt((1 - math.exp(-2 * k**2)) / (2 * one.coordinates))
    return limit(one.coordinates, k, p) + _MARGIN * deviation
