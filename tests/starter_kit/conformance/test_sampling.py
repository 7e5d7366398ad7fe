"""Tests of random allocation, on draws that are such and on others."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from evaluator.messages.examinations import Verdict
from starter_kit.conformance.claims import Participation
from starter_kit.conformance.sampling import Draws, sampling_tests

ROUNDS, CYCLES, UNITS = 5, 40, 60
GROUP = np.repeat(np.arange(4), UNITS // 4)

Places = Callable[[np.random.Generator], np.ndarray]


def run(places: np.ndarray) -> list[Draws]:
    """A run in which the units take part at these places (cycles, units), with two rounds of one more cycle."""
    heads = (places[:, None, :] == np.arange(ROUNDS)[:, None]).reshape(-1, UNITS)[: ROUNDS * CYCLES + 2]
    return [Draws("units", heads, np.ones_like(heads), GROUP, np.ones(UNITS, dtype=int), 1 / ROUNDS)]


def failed(first: np.ndarray, second: np.ndarray) -> set[str]:
    tests = sampling_tests([run(first), run(second)], Participation.ALLOCATED)
    return {test.id for test in tests if test.verdict is not Verdict.PASSED}


def uniform(random: np.random.Generator) -> np.ndarray:
    return random.integers(ROUNDS, size=(CYCLES + 1, UNITS))


def test_uniform_places_pass() -> None:
    random = np.random.default_rng(3)
    assert [found for _ in range(40) if (found := failed(uniform(random), uniform(random)))] == []


def of_one_cycle(random: np.random.Generator) -> np.ndarray:
    return np.tile(uniform(random)[0], (CYCLES + 1, 1))


def of_a_client(random: np.random.Generator) -> np.ndarray:
    return random.integers(ROUNDS, size=(CYCLES + 1, 4))[:, GROUP]


def in_equal_parts(random: np.random.Generator) -> np.ndarray:
    return random.permuted(np.tile(np.arange(UNITS) % ROUNDS, (CYCLES + 1, 1)), axis=1)


def mostly_first(random: np.random.Generator) -> np.ndarray:
    return np.minimum(uniform(random), uniform(random))


@pytest.mark.parametrize(
    ("places", "test"),
    [
        (of_one_cycle, "allocation-in-the-next-cycle"),
        (of_a_client, "allocation-of-each-client"),
        (in_equal_parts, "allocation-of-all-units"),
        (mostly_first, "allocation-in-all-cycles"),
    ],
)
def test_other_places_fail(places: Places, test: str) -> None:
    random = np.random.default_rng(4)
    assert test in failed(places(random), places(random))


def test_a_run_that_repeats_another_fails() -> None:
    places = uniform(np.random.default_rng(5))
    assert failed(places, places) == {"allocation-in-two-runs"}


def test_coins_of_the_same_rate_fail() -> None:
    (draws,) = run(uniform(np.random.default_rng(6)))
    coins = np.random.default_rng(7).random(draws.heads.shape) < draws.rate
    tossed = Draws("units", coins, draws.could, draws.group, draws.sizes, draws.rate)
    first, *others = sampling_tests([[tossed], [tossed]], Participation.ALLOCATED)
    assert (first.id, first.verdict) == ("allocation-in-each-cycle", Verdict.FAILED)
    assert {test.verdict for test in others} == {Verdict.NO_POWER}


@pytest.mark.parametrize(("misread", "verdict"), [(3, Verdict.PASSED), (30, Verdict.FAILED)])
def test_noise_explains_a_few_units_that_took_part_twice_in_a_cycle(misread: int, verdict: Verdict) -> None:
    random = np.random.default_rng(8)
    (draws,), second = run(uniform(random)), run(uniform(random))
    draws.heads[
        random.choice(ROUNDS * CYCLES, misread, replace=False), random.integers(UNITS, size=misread)
    ] ^= True
    first, *others = sampling_tests([[replace(draws, misread=1e-6)], second], Participation.ALLOCATED)
    assert (first.id, first.verdict) == ("allocation-in-each-cycle", verdict)
    expected = Verdict.PASSED if verdict is Verdict.PASSED else Verdict.NO_POWER
    assert {test.verdict for test in others} == {expected}
