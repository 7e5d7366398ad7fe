"""The textbook bounds, for comparison: none of them decides anything.

They hold where they say and are loose, often by far: pure ε adds up under basic composition; advanced composition helps
only many rounds of small ε; the classical Gaussian calibration holds only up to ε = 1.
"""

import math

from evaluator.mechanisms.events import UnsupportedError, check_delta, check_epsilon


def basic_composition(epsilon: float, rounds: int) -> float:
    """Return ε of `rounds` mechanisms that each have pure ε (δ = 0).

    Raises:
        ValueError: ε is not positive and finite.
    """
    check_epsilon(epsilon)
    return epsilon * rounds


def advanced_composition(epsilon: float, rounds: int, delta: float) -> float:
    """Return ε at δ of `rounds` mechanisms that each have pure ε; it may well be above `basic_composition`.

    Dwork, Rothblum and Vadhan, "Boosting and Differential Privacy" (2010), with the expected loss of one mechanism
    bounded by ε·(e^ε − 1)/(e^ε + 1), as in Kairouz, Oh and Viswanath, "The Composition Theorem for Differential
    Privacy" (2015).

    Raises:
        ValueError: ε is not positive and finite, or δ is not in (0, 1).
    """
    check_epsilon(epsilon)
    check_delta(delta)
    expected = epsilon * math.tanh(epsilon / 2)
    return epsilon * math.sqrt(2 * rounds * math.log(1 / delta)) + rounds * expected


def gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """Return σ = √(2·ln(1.25/δ))/ε of one Gaussian release: Dwork and Roth (2014), appendix A.

    Raises:
        UnsupportedError: ε is above 1, where the bound doesn't hold.
    """
    check_delta(delta)
    check_epsilon(epsilon)
    if epsilon > 1:
        raise UnsupportedError(f"the classical Gaussian bound holds up to ε = 1, not at {epsilon}")
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon
