"""The limit of a characteristic function: it holds whatever the signal is, and isn't much too high."""

import math

import numpy as np
import pytest

from evaluator.records.characteristic_function import FREQUENCIES, STEP, limit, powers

N = 400
TRIALS = 4000


def signals(random: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "none": np.zeros(N),
        "alike": np.full(N, 0.7),
        "of both signs": random.choice([-0.5, 0.5], N),
        "like noise": random.standard_normal(N),
    }


@pytest.mark.parametrize("frequency", FREQUENCIES)
def test_no_signal_makes_honest_noise_exceed_it_more_often_than_stated(frequency: float) -> None:
    random = np.random.default_rng(1)
    most = limit(N, frequency, 0.01)
    for signal in signals(random).values():
        values = signal + random.standard_normal((TRIALS, N))
        lengths = np.abs(np.exp(1j * frequency * values).mean(axis=1))
        # The expected number is far below, so that even twice the stated one shows an error and no accident.
        assert (lengths > most).sum() <= 0.01 * TRIALS


@pytest.mark.parametrize("frequency", FREQUENCIES)
def test_it_is_at_most_a_third_farther_than_the_normal_approximation_of_the_best_limit(
    frequency: float,
) -> None:
    n, p = 32 * 1024, 1e-8
    variance = (1 - math.exp(-(frequency**2))) ** 2 / 2
    best = math.sqrt(2 * variance * -math.log(p) / n)
    assert best < limit(n, frequency, p) - math.exp(-(frequency**2) / 2) < 4 / 3 * best


def test_a_few_values_never_exceed_it() -> None:
    assert limit(1, FREQUENCIES[0], 1e-8) > 1


def test_powers_are_the_turns_at_each_frequency() -> None:
    values = np.random.default_rng(2).standard_normal(50)
    expected = [np.exp(1j * frequency * values) for frequency in FREQUENCIES]
    np.testing.assert_allclose(list(powers(np.exp(1j * STEP * values))), expected, atol=1e-12)
