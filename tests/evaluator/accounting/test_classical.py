"""The textbook bounds have their textbook numbers, and are rejected where they don't hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from evaluator.accounting import classical
from evaluator.mechanisms.events import UnsupportedError
from tests.evaluator.accounting.compositions import gaussian_delta

DELTA = 1e-5


def test_composition_of_pure_epsilon() -> None:
    assert classical.basic_composition(0.1, 100) == pytest.approx(10)
    assert classical.advanced_composition(0.1, 100, DELTA) == pytest.approx(5.298, abs=5e-4)
    assert classical.basic_composition(1, 10) == 10
    assert classical.advanced_composition(1, 10, DELTA) == pytest.approx(19.80, abs=5e-3)


def test_gaussian_noise_for_epsilon_one() -> None:
    assert classical.gaussian_noise_multiplier(1, DELTA) == pytest.approx(4.845, abs=5e-4)
    exact = brentq(lambda noise: gaussian_delta(1, noise) - DELTA, 1, 10)
    assert exact == pytest.approx(3.731, abs=1e-3)


@given(st.floats(0.05, 1), st.floats(1e-9, 1e-2))
def test_the_classical_noise_is_enough(epsilon: float, delta: float) -> None:
    assert gaussian_delta(epsilon, classical.gaussian_noise_multiplier(epsilon, delta)) <= delta


def test_the_classical_gaussian_bound_ends_at_one() -> None:
    with pytest.raises(UnsupportedError, match="up to ε = 1"):
        classical.gaussian_noise_multiplier(1.01, DELTA)


@pytest.mark.parametrize("epsilon", [0, -1, float("inf"), float("nan")])
def test_an_epsilon_out_of_range_is_rejected(epsilon: float) -> None:
    with pytest.raises(ValueError, match="ε"):
        classical.basic_composition(epsilon, 10)
