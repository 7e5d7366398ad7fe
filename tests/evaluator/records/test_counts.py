"""Whether counts are those of coins, or of random allocation."""

import numpy as np
import pytest

from evaluator.records.counts import allocation_probability, coin_probability


@pytest.mark.parametrize("population", [1, 2, 10, 400])
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("rounds", [1, 2, 10, 100])
def test_honest_coins_are_not_suspected(population: int, rate: float, rounds: int) -> None:
    random = np.random.default_rng(0)
    for _ in range(30):
        counts = random.binomial(population, rate, rounds)
        assert coin_probability([(int(count), rate) for count in counts], population) > 1e-4


def test_rates_that_change_are_each_their_own() -> None:
    random = np.random.default_rng(1)
    rates = [0.1] * 40 + [0.8] * 40
    counts = [(int(random.binomial(50, rate)), rate) for rate in rates]
    assert coin_probability(counts, 50) > 1e-4
    assert coin_probability([(count, 0.45) for count, _ in counts], 50) < 1e-4


@pytest.mark.parametrize(
    ("counts", "rate"),
    [
        ([2] * 20, 0.2),  # a fixed number
        ([1] * 40, 0.2),  # too few
        ([3] * 40, 0.2),  # too many
        ([0] * 32 + [10] * 8, 0.2),  # all or nothing
        ([11], 0.9),  # more than there are
        ([9] * 3, 1.0),  # not all, though every coin shows heads
    ],
)
def test_other_counts_are_suspected(counts: list[int], rate: float) -> None:
    assert coin_probability([(count, rate) for count in counts], 10) < 1e-4


def test_a_short_run_hides_a_fixed_number() -> None:
    assert coin_probability([(2, 0.2)] * 10, 10) > 1e-4


def test_no_rounds_and_nobody_are_nothing_odd() -> None:
    assert coin_probability([], 10) == 1
    assert coin_probability([(0, 0.3)] * 5, 0) == 1
    assert coin_probability([(10, 1.0)] * 5, 10) == 1


@pytest.mark.parametrize(
    ("population", "rounds", "cycles"), [(1, 4, 4), (3, 20, 2), (40, 4, 4), (400, 20, 5), (30, 10, 1)]
)
def test_honest_allocations_are_not_suspected(population: int, rounds: int, cycles: int) -> None:
    random = np.random.default_rng(0)
    for _ in range(30):
        counts = random.multinomial(population, [1 / rounds] * rounds, cycles + 1).tolist()
        # Of the last cycle, only the first rounds are known.
        assert allocation_probability([*counts[:-1], counts[-1][:3]], population, rounds) > 1e-4


@pytest.mark.parametrize(
    "cycles",
    [
        [[10] * 4] * 4,  # shuffled, and cut into equal parts
        [[40, 0, 0, 0]],  # all in one round
        [[18, 2, 18, 2]] * 4,  # every other round preferred
    ],
)
def test_other_allocations_are_suspected(cycles: list[list[int]]) -> None:
    assert allocation_probability(cycles, 40, 4) < 1e-4
