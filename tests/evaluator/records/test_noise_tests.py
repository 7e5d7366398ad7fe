"""What the opened sums show: honest noise passes, signals are tolerated, and missing noise is seen."""

from collections.abc import Callable

import numpy as np
import pytest

from evaluator.records import noise_tests
from evaluator.records.noise_tests import Doubles, OpenedRound

N = 16 * 1024
ROUNDS = 8
ALL = (noise_tests.size, noise_tests.block_size, noise_tests.shape, noise_tests.repetition)

Run = Callable[[np.random.Generator], list[Doubles]]


def honest(random: np.random.Generator) -> list[Doubles]:
    return list(random.standard_normal((ROUNDS, N)))


def flagged_by(values: list[Doubles], signal: float = 0.0, numel: int = 10**7) -> set[str]:
    opened = [OpenedRound(number, one, signal, numel) for number, one in enumerate(values, 1)]
    return {test.__name__ for test in ALL if test(opened)}


def test_honest_noise_raises_no_alarm_in_200_trials() -> None:
    random = np.random.default_rng(1)
    assert [flagged for _ in range(200) if (flagged := flagged_by(honest(random)))] == []


def test_short_vectors_of_honest_noise_raise_no_alarm_either() -> None:
    random = np.random.default_rng(2)
    for numel in (1, 2, 9, 100, 1025):
        for _ in range(100):
            values = list(random.standard_normal((3, numel)))
            assert flagged_by(values, numel=numel) == set()


def weaker(factor: float) -> Run:
    return lambda random: [factor * one for one in honest(random)]


def half_the_blocks_weaker(random: np.random.Generator) -> list[Doubles]:
    """Half at half the noise, the rest at more, so that the norm is as declared."""
    factors = np.repeat([(2 - 0.25) ** 0.5, 0.5], N // 2)
    return [factors * one for one in honest(random)]


def every_second_coordinate_weaker(random: np.random.Generator) -> list[Doubles]:
    factors = np.tile([(2 - 0.25) ** 0.5, 0.5], N // 2)
    return [factors * one for one in honest(random)]


def half_at_half_noise(random: np.random.Generator) -> list[Doubles]:
    return [np.where(np.arange(N) % 2, 0.5, 1.0) * one for one in honest(random)]


def laplace(random: np.random.Generator) -> list[Doubles]:
    return list(random.laplace(scale=2**-0.5, size=(ROUNDS, N)))


def same_every_round(random: np.random.Generator) -> list[Doubles]:
    return [random.standard_normal(N)] * ROUNDS


def telescoping(random: np.random.Generator) -> list[Doubles]:
    return list(np.diff(random.standard_normal((ROUNDS + 1, N)), axis=0) / 2**0.5)


def taken_back_at_the_end(random: np.random.Generator) -> list[Doubles]:
    values = honest(random)
    return [*values[:-1], -np.sum(values[:-1], axis=0) / (ROUNDS - 1) ** 0.5]


@pytest.mark.parametrize(
    ("run", "test"),
    [
        (weaker(0.9), "size"),
        (weaker(0.96), "size"),
        (weaker(0.0), "size"),
        (weaker(2.0), "size"),
        (half_at_half_noise, "size"),
        (half_the_blocks_weaker, "block_size"),
        (every_second_coordinate_weaker, "shape"),
        (laplace, "shape"),
        (same_every_round, "repetition"),
        (telescoping, "repetition"),
        (taken_back_at_the_end, "repetition"),
    ],
)
def test_wrong_noise_is_seen_every_time(run: Run, test: str) -> None:
    random = np.random.default_rng(3)
    for _ in range(10):
        assert test in flagged_by(run(random))


def test_too_little_noise_in_one_round_names_that_round() -> None:
    values = honest(np.random.default_rng(4))
    values[4] *= 0.9
    opened = [OpenedRound(number, one, 0.0, 10**7) for number, one in enumerate(values, 1)]
    assert [finding.round for finding in noise_tests.size(opened)] == [5]


@pytest.mark.parametrize("aligned", [True, False])
def test_a_signal_as_large_as_the_sampled_providers_allow_is_tolerated(aligned: bool) -> None:
    """Also one that is the same in all rounds, or follows the noise of the round before."""
    random = np.random.default_rng(5)
    for _ in range(30):
        values = honest(random)
        for index in range(ROUNDS):
            direction = np.ones(N) if aligned or not index else values[index - 1]
            values[index] = values[index] + 40 * direction / np.linalg.norm(direction)
        assert flagged_by(values, signal=40, numel=N) == set()
        assert "size" in flagged_by([5 * one for one in values], signal=40, numel=N)


def test_missing_noise_is_seen_behind_a_signal() -> None:
    random = np.random.default_rng(6)
    signal = 40 * np.ones(N) / N**0.5
    assert "size" in flagged_by([0.9 * one + 0.1 * signal for one in honest(random)], signal=40, numel=N)


def test_shape_is_not_judged_where_the_signal_may_be_strong() -> None:
    values = laplace(np.random.default_rng(7))
    assert "shape" in flagged_by(values, signal=10, numel=10**7)
    assert "shape" not in flagged_by(values, signal=1000, numel=10**7)


def test_limits_that_depend_on_the_number_of_providers_are_not_reported() -> None:
    values = [20 * one for one in same_every_round(np.random.default_rng(8))]
    for test in (noise_tests.size, noise_tests.repetition):
        few, more = (
            test([OpenedRound(number, one, signal, N) for number, one in enumerate(values, 1)])
            for signal in (3.0, 30.0)
        )
        assert few
        assert few == more
