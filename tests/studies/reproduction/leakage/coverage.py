"""How often the intervals of the attacks' statistics hold the true value, by simulation on normal scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from evaluator.leakage.statistics import FALSE_POSITIVE_RATES, Attack, Statistic, bootstrap_interval

SIZES = (100, 300)
# By how many standard deviations members' scores are higher.
SHIFTS = (0.0, 0.5, 1.5)


@dataclass(frozen=True)
class Coverage:
    """Of `runs` simulated attacks, how many intervals held the true value."""

    providers: int
    auc: float
    runs: int
    held: Mapping[Statistic, int]

    def share(self, statistic: Statistic) -> float:
        """Return the share of the intervals that held the true value."""
        return self.held[statistic] / self.runs


def simulate_coverage(
    runs: int, *, sizes: Sequence[int] = SIZES, shifts: Sequence[float] = SHIFTS, resamples: int = 1000
) -> list[Coverage]:
    """Return the coverage for so many providers of each kind, and for attacks of each strength."""
    return [_coverage(runs, providers, shift, resamples) for providers in sizes for shift in shifts]


def _coverage(runs: int, providers: int, shift: float, resamples: int) -> Coverage:
    is_member = np.arange(2 * providers) < providers
    held = dict.fromkeys(Statistic, 0)
    for run in range(runs):
        scores = np.random.default_rng([providers, run]).normal(size=2 * providers) + shift * is_member
        attack = Attack(scores, is_member, shift / 2)
        for statistic in Statistic:
            low, high = bootstrap_interval(attack, statistic, resamples=resamples)
            held[statistic] += low <= true_value(statistic, shift) <= high
    return Coverage(providers, true_value(Statistic.AUC, shift), runs, held)


def true_value(statistic: Statistic, shift: float) -> float:
    """Return the statistic of normal scores, members' by `shift` higher, with the threshold in the middle."""
    if statistic is Statistic.AUC:
        return float(ndtr(shift / np.sqrt(2)))
    if statistic is Statistic.BALANCED_ACCURACY:
        return float(ndtr(shift / 2))
    return float(ndtr(shift + ndtri(FALSE_POSITIVE_RATES[statistic])))
