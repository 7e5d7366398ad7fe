"""Random allocation: its bound against simulated outputs, integration, and the mechanisms that contain it."""

import math

import numpy as np
import pytest

from evaluator.accounting import pld
from evaluator.accounting.allocation import DiscretePair, allocation_pairs
from evaluator.accounting.calibration import noise_multiplier
from evaluator.accounting.pairs import GaussianPair
from evaluator.mechanisms.events import UnsupportedError
from tests.evaluator.accounting.compositions import DELTA, REPLACE, allocation, gaussian, poisson

# Rounds in a cycle, cycles, σ, the contribution with which outputs are drawn so that losses near ε are frequent, the
# part of the cycles that have it, and how many runs are drawn.
SIMULATED = [
    pytest.param(10, 1, 1.4784, 6, 0.9, 100_000, id="epsilon-1-once-in-10"),
    pytest.param(10, 1, 0.7343, 4, 0.9, 40_000, id="epsilon-4-once-in-10"),
    pytest.param(10, 1, 0.4880, 3, 0.9, 40_000, id="epsilon-8-once-in-10"),
    pytest.param(4, 4, 3.7894, 6, 0.9, 150_000, id="epsilon-1-four-times-in-16"),
    pytest.param(4, 4, 0.8298, 3, 0.7, 40_000, id="epsilon-8-four-times-in-16"),
    pytest.param(20, 3, 0.7964, 3, 0.7, 40_000, id="epsilon-4-three-times-in-60"),
    pytest.param(30, 1, 1.1038, 6, 0.9, 50_000, id="epsilon-1-once-in-30"),
]


def simulated_losses(
    rounds: int, cycles: int, noise: float, shift: float, part: float, runs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Losses (runs,) of a removed unit, and how much likelier each is than it was drawn."""
    rng = np.random.default_rng(11)
    outputs = rng.normal(0, noise, (runs, cycles, rounds))
    outputs[:, :, 0] += np.where(rng.random((runs, cycles)) < part, shift, 1)

    def log_ratios(contribution: float) -> np.ndarray:
        exponents = (2 * contribution * outputs - contribution**2) / (2 * noise**2)
        return np.asarray(np.log(np.exp(exponents).mean(axis=2)))

    losses = log_ratios(1)
    return losses.sum(axis=1), 1 / np.prod(1 - part + part * np.exp(log_ratios(shift) - losses), axis=1)


def epsilon_at_least(losses: np.ndarray, weights: np.ndarray) -> float:
    """The largest ε whose simulated δ is above `DELTA` by four standard errors."""
    low, high = 0.0, 20.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        terms = weights * np.maximum(0, 1 - np.exp(middle - losses))
        at_least = terms.mean() - 4 * terms.std() / math.sqrt(len(terms))
        low, high = (middle, high) if at_least > DELTA else (low, middle)
    return low


@pytest.mark.parametrize(("rounds", "cycles", "noise", "shift", "part", "runs"), SIMULATED)
def test_epsilon_is_at_least_its_simulated_lower_bound_and_at_most_two_percent_more(
    rounds: int, cycles: int, noise: float, shift: float, part: float, runs: int
) -> None:
    least = epsilon_at_least(*simulated_losses(rounds, cycles, noise, shift, part, runs))
    assert least <= pld.epsilon([allocation(rounds, noise, cycles)], DELTA) <= 1.02 * least


def deltas(pair: DiscretePair | GaussianPair, epsilons: np.ndarray) -> np.ndarray:
    p, q = pair.tails(epsilons)
    return np.asarray(p - np.exp(epsilons) * q)


@pytest.mark.parametrize("noise", [0.6, 1.0, 3.0])
def test_both_directions_of_two_rounds_are_just_above_those_by_integration(noise: float) -> None:
    points = np.linspace(-9, 10, 1501) * max(1, noise)
    mass = np.exp(-((points / noise) ** 2) / 2)
    mass /= mass.sum()
    once = np.exp((2 * points - 1) / (2 * noise**2))
    ratio, weights = (once[:, None] + once) / 2, mass[:, None] * mass
    epsilons = np.array([-0.5, 0.0, 0.2, 1.0])
    removal, addition = (deltas(pair, epsilons) for pair in allocation_pairs(2, noise))
    for epsilon, removed, added in zip(epsilons, removal, addition, strict=True):
        for found, terms in (
            (removed, ratio - math.exp(epsilon)),
            (added, 1 - math.exp(epsilon) * ratio),
        ):
            exact = float((weights * np.maximum(terms, 0)).sum())
            assert exact * (1 - 1e-6) <= found <= exact * 1.01 + 1e-9


@pytest.mark.parametrize(("rounds", "noise"), [(2, 0.5), (7, 0.1), (60, 2.0), (30, 1e4)])
def test_a_pair_has_nearly_all_of_its_mass_at_finite_losses(rounds: int, noise: float) -> None:
    for pair in allocation_pairs(rounds, noise):
        assert pair.p_above[0] == pytest.approx(1, abs=1e-12)
        assert pair.q_above[0] <= 1
        assert 0 < pair.p_above[-1] < 2e-8
        assert (np.diff(pair.losses) > 0).all()


def test_a_wider_grid_is_never_below_a_finer_one() -> None:
    epsilons = np.linspace(-1, 2, 13)
    coarse, middle, fine = (
        np.array([deltas(pair, epsilons) for pair in allocation_pairs(12, 1.1, resolution)])
        for resolution in (0.2, 0.1, 0.05)
    )
    assert (coarse >= middle - 1e-9).all()
    assert (middle >= fine - 1e-9).all()


@pytest.mark.parametrize("noise", [0.7, 1.5, 4.0])
def test_a_longer_cycle_hides_more_and_a_known_round_less(noise: float) -> None:
    cycle = pld.epsilon([allocation(8, noise, 3)], DELTA)
    longer = pld.epsilon([allocation(16, noise, 3)], DELTA)
    assert longer < cycle < pld.epsilon([gaussian(noise, 3)], DELTA)


def test_it_needs_less_noise_than_coins_of_the_same_rate() -> None:
    for epsilon in (1, 4, 8):
        allocated = noise_multiplier(epsilon, DELTA, lambda noise: [allocation(5, noise, 4)])
        assert (
            0.85
            < allocated / noise_multiplier(epsilon, DELTA, lambda noise: [poisson(0.2, noise, 20)])
            < 0.95
        )


def test_no_bound_is_known_under_replacement() -> None:
    with pytest.raises(UnsupportedError, match="random allocation under replacement"):
        pld.epsilon([allocation(8, 1.0, adjacency=REPLACE)], DELTA)
