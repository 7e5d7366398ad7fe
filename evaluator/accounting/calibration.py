"""Calibration: the smallest noise multiplier with which a composition stays within a privacy budget.

Guarantee: the official accountant has computed ε for the returned noise multiplier, and it does not exceed the target.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache

from scipy.optimize import brentq

from evaluator.accounting.pld import epsilon as epsilon_of
from evaluator.mechanisms.events import Event, check_delta, check_epsilon
from evaluator.mechanisms.mechanism import Mechanism, SamplingRule
from evaluator.mechanisms.values import MAX_NOISE_MULTIPLIER, MIN_NOISE_MULTIPLIER

RELATIVE_TOLERANCE = 3e-5
# The step, in ln σ, of the search for a bracket around the root.
STEP = math.log(4)


def noise_multiplier(
    target_epsilon: float, delta: float, events_at: Callable[[float], Sequence[Event]]
) -> float:
    """Return the smallest noise multiplier, to a relative 1e-4, whose composition stays within the target at δ.

    The result is never below `MIN_NOISE_MULTIPLIER`, even where sampling alone would be enough.

    Args:
        events_at: Returns the composition for a noise multiplier. More noise must mean less ε, as it does where the
            noise of all rounds is scaled by one factor.

    Raises:
        ValueError: An argument is out of range, or no noise in the accountant's range is enough.
    """
    check_epsilon(target_epsilon)
    check_delta(delta)

    @cache
    def excess(log_noise: float) -> float:
        """Return ln(ε/target): in logarithms the curve is nearly straight, and the search short."""
        found = epsilon_of(events_at(_noise(log_noise)), delta)
        return math.log(min(max(found, 1e-12), 1e12) / target_epsilon)

    least, most = math.log(MIN_NOISE_MULTIPLIER), math.log(MAX_NOISE_MULTIPLIER)
    low = high = 0.0
    while excess(high) > 0:
        if high == most:
            if math.isinf(epsilon_of(events_at(_noise(high)), delta)):
                raise ValueError(f"no finite ε holds at δ = {delta:g}, whatever the noise; choose a larger δ")
            raise ValueError(
                f"no noise multiplier up to {MAX_NOISE_MULTIPLIER:g} reaches ε = {target_epsilon}"
            )
        low, high = high, min(high + STEP, most)
    while excess(low) <= 0:
        if low == least:
            return MIN_NOISE_MULTIPLIER
        low, high = max(low - STEP, least), low
    root = float(brentq(excess, low, high, xtol=RELATIVE_TOLERANCE))
    # The root that was found may lie on either side of the true one, within the tolerance.
    while excess(root) > 0:
        root = min(root + RELATIVE_TOLERANCE, high)
    return _noise(root)


def noise_multiplier_for(
    mechanism: Mechanism, *, epsilon: float, delta: float, rounds: int, rule: SamplingRule
) -> float:
    """Return the smallest σ, to one in 10⁴, with which `rounds` rounds stay within `epsilon`.

    The σ of `mechanism` itself is ignored.

    Args:
        rule: The amplification rule under which the rounds are accounted.

    Raises:
        ValueError: No noise is enough, or an argument is out of range.
        UnsupportedError: The noise doesn't cover what is seen.
    """
    # Every placement scales the noise by a constant, so that z can be searched for in the accountants' whole range.
    scale = mechanism.with_noise_multiplier(1).effective_noise_multiplier()
    effective = noise_multiplier(epsilon, delta, lambda z: [mechanism.event(rule, z, rounds)])
    multiplier = effective / scale
    # At the floor, rounding must not carry the noise below the accountants' range.
    while mechanism.with_noise_multiplier(multiplier).effective_noise_multiplier() < MIN_NOISE_MULTIPLIER:
        multiplier = math.nextafter(multiplier, math.inf)
    return multiplier


def _noise(log_noise: float) -> float:
    """Return the exponential, kept in range where rounding would carry it out."""
    return min(max(math.exp(log_noise), MIN_NOISE_MULTIPLIER), MAX_NOISE_MULTIPLIER)
