"""What the noise tests say they would have detected, compared with what they detect in simulation.

Each deviation is simulated with a signal that hides it, of the norm that the expected providers' updates can have.
"""

import math

import numpy as np
import pytest

from evaluator.records import noise_tests
from evaluator.records.noise_power import RoundSize, bare_share_detected, noise_detected, reuse_detected
from evaluator.records.noise_tests import Doubles, OpenedRound

ROUNDS = 4
TRIALS = 20
SIZES = [RoundSize(coordinates=8 * 1024, numel=8 * 1024, signal=signal) for signal in (0.0, 10.0, 20.0, 40.0)]


def opened(values: list[Doubles], size: RoundSize) -> list[OpenedRound]:
    return [OpenedRound(number, one, size.signal) for number, one in enumerate(values, 1)]


def like_noise(random: np.random.Generator, size: RoundSize, chosen: Doubles | float = 1.0) -> Doubles:
    """A signal of the largest norm, in the coordinates that are chosen by 1 and not by 0."""
    signal = random.standard_normal(size.coordinates) * chosen
    found: Doubles = size.signal * signal / max(float(np.linalg.norm(signal)), 1e-9)
    return found


def rounds_with(random: np.random.Generator, size: RoundSize, wrong: Doubles) -> list[OpenedRound]:
    """Honest rounds, but for a third one of these values."""
    values = [random.standard_normal(size.coordinates) for _ in range(ROUNDS)]
    values[2] = wrong
    return opened(values, size)


@pytest.mark.parametrize("size", SIZES)
def test_noise_below_what_is_stated_is_detected_and_a_little_more_than_it_is_not(size: RoundSize) -> None:
    random = np.random.default_rng(1)
    stated = noise_detected([size] * ROUNDS)

    def detected(share: float) -> int:
        return sum(
            bool(
                noise_tests.size(
                    rounds_with(
                        random,
                        size,
                        share * random.standard_normal(size.coordinates) + like_noise(random, size),
                    )
                )
            )
            for _ in range(TRIALS)
        )

    assert 0.5 < stated < 0.96
    assert detected(stated) >= TRIALS - 1
    assert detected(min(1.0, stated * 1.04)) <= TRIALS / 2


@pytest.mark.parametrize("size", SIZES)
def test_coordinates_without_noise_are_detected_from_the_stated_share_on(size: RoundSize) -> None:
    random = np.random.default_rng(2)
    stated = bare_share_detected([size] * ROUNDS)

    def detected(share: float) -> int:
        found = 0
        for _ in range(TRIALS):
            bare = (random.permutation(size.coordinates) < share * size.coordinates).astype(np.float64)
            wrong = random.standard_normal(size.coordinates) * (1 - bare) + like_noise(random, size, bare)
            found += bool(noise_tests.shape(rounds_with(random, size, wrong)))
        return found

    assert stated < 0.5
    assert detected(stated) >= TRIALS - 1
    assert detected(stated * 0.4) <= TRIALS / 2


@pytest.mark.parametrize("size", SIZES[:3])
def test_noise_that_is_taken_back_is_detected_from_the_stated_part_on(size: RoundSize) -> None:
    random = np.random.default_rng(3)
    stated = reuse_detected([size] * ROUNDS)

    def detected(part: float) -> int:
        found = 0
        for _ in range(TRIALS):
            values = [random.standard_normal(size.coordinates) for _ in range(ROUNDS)]
            earlier = values[0]
            values[2] = math.sqrt(1 - part**2) * values[2] - part * earlier
            # A signal that makes the correlation smaller.
            values[2] += size.signal * earlier / np.linalg.norm(earlier)
            rounds = opened(values, size)
            found += bool(noise_tests.repetition(rounds) or noise_tests.taken_back(rounds))
        return found

    assert stated < 1
    assert detected(stated) >= TRIALS - 1
    assert detected(stated * 0.4) <= TRIALS / 2


def test_a_signal_as_long_as_the_noise_can_hide_everything() -> None:
    strong = [RoundSize(coordinates=8 * 1024, numel=8 * 1024, signal=100.0)] * ROUNDS
    assert noise_detected(strong) == 0
    assert bare_share_detected(strong) > 1
    assert reuse_detected(strong) > 1


def test_rounding_hides_the_shape_and_little_of_the_size() -> None:
    exact = RoundSize(coordinates=8 * 1024, numel=8 * 1024, signal=10.0)
    rounded = [RoundSize(coordinates=8 * 1024, numel=8 * 1024, signal=10.0, rounded=True)] * ROUNDS
    assert bare_share_detected(rounded) == math.inf
    assert 0 < noise_detected([exact] * ROUNDS) - noise_detected(rounded) < 0.02
