"""What an audit of one training shows about ε: p-values of claims, and lower bounds.

m canaries are in the training data or not by independent fair coins, which nobody who trained knows. The auditor
guesses the coins of r of them, and v guesses are right. r is fixed before any score is seen: the choice of the best r
from the scores themselves would have to be paid for.

- Of (ε, δ)-DP: Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run" (2023), Theorem 5.2. No
  assumption about the mechanism.
- Of Gaussian DP: Mahloujifar, Melis and Chaudhuri, "Auditing f-Differential Privacy in One Run" (2024).
  About twice as strong, and about the claimed mechanism: it refutes that the run is μ-GDP.

A bound is a statement about this one run's training, wrong with probability at most α. "Not refuted" says nothing.
"""

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom

from evaluator.accounting.membership import gaussian_deltas

HIGHEST_EPSILON, HIGHEST_MU = 60.0, 40.0
STEPS = 50
_NORMAL = NormalDist()
# Where the inverse of the normal distribution is still a number.
SMALLEST = 1e-300


def p_value(canaries: int, guesses: int, right: int, *, epsilon: float, delta: float) -> float:
    """Return how likely so many right guesses are at most, if the training is (ε, δ)-DP.

    Raises:
        ValueError: The counts contradict each other.
    """
    _check_counts(canaries, guesses, right)
    if right == 0:
        return 1.0
    chance = 1 / (1 + np.exp(-epsilon))
    reached = float(binom.sf(right - 1, guesses, chance))
    steps = np.arange(1, right + 1)
    # P[v > X ≥ v − i], whose mean step is what δ can move.
    between = binom.cdf(right - 1, guesses, chance) - binom.cdf(right - steps - 1, guesses, chance)
    return min(1.0, reached + 2 * canaries * delta * float((between / steps).max()))


def gaussian_p_value(canaries: int, guesses: int, right: int, *, mu: float) -> float:
    """Return how likely so many right guesses are at most, if the training is μ-GDP; rounded up.

    Raises:
        ValueError: The counts contradict each other.
    """
    _check_counts(canaries, guesses, right)
    if not _is_refuted(canaries, guesses, right, mu, 1.0):
        return 1.0
    # By its logarithm: p-values of gross faults are tiny.
    low, high = np.log(SMALLEST), 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if _is_refuted(canaries, guesses, right, mu, np.exp(middle)) else (middle, high)
        )
    return float(np.exp(high))


def epsilon_lower_bound(canaries: int, guesses: int, right: int, *, delta: float, alpha: float) -> float:
    """Return the largest ε that is refuted at level α without an assumption; 0 where none is."""
    return _largest(
        lambda epsilon: p_value(canaries, guesses, right, epsilon=epsilon, delta=delta) < alpha,
        HIGHEST_EPSILON,
    )


def gaussian_epsilon_lower_bound(
    canaries: int, guesses: int, right: int, *, delta: float, alpha: float
) -> float:
    """Return the ε at δ of the largest μ whose Gaussian DP is refuted at level α; 0 where none is."""
    mu = _largest(lambda mu: _is_refuted(canaries, guesses, right, mu, alpha), HIGHEST_MU)
    if mu == 0:
        return 0.0
    return _largest(lambda epsilon: float(gaussian_deltas(mu, np.array([epsilon]))[0]) > delta, 1_000.0)


def _is_refuted(canaries: int, guesses: int, right: int, mu: float, alpha: float) -> bool:
    """Return whether μ-GDP gives so many right guesses with a probability below α.

    The chance of at least `right` right guesses is α at most if the chances of exactly i of them, for i from there on,
    can't be continued down to 0 within μ-GDP: the recursion follows the smallest that they could be.
    """
    hits, misses = alpha * right / canaries, alpha * (guesses - right) / canaries
    for count in range(right - 1, -1, -1):
        bounded = _inverse_trade_off(hits, mu)
        if bounded <= misses:
            break
        hits += count / (guesses - count) * (bounded - misses)
        misses = bounded
    return hits + misses > guesses / canaries


def _inverse_trade_off(rate: float, mu: float) -> float:
    """Return the smallest false positive rate of an attack on μ-GDP with this true positive rate."""
    if rate <= SMALLEST:
        return 0.0
    if rate >= 1:
        return 1.0
    return float(ndtr(_NORMAL.inv_cdf(rate) - mu))


def _largest(is_true: Callable[[float], bool], highest: float) -> float:
    """Return the largest value for which `is_true`, which is so for all smaller ones; 0 where it never is."""
    if not is_true(0.0):
        return 0.0
    low, high = 0.0, highest
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_true(middle) else (low, middle)
    return low


def _check_counts(canaries: int, guesses: int, right: int) -> None:
    if not 0 <= right <= guesses <= canaries or guesses < 1:
        raise ValueError(f"{right} right of {guesses} guesses about {canaries} canaries")
