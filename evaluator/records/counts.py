"""Whether counts are those of independent coins: how many clients, or providers of a client, took part in each round.

Two questions, each two-sided: is the total right (exact, binomial), and do the counts spread as coins make them? The
spread, the sum of squared standardized deviations, is compared with a gamma distribution of its mean and variance,
which is approximate. So that the lattice of counts raises no alarm, deviations are taken half a count too large where
they may be too small, and half a count too small where they may be too large. A few rounds show little: 2 of 10
clients in every round, as if drawn by coins of rate 0.2, pass for 10 rounds and are seen after 20.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np


def coin_probability(counts: Iterable[tuple[int, float]], population: int) -> float:
    """Return how probable counts as odd as these are, if each is of `population` independent coins; at most 1.

    Args:
        counts: (count, rate) of each round. Rounds of one rate are tested together, and the p-values are corrected for
            the number of different rates.

    Returns:
        About the p-value, rather more than less; 0 where a count is impossible.
    """
    groups = _by_rate(counts)
    p_values = [
        min(_of_total(group, population, rate), _of_spread(group, population, rate))
        for rate, group in groups.items()
    ]
    return min([1.0, *(4 * len(groups) * p_value for p_value in p_values)])


def total_probability(counts: Iterable[tuple[int, float]], population: int) -> float:
    """Return what `coin_probability` does for the totals alone: it is exact, so even a tiny value can be trusted."""
    groups = _by_rate(counts)
    p_values = [_of_total(group, population, rate) for rate, group in groups.items()]
    return min([1.0, *(2 * len(groups) * p_value for p_value in p_values)])


def _by_rate(counts: Iterable[tuple[int, float]]) -> dict[float, list[int]]:
    groups: dict[float, list[int]] = defaultdict(list)
    for count, rate in counts:
        groups[rate].append(count)
    return groups


def _of_total(counts: Sequence[int], population: int, rate: float) -> float:
    """Return the smaller of the total's one-sided p-values."""
    # Imported here, as everywhere in checks: SciPy takes a second to load, and the site only reads their texts.
    from scipy.stats import binom

    coins, total = population * len(counts), sum(counts)
    if max(counts) > population:
        return 0.0
    return float(min(binom.cdf(total, coins, rate), binom.sf(total - 1, coins, rate)))


def _of_spread(counts: Sequence[int], population: int, rate: float) -> float:
    """Return the smaller of the spread's one-sided p-values."""
    from scipy.special import gammainc, gammaincc

    variance = population * rate * (1 - rate)
    if variance == 0:
        # The total covers this case.
        return 1.0
    deviations = np.abs(np.array(counts) - population * rate)
    # One squared standardized deviation has mean 1, and variance 2 plus the binomial's excess kurtosis. That of a
    # single coin may have no variance at all, and then shows nothing that the total doesn't.
    spread_variance = max(1.0, 2 + (1 - 6 * rate * (1 - rate)) / variance)
    shape = len(counts) / spread_variance
    return float(
        min(
            gammainc(shape, np.sum((deviations + 0.5) ** 2) / variance / spread_variance),
            gammaincc(shape, np.sum(np.maximum(deviations - 0.5, 0) ** 2) / variance / spread_variance),
        )
    )
