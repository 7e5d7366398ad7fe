"""The textbook bounds on equal Gaussian rounds, for comparison: none of them decides anything.

They hold where they say and are loose, often by far: the ε of single rounds add up under basic composition; advanced
composition helps only many rounds of small ε; the classical Gaussian bound holds only up to ε = 1.
"""

import math

from evaluator.mechanisms.events import Gaussian, UnsupportedError
from evaluator.mechanisms.units import Adjacency


def basic_composition(event: Gaussian, delta: float) -> float:
    """Return ε at δ: the sum of those of the rounds, each at an equal part of δ.

    Raises:
        UnsupportedError: ε of a round is above 1.
    """
    return gaussian_epsilon(event, delta / event.rounds) * event.rounds


def advanced_composition(event: Gaussian, delta: float) -> float:
    """Return ε at δ, half of which goes to the rounds; it may well be above `basic_composition`.

    Dwork, Rothblum and Vadhan, "Boosting and Differential Privacy" (2010), with the expected loss of one mechanism
    bounded by ε·(e^ε − 1)/(e^ε + 1), as in Kairouz, Oh and Viswanath, "The Composition Theorem for Differential
    Privacy" (2015).

    Raises:
        UnsupportedError: ε of a round is above 1.
    """
    epsilon = gaussian_epsilon(event, delta / (2 * event.rounds))
    expected = epsilon * math.tanh(epsilon / 2)
    return epsilon * math.sqrt(2 * event.rounds * math.log(1 / (delta / 2))) + event.rounds * expected


def gaussian_epsilon(event: Gaussian, delta: float) -> float:
    """Return ε at δ of one round, √(2·ln(1.25/δ))/σ: Dwork and Roth (2014), appendix A.

    Raises:
        UnsupportedError: It is above 1, where the bound doesn't hold.
    """
    sensitivity = 2 if event.adjacency is Adjacency.REPLACE else 1
    epsilon = math.sqrt(2 * math.log(1.25 / delta)) * sensitivity / event.effective_noise_multiplier
    if epsilon > 1:
        raise UnsupportedError(f"the classical bound holds for ε up to 1, not {epsilon:.4g}")
    return epsilon
