"""Whether counts are those of the declared draws: how many clients, or providers of a client, took part in each round.

Of independent coins, two questions, each two-sided: is the total right (exact, binomial), and do the counts spread as
coins make them? The spread, the sum of squared standardized deviations, is compared with a gamma distribution of its
mean and variance, which is approximate. So that the lattice of counts raises no alarm, deviations are taken half a
count too large where they may be too small, and half a count too small where they may be too large. A few rounds show
little: 2 of 10 clients in every round, as if drawn by coins of rate 0.2, pass for 10 rounds and are seen after 20.

Of members that each draw one round of a cycle, the total is fixed. The spread is Pearson's statistic, compared in the
same way.
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


def allocation_probability(cycles: Iterable[Sequence[int]], population: int, rounds: int) -> float:
    """Return how probable the spread of these counts is, if each of `population` members drew one of `rounds` rounds.

    Args:
        cycles: The counts of the rounds of each cycle; of the last cycle, maybe only those of its first rounds. They
            add up to `population`, or to less where rounds are missing.

    Returns:
        About the p-value, rather more than less; at most 1.
    """
    low, high, mean, variance = 0.0, 0.0, 0.0, 0.0
    for counts in cycles:
        # The rounds that an unfinished cycle lacks are one more category.
        missing = rounds - len(counts)
        observed = np.array([*counts, *([population - sum(counts)] if missing else [])])
        chances = np.array([*[1] * len(counts), *([missing] if missing else [])]) / rounds
        deviations, kinds = np.abs(observed - population * chances), len(chances)
        low += float(((deviations + 0.5) ** 2 / (population * chances)).sum())
        high += float((np.maximum(deviations - 0.5, 0) ** 2 / (population * chances)).sum())
        mean += kinds - 1
        variance += 2 * (kinds - 1) + (float((1 / chances).sum()) - kinds**2 - 2 * kinds + 2) / population
    return min(1.0, 2 * min(_gamma_tails(low, high, mean, variance)))


def _gamma_tails(low: float, high: float, mean: float, variance: float) -> tuple[float, float]:
    """Return how probable a value up to `low` is, and one from `high` on, of a gamma distribution."""
    from scipy.special import gammainc, gammaincc

    # One or two members in all may have hardly any variance, and then show nothing that the total doesn't.
    scale = max(variance / mean, 0.5)
    return float(gammainc(mean / scale, low / scale)), float(gammaincc(mean / scale, high / scale))


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
