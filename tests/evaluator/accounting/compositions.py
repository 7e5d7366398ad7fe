"""Short names for the events that the tests compose."""

import math
from collections.abc import Iterable
from typing import Literal

from scipy.special import log_ndtr, ndtr

from evaluator.accounting.pld import composed
from evaluator.mechanisms.events import (
    Event,
    FixedSizeGaussian,
    Gaussian,
    Laplace,
    PoissonGaussian,
    RandomAllocationGaussian,
    TwoStage,
)
from evaluator.mechanisms.units import Adjacency

DELTA = 1e-5
ADD_REMOVE, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE
Either = Literal[Adjacency.ADD_REMOVE, Adjacency.REPLACE]


def gaussian(noise: float, rounds: int = 1, adjacency: Either = ADD_REMOVE) -> Gaussian:
    return Gaussian(effective_noise_multiplier=noise, rounds=rounds, adjacency=adjacency)


def poisson(rate: float, noise: float, rounds: int = 1, adjacency: Either = ADD_REMOVE) -> PoissonGaussian:
    return PoissonGaussian(
        sampling_rate=rate, effective_noise_multiplier=noise, rounds=rounds, adjacency=adjacency
    )


def fixed_size(
    rate: float, noise: float, rounds: int = 1, adjacency: Either = ADD_REMOVE
) -> FixedSizeGaussian:
    return FixedSizeGaussian(
        sampling_rate=rate, effective_noise_multiplier=noise, rounds=rounds, adjacency=adjacency
    )


def allocation(
    rounds_per_cycle: int, noise: float, cycles: int = 1, adjacency: Either = ADD_REMOVE
) -> RandomAllocationGaussian:
    return RandomAllocationGaussian(
        rounds_per_cycle=rounds_per_cycle,
        effective_noise_multiplier=noise,
        rounds=cycles,
        adjacency=adjacency,
    )


def laplace(noise: float, rounds: int = 1) -> Laplace:
    return Laplace(relative_scale=noise, rounds=rounds)


def two_stage(
    client_rate: float,
    within: Gaussian | PoissonGaussian | FixedSizeGaussian | Laplace,
    rounds: int = 1,
) -> TwoStage:
    return TwoStage(client_rate=client_rate, within=within, rounds=rounds, adjacency=within.adjacency)


def gaussian_delta(epsilon: float, noise: float, rounds: int = 1) -> float:
    """The exact δ at ε of `rounds` Gaussian releases: Balle and Wang, "Improving the Gaussian Mechanism" (2018)."""
    mu = math.sqrt(rounds) / noise
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def delta_of(events: Iterable[Event], epsilon: float) -> float:
    """The official accountant's δ at ε."""
    return max((losses.delta(epsilon) for losses in composed(events)), default=0.0)
