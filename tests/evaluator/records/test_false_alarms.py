"""With what probability the noise tests flag an honest run: computed from the limits that they use, not counted.

Sums over all tests of a run are upper bounds, as two may flag the same one. `tests.studies.false_alarms` counts.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi2, norm

from evaluator.communication import nf4
from evaluator.records import noise_tests
from evaluator.records.certificate import BLOCK
from evaluator.records.characteristic_function import FREQUENCIES, limit
from evaluator.records.noise_tests import (
    FALSE_ALARM,
    FALSE_ALARM_OF_A_RUN,
    MOST_EARLIER,
    SHORTEST_BLOCK,
    OpenedRound,
    correlation_limit,
    least_norm,
    shape_p,
    size_p,
    taken_back_p,
)

Doubles = NDArray[np.float64]

# Rounds, and opened coordinates of each.
RUNS = [(1, 9), (2, 64 * BLOCK), (3, 700), (20, 9 * BLOCK + 5), (32, 64 * BLOCK), (500, 4 * BLOCK)]


def of_size(rounds: int, n: int) -> float:
    """Too small, exactly, and too large, by the concentration of a Lipschitz function at the limit of the test."""
    p = size_p(rounds)
    too_small = float(chi2.cdf(n * least_norm(n, p, rounded=False) ** 2, n))
    return rounds * (too_small + math.exp(-(math.sqrt(-2 * math.log(p)) ** 2) / 2))


def of_block_size(rounds: int, n: int) -> float:
    lengths = [length for length in block_lengths(n) if length >= SHORTEST_BLOCK]
    p = FALSE_ALARM / max(1, rounds * len(lengths))
    return rounds * sum(
        float(chi2.cdf(length * least_norm(length, p, rounded=False) ** 2, length)) for length in lengths
    )


def of_repetition(rounds: int, n: int) -> float:
    """Each pair of rounds, and the sum of all rounds before a round, with either sign."""
    products = rounds * (rounds - 1) // 2 + rounds - 1
    return products * 2 * float(norm.sf(correlation_limit(rounds)))


def of_taken_back(rounds: int, n: int) -> float:
    """At most so many earlier rounds with either sign, and the sum of all, at every frequency."""
    sums = sum(2 * min(later, MOST_EARLIER) + 1 for later in range(1, rounds))
    return sums * len(FREQUENCIES) * taken_back_p(rounds)


def of_shape(rounds: int, n: int) -> float:
    """As many comparisons as the test makes: it looks the limit up for each of them."""

    def comparisons(count: int) -> int:
        limit.cache_clear()
        noise_tests.shape([OpenedRound(number, np.zeros(n), 0.0) for number in range(1, count + 1)])
        info = limit.cache_info()
        return info.hits + info.misses

    of_one_round = comparisons(1)
    of_all_together = comparisons(2) - 2 * of_one_round if rounds > 1 else 0
    return (rounds * of_one_round + of_all_together) * shape_p(rounds, n)


KINDS = [of_size, of_block_size, of_repetition, of_taken_back, of_shape]


def block_lengths(n: int) -> list[int]:
    return [min(BLOCK, n - begin) for begin in range(0, n, BLOCK)]


@pytest.mark.parametrize(("rounds", "n"), RUNS)
def test_all_tests_of_a_run_together_flag_an_honest_one_with_a_probability_of_at_most_one_in_100_000(
    rounds: int, n: int
) -> None:
    of_kinds = [of_kind(rounds, n) for of_kind in KINDS]
    assert max(of_kinds) <= FALSE_ALARM * (1 + 1e-9)
    assert sum(of_kinds) <= FALSE_ALARM_OF_A_RUN * (1 + 1e-9)
    assert FALSE_ALARM_OF_A_RUN == 1e-5


@pytest.mark.parametrize("frequency", [1.0, 2.0, 4.0])
def test_the_length_of_a_characteristic_function_is_beyond_its_limit_less_often_than_stated(
    frequency: float,
) -> None:
    """If a sum is this long, its part along one of 32 directions is nearly as long. The exact tails of these add up."""
    n, p, directions = 256, 1e-9, 32
    least = limit(n, frequency, p) * math.cos(math.pi / directions)
    tails = [
        tail_of_cosines(n, frequency, 2 * math.pi * number / directions, least)
        for number in range(directions // 2 + 1)
    ]
    # The noise is symmetric, so the other directions are mirror images.
    assert 2 * sum(tails) < p


def tail_of_cosines(n: int, frequency: float, angle: float, least: float) -> float:
    """P(mean cos(kz + angle) ≥ least) of n values from N(0, 1), with cosines rounded up to a lattice.

    The sum's distribution is the n-th power of the transform of one cosine's, tilted so that the tail is in the middle
    and transforms are exact enough.
    """
    cells = 128
    points = (np.arange(cells + 1) - cells // 2) * 2 / cells
    z = np.linspace(-9, 9, 4001)
    cosines = np.ceil(np.cos(frequency * z + angle) * cells / 2 - 1e-9).astype(int) + cells // 2
    weights = np.bincount(cosines, norm.pdf(z) / norm.pdf(z).sum(), minlength=cells + 1)

    def tilted(by: float) -> Doubles:
        return np.asarray(weights * np.exp(by * points))

    by = brentq(lambda by: float(tilted(by) @ points / tilted(by).sum()) - least, -60, 60)
    total = float(tilted(by).sum())
    length = n * cells + 1
    sums = np.fft.irfft(np.fft.rfft(tilted(by) / total, 2 * length) ** n, 2 * length)[:length]
    at = (np.arange(length) - n * (cells // 2)) * 2 / cells
    beyond = at >= n * least
    return float(np.maximum(sums[beyond], 0) @ np.exp(n * math.log(total) - by * at[beyond]))


@pytest.mark.parametrize("coordinates", [SHORTEST_BLOCK, BLOCK, 64 * BLOCK])
@pytest.mark.parametrize("tests", [4, 128, 4096])
def test_a_clients_noise_alone_in_nf4_is_below_the_limit_less_often_than_stated(
    coordinates: int, tests: int
) -> None:
    p = FALSE_ALARM / tests
    energy = coordinates * least_norm(coordinates, p, rounded=True) ** 2
    assert at_most(energy, coordinates // nf4.BLOCK) < p


def at_most(energy: float, blocks: int) -> float:
    """P(the energy of so many NF4 blocks is at most this), from its transform, on a line through the saddle point."""

    def log_of(by: NDArray[np.complex128]) -> NDArray[np.complex128]:
        return by * energy + blocks * np.log(transform_of_an_nf4_block(by)) - np.log(by)

    real = np.geomspace(0.01, 20, 100).astype(np.complex128)
    saddle = float(real[np.argmin(log_of(real).real)].real)
    # The integrand falls like a normal density of this width.
    width = saddle / math.sqrt(32 * blocks)
    line = np.asarray(saddle + 1j * width * np.linspace(0, 12, 400), np.complex128)
    return float(np.trapezoid(np.exp(log_of(line)).real, line.imag) / math.pi)


def transform_of_an_nf4_block(by: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """E e^(−by·energy) of a block of values from N(0, 1) in NF4.

    Given the largest of them, which NF4 keeps as it is, the others are independent and below it.
    """
    levels = nf4.LEVELS.astype(np.float64)
    edges = np.concatenate([[-1.0], nf4.MIDPOINTS.astype(np.float64), [1.0]])
    largest = np.linspace(1e-3, 8, 1000)
    in_level = np.diff(norm.cdf(np.outer(largest, edges)), axis=1)
    density = nf4.BLOCK * 2 * norm.pdf(largest)
    found = []
    for one in by:
        others = (in_level * np.exp(-one * np.outer(largest**2, levels**2))).sum(axis=1)
        found.append(np.trapezoid(density * np.exp(-one * largest**2) * others ** (nf4.BLOCK - 1), largest))
    return np.array(found)
