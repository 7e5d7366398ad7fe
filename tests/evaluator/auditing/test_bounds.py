"""Bounds against the values of the papers' implementations, and against simulated honest mechanisms."""

import numpy as np
import pytest

from evaluator.auditing.bounds import (
    epsilon_lower_bound,
    gaussian_epsilon_lower_bound,
    gaussian_p_value,
    p_value,
)


@pytest.mark.parametrize(
    ("counts", "epsilon"),
    [
        ((100, 100, 100), 3.4902),
        ((100, 100, 90), 1.6304),
        ((200, 100, 95), 2.1710),
        ((1000, 200, 190), 2.3936),
        ((1000, 1000, 600), 0.2972),
    ],
)
def test_lower_bounds_are_the_reference_values(counts: tuple[int, int, int], epsilon: float) -> None:
    assert epsilon_lower_bound(*counts, delta=1e-5, alpha=0.05) == pytest.approx(epsilon, abs=1e-4)


@pytest.mark.parametrize(("epsilon", "p"), [(1, 1.0875e-4), (1.5, 0.017479), (2, 0.342797)])
def test_p_values_are_the_reference_values(epsilon: float, p: float) -> None:
    assert p_value(100, 100, 90, epsilon=epsilon, delta=1e-5) == pytest.approx(p, rel=1e-4)


def test_without_delta_perfect_guesses_give_the_closed_form() -> None:
    # (e^ε/(1 + e^ε))^50 = 0.05.
    chance = 0.05 ** (1 / 50)
    found = epsilon_lower_bound(50, 50, 50, delta=0, alpha=0.05)
    assert found == pytest.approx(np.log(chance / (1 - chance)))


def test_the_gaussian_bound_is_the_reference_value() -> None:
    # 10,000 canaries of N(1, 1) and 10,000 of N(0, 1): of the highest 5,000, about 4,003 are the former's.
    found = gaussian_epsilon_lower_bound(20_000, 5_000, 4_003, delta=1e-6, alpha=0.05)
    assert found == pytest.approx(2.1647, abs=1e-3)


def test_nothing_right_shows_nothing() -> None:
    assert p_value(100, 10, 0, epsilon=0, delta=1e-5) == 1
    assert gaussian_p_value(100, 10, 0, mu=0.5) == 1
    assert epsilon_lower_bound(100, 10, 5, delta=1e-5, alpha=0.05) == 0
    assert gaussian_epsilon_lower_bound(100, 10, 5, delta=1e-5, alpha=0.05) == 0


def test_counts_that_contradict_each_other_are_rejected() -> None:
    for counts in ((10, 11, 5), (10, 5, 6), (10, 0, 0)):
        with pytest.raises(ValueError, match="guesses about"):
            p_value(*counts, epsilon=1, delta=1e-5)


def test_honest_gaussian_mechanisms_are_refuted_as_rarely_as_promised() -> None:
    mu, canaries, guesses = 0.5, 400, 80
    p_values = [gaussian_p_value(canaries, guesses, right, mu=mu) for right in range(guesses + 1)]
    assert p_values == sorted(p_values, reverse=True)
    rng = np.random.default_rng(0)
    coins = rng.random((1_000, canaries)) < 0.5
    order = np.argsort(-(rng.normal(size=coins.shape) + mu * coins), axis=1)[:, :guesses]
    right = np.take_along_axis(coins, order, axis=1).sum(axis=1)
    assert sum(p_values[count] < 0.05 for count in right) <= 50
