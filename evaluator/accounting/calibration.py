"""The noise that a budget asks for.

Guarantee: the returned σ was put through the official accountant and its ε does not exceed the target.
"""

import math
from functools import cache

from scipy.optimize import brentq

from evaluator.accounting.mechanisms import (
    MAX_NOISE_MULTIPLIER,
    MIN_NOISE_MULTIPLIER,
    PoissonGaussian,
    check_delta,
)
from evaluator.accounting.pld import epsilon

RELATIVE_TOLERANCE = 3e-5


def noise_multiplier(target_epsilon: float, delta: float, sampling_rate: float, rounds: int) -> float:
    """Smallest σ, to a relative 1e-4, with which `rounds` rounds at `sampling_rate` stay within the target.

    It is never below `MIN_NOISE_MULTIPLIER`, also where sampling alone would do.

    Raises:
        ValueError: An argument is out of range, or no noise the accountant knows is enough.
    """
    if not (target_epsilon > 0 and math.isfinite(target_epsilon)):
        raise ValueError(f"the target ε must be positive: {target_epsilon}")
    check_delta(delta)

    @cache
    def excess(log_sigma: float) -> float:
        return epsilon([PoissonGaussian(sampling_rate, math.exp(log_sigma), rounds)], delta) - target_epsilon

    # Bracket σ between powers of two: too little noise at `low`, enough at `high`.
    low = high = 0.0
    while excess(high) > 0:
        low, high = high, high + math.log(2)
        if high > math.log(MAX_NOISE_MULTIPLIER):
            raise ValueError(
                f"no noise multiplier up to {MAX_NOISE_MULTIPLIER:g} reaches ε = {target_epsilon}"
            )
    while low == high or excess(low) <= 0:
        low, high = low - math.log(2), low
        if low < math.log(MIN_NOISE_MULTIPLIER):
            return MIN_NOISE_MULTIPLIER
    root = brentq(excess, low, high, xtol=RELATIVE_TOLERANCE)
    while excess(root) > 0:  # the root lies on either side, within the tolerance
        root += RELATIVE_TOLERANCE
    return math.exp(root)
