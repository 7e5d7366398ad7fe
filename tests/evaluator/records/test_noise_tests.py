"""What the opened sums show: honest noise passes, signals are tolerated, and missing noise is seen."""

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
import pytest

from evaluator.records import noise_tests
from evaluator.records.noise_tests import Doubles, OpenedRound

N = 16 * 1024
ROUNDS = 8
ALL = (
    noise_tests.size,
    noise_tests.block_size,
    noise_tests.shape,
    noise_tests.repetition,
    noise_tests.taken_back,
)

Run = Callable[[np.random.Generator], list[Doubles]]
Test = Callable[[list[OpenedRound]], object]


def honest(random: np.random.Generator) -> list[Doubles]:
    return list(random.standard_normal((ROUNDS, N)))


def opened_rounds(values: Iterable[Doubles], signal: float = 0.0) -> list[OpenedRound]:
    return [OpenedRound(number, one, signal) for number, one in enumerate(values, 1)]


def flagged_by(values: list[Doubles], signal: float = 0.0) -> set[str]:
    opened = opened_rounds(values, signal)
    return {test.__name__ for test in ALL if test(opened)}


def test_honest_noise_raises_no_alarm_in_16_trials() -> None:
    random = np.random.default_rng(1)
    assert [flagged for _ in range(16) if (flagged := flagged_by(honest(random)))] == []


def test_short_vectors_of_honest_noise_raise_no_alarm_either() -> None:
    random = np.random.default_rng(2)
    for numel in (1, 2, 9, 100, 1025):
        for _ in range(20):
            values = list(random.standard_normal((3, numel)))
            assert flagged_by(values) == set()


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
        (weaker(0.9), noise_tests.size),
        (weaker(0.96), noise_tests.size),
        (weaker(0.0), noise_tests.size),
        (weaker(2.0), noise_tests.size),
        (half_at_half_noise, noise_tests.size),
        (half_the_blocks_weaker, noise_tests.block_size),
        (every_second_coordinate_weaker, noise_tests.shape),
        (laplace, noise_tests.shape),
        (same_every_round, noise_tests.repetition),
        (telescoping, noise_tests.repetition),
        (taken_back_at_the_end, noise_tests.repetition),
        (same_every_round, noise_tests.taken_back),
    ],
)
def test_wrong_noise_is_seen_every_time(run: Run, test: Test) -> None:
    random = np.random.default_rng(3)
    for _ in range(10):
        assert test(opened_rounds(run(random)))


def test_too_little_noise_in_one_round_names_that_round() -> None:
    values = honest(np.random.default_rng(4))
    values[4] *= 0.9
    opened = opened_rounds(values)
    assert [finding.round for finding in noise_tests.size(opened)] == [5]


@pytest.mark.parametrize("aligned", [True, False])
def test_a_signal_as_large_as_the_sampled_providers_allow_is_tolerated(aligned: bool) -> None:
    """Also one that is the same in all rounds, or follows the noise of the round before."""
    random = np.random.default_rng(5)
    for _ in range(8):
        values = honest(random)
        for index in range(ROUNDS):
            direction = np.ones(N) if aligned or not index else values[index - 1]
            values[index] = values[index] + 40 * direction / np.linalg.norm(direction)
        assert flagged_by(values, signal=40) == set()
        assert noise_tests.size(opened_rounds([5 * one for one in values], 40))


def test_missing_noise_is_seen_behind_a_signal() -> None:
    random = np.random.default_rng(6)
    signal = 40 * np.ones(N) / N**0.5
    assert noise_tests.size(opened_rounds([0.9 * one + 0.1 * signal for one in honest(random)], 40))


def half_without_noise(random: np.random.Generator, size: tuple[int, int]) -> Doubles:
    return random.standard_normal(size) * (np.arange(size[1]) % 2)


def one_in_twenty_without_noise(random: np.random.Generator, size: tuple[int, int]) -> Doubles:
    return random.standard_normal(size) * (np.arange(size[1]) % 20 > 0)


def uniform(random: np.random.Generator, size: tuple[int, int]) -> Doubles:
    return random.uniform(-(3**0.5), 3**0.5, size)


def two_point(random: np.random.Generator, size: tuple[int, int]) -> Doubles:
    return random.choice([-1.0, 1.0], size)


def half_noise_with_a_signal_along_it(random: np.random.Generator, size: tuple[int, int]) -> Doubles:
    return 0.5 * random.standard_normal(size) + 0.75**0.5


def half_noise_with_a_signal_of_both_signs(random: np.random.Generator, size: tuple[int, int]) -> Doubles:
    return 0.5 * random.standard_normal(size) + 0.75**0.5 * random.choice([-1.0, 1.0], size[1])


def antithetic_neighbors(random: np.random.Generator, size: tuple[int, int]) -> Doubles:
    return np.repeat(random.standard_normal((size[0], size[1] // 2)), 2, axis=1) * np.tile(
        [1, -1], size[1] // 2
    )


def antithetic_halves(random: np.random.Generator, size: tuple[int, int]) -> Doubles:
    half = random.standard_normal((size[0], size[1] // 2))
    return np.hstack([half, -half])


def antithetic_mirror_images(random: np.random.Generator, size: tuple[int, int]) -> Doubles:
    half = random.standard_normal((size[0], size[1] // 2))
    return np.hstack([half, -half[:, ::-1]])


def the_same_noise_in_neighboring_blocks(random: np.random.Generator, size: tuple[int, int]) -> Doubles:
    blocks = random.standard_normal((size[0], size[1] // 2048, 1024))
    return np.concatenate([blocks, blocks], axis=2).reshape(size)


LIES = [
    half_without_noise,
    one_in_twenty_without_noise,
    uniform,
    two_point,
    half_noise_with_a_signal_along_it,
    half_noise_with_a_signal_of_both_signs,
    antithetic_neighbors,
    antithetic_halves,
    antithetic_mirror_images,
    the_same_noise_in_neighboring_blocks,
]
# Rounds, opened coordinates and the norm that the updates of all sampled providers may have. In the first, 400 of 400
# providers take part in each of four rounds at ε = 8, and a signal may be longer than half of the noise; in the second,
# 64 blocks of 300,000 coordinates are opened.
SETTINGS = {"dp-clgecl": (4, 32 * 1024, 105.0), "thirty rounds": (30, 64 * 1024, 40.0)}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("lie", LIES)
def test_the_shape_of_wrong_noise_is_seen_whatever_the_signal(
    lie: Callable[[np.random.Generator, tuple[int, int]], Doubles], setting: str
) -> None:
    rounds, n, signal = SETTINGS[setting]
    random = np.random.default_rng(9)
    # One that is alike in all coordinates, and differs a little from one to the next.
    updates = 0.4 + 0.1 * random.laplace(size=n)
    values = lie(random, (rounds, n)) + updates
    opened = opened_rounds(values, signal)
    assert noise_tests.shape(opened)


@pytest.mark.parametrize("setting", SETTINGS)
def test_noise_of_another_shape_in_one_round_names_that_round(setting: str) -> None:
    rounds, n, signal = SETTINGS[setting]
    random = np.random.default_rng(10)
    values = random.standard_normal((rounds, n))
    values[2] = uniform(random, (1, n))
    opened = opened_rounds(values, signal)
    assert 3 in [finding.round for finding in noise_tests.shape(opened)]


def test_noise_that_is_taken_back_is_seen_behind_a_signal_that_correlation_must_allow() -> None:
    random = np.random.default_rng(11)
    values = taken_back_at_the_end(random)
    values[-1] *= (ROUNDS - 1) ** 0.5
    values[-1] += 0.3 * random.laplace(size=N)
    opened = opened_rounds(values, 2 * N)
    assert noise_tests.repetition(opened) == []
    assert [finding.round for finding in noise_tests.taken_back(opened)] == [ROUNDS]


def test_a_signal_that_follows_all_earlier_noise_raises_no_alarm() -> None:
    """It takes the noise of the round before back, as far as its length allows."""
    random = np.random.default_rng(12)
    for _ in range(10):
        noise = honest(random)
        values = [noise[0], *(later - earlier for earlier, later in pairwise(noise))]
        assert flagged_by(values, signal=1.1 * N**0.5) == set()


def test_limits_that_depend_on_the_number_of_providers_are_not_reported() -> None:
    values = [20 * one for one in same_every_round(np.random.default_rng(8))]
    for test in (noise_tests.size, noise_tests.repetition):
        few, more = (test(opened_rounds(values, signal)) for signal in (3.0, 30.0))
        assert few
        assert few == more
