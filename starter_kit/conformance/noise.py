"""Tests of the noise, where no provider has any signal.

σ is chosen so large that contributions, which are clipped, are negligible beside the noise, even where they follow from
noise of earlier rounds, as dual variables do.
"""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from evaluator.messages.examinations import ConformanceTest
from starter_kit.conformance.claims import Claims
from starter_kit.conformance.session import Releases
from starter_kit.conformance.statistics import (
    Array,
    binomial,
    chi_squared,
    judged,
    largest_autocorrelation,
    largest_correlation,
    measured,
    normal,
)

# Float32 has about 2²³ numbers in each power of two: of 10⁵ draws hardly any two are equal.
FEWEST_DIFFERENT = 0.9
# In standard deviations. Of 140,000 draws, 65 are beyond the last one.
TAILS = (2.5, 3.0, 3.5)


def standardized(rows: Array, claims: Claims) -> Array:
    """Return values that are standard normal if `rows` are noise of the claimed law and scale."""
    if claims.law == "gaussian":
        return rows / claims.scale
    # From the nearer tail, so that large values keep their digits.
    tails = 0.5 * np.exp(-np.abs(rows) / claims.scale)
    values: Array = -np.sign(rows) * stats.norm.ppf(np.maximum(tails, 1e-300))
    return values


def noise_tests(sent: Sequence[Releases], claims: Claims) -> list[ConformanceTest]:
    """Return the tests of pure noise, from the releases of each sender."""
    values = np.concatenate([standardized(each.rows, claims) for each in sent])
    return [
        *_scale_tests(values),
        _shape_test(values),
        _tails_test(values),
        _mean_test(values),
        _resolution_test(np.concatenate([each.rows for each in sent])),
        *_independence_tests(values),
    ]


def least_noise_test(rows: Array, claims: Claims) -> ConformanceTest:
    """Return the test that noise under the settings as they are isn't below what ε was computed for."""
    squares = float((standardized(rows, claims) ** 2).sum())
    ratio = (squares / rows.size) ** 0.5
    p_value = float(stats.chi2.cdf(squares, rows.size))
    return judged("noise-as-configured", "noise over the claimed one, at least", ratio, p_value)


def empty_round_test(sent: Sequence[Releases], claims: Claims, expected_rows: int) -> ConformanceTest:
    """Return the test that rounds without participants release noise of the claimed scale and nothing else."""
    rows = np.concatenate([each.rows for each in sent]) if sent else np.zeros((0, 1))
    values = standardized(rows, claims)
    missing = expected_rows - len(rows)
    p_value = 0.0 if missing else _by_row(values)
    ratio = float(np.sqrt((values**2).mean())) if rows.size else 0.0
    note = f"{missing} of {expected_rows} rounds released nothing" if missing else ""
    return judged("empty-rounds", "noise of empty rounds over the claimed one", ratio, p_value, note)


def _scale_tests(values: Array) -> list[ConformanceTest]:
    squares = values**2
    by_row, by_coordinate = squares.mean(axis=1), squares.sum(axis=0)
    lower = float(stats.chi2.cdf(by_coordinate.min(), len(values)))
    upper = float(stats.chi2.sf(by_coordinate.max(), len(values)))
    p_coordinate = 2 * squares.shape[1] * min(lower, upper)
    extreme = float(by_row[np.abs(by_row - 1).argmax()])
    return [
        judged(
            "noise-scale",
            "standard deviation over the claimed one",
            float(np.sqrt(squares.mean())),
            chi_squared(float(squares.sum()), squares.size),
        ),
        judged(
            "noise-scale-of-each-round",
            "the most different standard deviation of one release",
            float(np.sqrt(extreme)),
            _by_row(values),
        ),
        judged(
            "noise-scale-of-each-coordinate",
            "the least standard deviation of one coordinate over all releases",
            float(np.sqrt(by_coordinate.min() / len(values))),
            p_coordinate,
        ),
    ]


def _by_row(values: Array) -> float:
    """Return the p-value of the row whose sum of squares is the least likely."""
    return len(values) * min((chi_squared(float((row**2).sum()), len(row)) for row in values), default=0.0)


def _shape_test(values: Array) -> ConformanceTest:
    flat = np.sort(values.ravel())
    below = stats.norm.cdf(flat)
    steps = np.arange(1, flat.size + 1) / flat.size
    distance = float(max((steps - below).max(), (below - steps + 1 / flat.size).max()))
    return judged(
        "noise-shape",
        "Kolmogorov–Smirnov distance from the claimed distribution",
        distance,
        float(stats.kstwobign.sf(distance * flat.size**0.5)),
    )


def _tails_test(values: Array) -> ConformanceTest:
    """Test that large draws are as frequent as claimed: noise that is cut off has none."""
    found = []
    for beyond in TAILS:
        rate = 2 * float(stats.norm.sf(beyond))
        count = int((np.abs(values) > beyond).sum())
        found.append((binomial(count, values.size, rate), count / values.size / rate, beyond))
    p_value, ratio, beyond = min(found)
    return judged(
        "noise-tails",
        "draws beyond several standard deviations over the claimed number, the least likely of them",
        ratio,
        len(TAILS) * p_value,
        f"beyond {beyond:g}",
    )


def _mean_test(values: Array) -> ConformanceTest:
    z = float(values.sum()) / values.size**0.5
    return judged("noise-mean", "mean, in its standard deviations", z, normal(z))


def _resolution_test(rows: Array) -> ConformanceTest:
    different = len(np.unique(rows)) / rows.size
    return measured("noise-resolution", "equal numbers among all draws", 1 - different, 1 - FEWEST_DIFFERENT)


def _independence_tests(values: Array) -> list[ConformanceTest]:
    worst, p_pairs = largest_correlation(values)
    sums = values.sum(axis=0) / len(values) ** 0.5
    z, lag, p_lag = largest_autocorrelation(values)
    return [
        judged("noise-of-two-releases", "largest correlation of two releases", worst, p_pairs),
        judged(
            "noise-of-the-sum",
            "standard deviation of the sum of all releases over that of independent ones",
            float(np.sqrt((sums**2).mean())),
            chi_squared(float((sums**2).sum()), sums.size),
        ),
        judged(
            "noise-of-coordinates",
            "largest autocorrelation at any lag, in its standard deviations",
            z,
            p_lag,
            f"at lag {lag}",
        ),
    ]
