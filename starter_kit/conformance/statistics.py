"""The statistics of the tests, each with the probability of a result as extreme under the method's claims.

Where a test takes the most extreme of several values, its p-value is multiplied by their number (Bonferroni). Sums of
squares of Gaussian noise have their chi-squared distribution; other sums are compared with a normal or gamma
distribution of their mean and variance, the variance enlarged by `APPROXIMATION`, since their tails are not exact.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from evaluator.messages.examinations import ConformanceTest, Verdict

Array = NDArray[np.float64]

# p-values below this fail. An examination has fewer than 60 tests, so that all of them together raise a false alarm
# with a probability below 6·10⁻¹⁰.
LIMIT = 1e-11
APPROXIMATION = 1.2


def judged(name: str, measures: str, statistic: float, p_value: float, note: str = "") -> ConformanceTest:
    """Return the test with this p-value; one of NaN, from values that aren't numbers, fails."""
    p_value = min(1.0, p_value) if math.isfinite(p_value) else 0.0
    verdict = Verdict.PASSED if p_value >= LIMIT else Verdict.FAILED
    return ConformanceTest(
        id=name,
        measures=measures,
        statistic=statistic if math.isfinite(statistic) else None,
        limit=LIMIT,
        p_value=p_value,
        verdict=verdict,
        note=note,
    )


def measured(name: str, measures: str, statistic: float, limit: float, note: str = "") -> ConformanceTest:
    """Return a test without chance, which passes where the statistic is at most `limit`."""
    verdict = Verdict.PASSED if statistic <= limit else Verdict.FAILED
    return ConformanceTest(
        id=name,
        measures=measures,
        statistic=statistic if math.isfinite(statistic) else None,
        limit=limit,
        verdict=verdict,
        note=note,
    )


def not_made(name: str, measures: str, verdict: Verdict, note: str) -> ConformanceTest:
    """Return a test that was not made, with the reason."""
    return ConformanceTest(id=name, measures=measures, verdict=verdict, note=note)


def two_sided(lower: float, upper: float) -> float:
    """Return the two-sided p-value of its two tails."""
    return min(1.0, 2 * min(lower, upper))


def chi_squared(squares: float, count: int) -> float:
    """Return the two-sided p-value of a sum of `count` squares of independent standard normals."""
    return two_sided(float(stats.chi2.cdf(squares, count)), float(stats.chi2.sf(squares, count)))


def normal(z: float) -> float:
    """Return the two-sided p-value of a standard normal."""
    return float(2 * stats.norm.sf(abs(z)))


def gamma(value: float, mean: float, variance: float) -> float:
    """Return the two-sided p-value of a positive sum of this mean and variance, the latter enlarged."""
    scale = APPROXIMATION * variance / mean
    law = stats.gamma(mean / scale, scale=scale)
    return two_sided(float(law.cdf(value)), float(law.sf(value)))


def binomial(count: int, trials: int, rate: float) -> float:
    """Return the two-sided p-value of `count` heads."""
    law = stats.binom(trials, rate)
    return two_sided(float(law.cdf(count)), float(law.sf(count - 1)))


def independent_coins(count: int, expected: float, trials: int) -> float:
    """Return a bound on the two-sided p-value of `count` heads of independent coins with any probabilities.

    Source: Hoeffding 1963, theorem 1, which needs their mean only.
    """
    if not trials:
        return 1.0
    found, rate = count / trials, min(1.0, expected / trials)
    divergence = float(special.rel_entr(found, rate) + special.rel_entr(1 - found, 1 - rate))
    return min(1.0, 2 * math.exp(-trials * divergence))


def laplace_mean_tail(excess: float, scale: float, count: int) -> float:
    """Return a bound on the probability that the mean of `count` Laplace draws exceeds ±`excess` (Chernoff)."""
    y = excess / scale
    if y <= 0:
        return 1.0
    s = (math.sqrt(1 + y * y) - 1) / y
    return 2 * math.exp(-count * (s * y + math.log1p(-s * s)))


def largest_correlation(rows: Array, others: Array | None = None) -> tuple[float, float]:
    """Return the largest |correlation| between different rows (n, d), or between rows and `others`, and its p-value.

    Noise of mean 0 is expected, so no mean is subtracted.
    """
    left = _unit_rows(rows)
    right = left if others is None else _unit_rows(others)
    products = left @ right.T
    if others is None:
        products = products[np.triu_indices(len(left), 1)]
    if products.size == 0:
        return 0.0, 1.0
    worst = float(np.abs(products).max())
    return worst, min(1.0, products.size * normal(worst * math.sqrt(rows.shape[1])))


def largest_autocorrelation(rows: Array) -> tuple[float, int, float]:
    """Return the largest |autocorrelation| of the rows (n, d) over all circular lags, its lag and its p-value."""
    unit = _unit_rows(rows)
    power = np.abs(np.fft.rfft(unit, axis=1)) ** 2
    size = rows.shape[1]
    lags = np.fft.irfft(power.sum(axis=0), n=size)[1 : size // 2 + 1]
    if size % 2 == 0:
        # Half-way round, each product occurs twice.
        lags[-1] /= math.sqrt(2)
    worst = int(np.abs(lags).argmax())
    z = abs(float(lags[worst])) / math.sqrt(len(rows)) * math.sqrt(size)
    return z, worst + 1, min(1.0, len(lags) * normal(z))


def _unit_rows(rows: Array) -> Array:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Array = rows / np.where(norms > 0, norms, 1.0)
    return unit
