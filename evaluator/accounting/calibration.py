"""The noise that a budget asks for.

Guarantee: the returned σ was put through the official accountant and its ε does not exceed the target.
"""

import math

from scipy.optimize import brentq

from evaluator.accounting.mechanisms import (
    MAX_NOISE_MULTIPLIER,
    MIN_NOISE_MULTIPLIER,
    PoissonGaussian,
    check_delta,
)
from evaluator.accounting.pld import epsilon

RELATIVE_TOLERANCE = 2e-5


def noise_multiplier(target_epsilon: float, delta: float, sampling_rate: float, rounds: int) -> float:
    """Smallest σ, to a relative 1e-4, with which `rounds` rounds at `sampling_rate` stay within the target.

    Raises:
        ValueError: An argument is out of range, or no noise the accountant knows is enough.
    """
    if not (target_epsilon > 0 and math.isfinite(target_epsilon)):
        raise ValueError(f"the target ε must be positive: {target_epsilon}")
    check_delta(delta)

    def excess(log_sigma: float) -> float:
        return epsilon([PoissonGaussian(sampling_rate, math.exp(log_sigma), rounds)], delta) - target_epsilon

    low, high = _bracket(excess)
    if low == high:
        return math.exp(low)
    log_sigma = brentq(excess, low, high, xtol=RELATIVE_TOLERANCE)
    while excess(log_sigma) > 0:  # the root may lie on either side, within the tolerance
        log_sigma += RELATIVE_TOLERANCE
    return math.exp(log_sigma)
