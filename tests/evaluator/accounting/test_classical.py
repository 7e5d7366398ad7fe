"""The textbook bounds have their textbook numbers, and are rejected where they don't hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from evaluator.accounting import classical
from evaluator.mechanisms.events import Gaussian, UnsupportedError
from tests.evaluator.accounting.compositions import DELTA, gaussian, gaussian_delta


def rounds_of(epsilon: float, delta: float, rounds: int = 1) -> Gaussian:
    """Return Gaussian rounds, each of which has this classical ε at δ."""
    return gaussian(math.sqrt(2 * math.log(1.25 / delta)) / epsilon * (1 + 1e-12), rounds)


@pytest.mark.parametrize(
    ("epsilon", "rounds", "basic", "advanced"), [(0.1, 100, 10, 5.298), (1, 10, 10, 19.80)]
)
def test_composition_of_rounds(epsilon: float, rounds: int, basic: float, advanced: float) -> None:
    found = classical.basic_composition(rounds_of(epsilon, DELTA, rounds), rounds * DELTA)
    assert found == pytest.approx(basic)
    # Half of δ is the composition's.
    event = rounds_of(epsilon, DELTA / rounds, rounds)
    assert classical.advanced_composition(event, 2 * DELTA) == pytest.approx(advanced, abs=5e-3)


def test_gaussian_noise_for_epsilon_one() -> None:
    assert classical.gaussian_epsilon(gaussian(4.8449), DELTA) == pytest.approx(1, abs=1e-4)
    exact = brentq(lambda noise: gaussian_delta(1, noise) - DELTA, 1, 10)
    assert exact == pytest.approx(3.731, abs=1e-3)


@given(st.floats(0.05, 1), st.floats(1e-9, 1e-2))
def test_the_classical_noise_is_enough(epsilon: float, delta: float) -> None:
    event = rounds_of(epsilon, delta)
    found = classical.gaussian_epsilon(event, delta)
    assert gaussian_delta(found, event.effective_noise_multiplier) <= delta


def test_the_classical_gaussian_bound_ends_at_one() -> None:
    with pytest.raises(UnsupportedError, match="up to 1"):
        classical.gaussian_epsilon(rounds_of(1.01, DELTA), DELTA)
