import math

import numpy as np
import pytest

from evaluator.messages.examinations import Verdict
from starter_kit.conformance import statistics


def test_a_p_value_that_is_not_a_number_fails() -> None:
    assert statistics.judged("x", "x", math.nan, math.nan).verdict is Verdict.FAILED


def test_binomial_tails_are_two_sided() -> None:
    assert statistics.binomial(50, 100, 0.5) == pytest.approx(1.0)
    assert statistics.binomial(0, 100, 0.5) == pytest.approx(2**-99)
    assert statistics.binomial(100, 100, 0.5) == pytest.approx(2**-99)


def test_the_bound_for_independent_coins_is_never_below_their_p_value() -> None:
    for count in range(0, 101, 5):
        assert (
            statistics.independent_coins(count, 30.0, 100) >= 0.999 * statistics.binomial(count, 100, 0.3) / 2
        )
    assert statistics.independent_coins(30, 30.0, 100) == 1.0
    assert statistics.independent_coins(0, 16.0, 100) == pytest.approx(2 * 0.84**100)


def test_the_laplace_bound_covers_the_tail_of_one_draw() -> None:
    for excess in (0.5, 2.0, 10.0):
        assert statistics.laplace_mean_tail(excess, 1.0, 1) >= math.exp(-excess)


def test_an_autocorrelation_is_found_at_its_lag() -> None:
    generator = np.random.default_rng(3)
    half = generator.standard_normal((4, 500))
    _, lag, p_value = statistics.largest_autocorrelation(np.concatenate([half, -half], axis=1))
    assert lag == 500
    assert p_value < statistics.LIMIT
    assert statistics.largest_autocorrelation(generator.standard_normal((4, 1000)))[2] > 1e-4


def test_correlated_rows_are_found() -> None:
    generator = np.random.default_rng(4)
    rows = generator.standard_normal((6, 1000))
    assert statistics.largest_correlation(rows)[1] > 1e-4
    rows[5] = (rows[5] + rows[0]) / 2**0.5
    assert statistics.largest_correlation(rows)[1] < statistics.LIMIT
    assert statistics.largest_correlation(rows[:1], rows[1:5])[1] > 1e-4
