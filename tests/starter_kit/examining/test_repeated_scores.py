"""Whether a difference of scores is explained by the chance of training."""

import pytest
from numpy.random import default_rng

from starter_kit.examining.repeated_scores import compare_anls, compare_bytes


def test_one_repeat_must_agree_within_a_question():
    assert compare_anls(0.5, [0.5051], questions=100).is_explained
    other = compare_anls(0.5, [0.52], questions=100)
    assert not other.is_explained
    assert other.basis == "one question of the test set"


def test_several_give_the_interval_in_which_another_training_lies():
    found = compare_anls(0.5, [0.40, 0.44, 0.42], questions=1000)
    # t(2) at 99.5% is 9.925, s is 0.02.
    assert found.allowed == pytest.approx(9.925 * 0.02 * (4 / 3) ** 0.5, rel=1e-3)
    assert found.basis == "the 99% prediction interval of 3 repeats"
    assert found.is_explained
    assert not compare_anls(0.7, [0.40, 0.44, 0.42], questions=1000).is_explained
    assert not compare_anls(0.1, [0.40, 0.44, 0.42], questions=1000).is_explained


def test_one_honest_run_in_a_hundred_is_outside():
    draws = default_rng(1).normal(0.3, 0.02, (4000, 6))
    outside = sum(not compare_anls(row[0], list(row[1:]), questions=10**9).is_explained for row in draws)
    assert outside / 4000 == pytest.approx(0.01, abs=0.005)


def test_bytes_may_differ_by_one_in_a_hundred():
    assert compare_bytes(1000, [1010]).is_explained
    assert not compare_bytes(1000, [1020]).is_explained
