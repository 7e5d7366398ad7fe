"""How often an audit accuses an honest run, and how often it finds a gross fault: by simulation.

The simulated score is what the best possible auditor of a released model sees, one who knows the direction in which
each canary moves it: the sum over T rounds of the canary's clipped contribution, where it was sampled, and of the noise
along its direction. A loss shows less. So the false alarms hold for every score, and the power is an upper bound: what
the simulation doesn't find, nothing finds by this audit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from evaluator.accounting.calibration import noise_multiplier
from evaluator.accounting.membership import membership_bounds, privacy_profiles
from evaluator.auditing.audit import ALPHA, Claim, claim_p_value
from evaluator.auditing.escrow import GUESS_SHARE
from evaluator.mechanisms.events import PoissonGaussian

DELTA = 1e-5
EPSILONS = (1, 4, 8)
CANARIES = (100, 400, 1000)
TEAMS = 10
# Of the Gaussian that bounds the claimed mechanism: far below δ, as the bound is used on hundreds of canaries at once.
CURVE_DELTA = 1e-9


@dataclass(frozen=True)
class Rounds:
    """How a run samples its providers."""

    name: str
    sampling_rate: float
    rounds: int


SAMPLINGS = (
    Rounds("10 rounds of every 5th provider", 0.2, 10),
    Rounds("30 rounds of every 44th provider", 0.0225, 30),
)


class Fault(StrEnum):
    """What a simulated run does wrong."""

    NONE = "none"
    TENTH_OF_NOISE = "a tenth of the noise"
    NO_CLIP_NO_NOISE = "no clip and no noise"


# Of what reaches the model from other providers, along a canary's direction, where nothing is noised.
CROSS_TALK = 0.1
UNCLIPPED = 10.0


@dataclass(frozen=True)
class Simulated:
    """How many of `runs` audits refute the claim: by themselves, and among ten teams at once."""

    rounds: Rounds
    epsilon: int
    canaries: int
    fault: Fault
    runs: int
    refuted: int
    refuted_among_teams: int


def simulate(
    honest_runs: int = 1000,
    faulty_runs: int = 100,
    samplings: Sequence[Rounds] = SAMPLINGS,
    epsilons: Sequence[int] = EPSILONS,
    seed: int = 0,
) -> Iterator[Simulated]:
    """Yield the counts for every sampling, claim, number of canaries and fault; the same for the same seed."""
    for rounds in samplings:
        for epsilon in epsilons:
            noise, claim = _claimed(rounds, epsilon)
            for canaries in CANARIES:
                guesses = round(GUESS_SHARE * canaries)
                p_values = np.array(
                    [claim_p_value(canaries, guesses, right, claim) for right in range(guesses + 1)]
                )
                for fault in Fault:
                    runs = honest_runs if fault is Fault.NONE else faulty_runs
                    rng = np.random.default_rng([seed, rounds.rounds, epsilon, canaries, len(fault)])
                    found = p_values[[_right(rng, rounds, noise, canaries, fault) for _ in range(runs)]]
                    yield Simulated(
                        rounds,
                        epsilon,
                        canaries,
                        fault,
                        runs,
                        int((found < ALPHA).sum()),
                        int((found < ALPHA / TEAMS).sum()),
                    )


def _claimed(rounds: Rounds, epsilon: int) -> tuple[float, Claim]:
    """Return the noise multiplier of an honest run, and what it claims."""

    def events(noise: float) -> list[PoissonGaussian]:
        return [
            PoissonGaussian(
                sampling_rate=rounds.sampling_rate, effective_noise_multiplier=noise, rounds=rounds.rounds
            )
        ]

    noise = noise_multiplier(epsilon, DELTA, events)
    bounds = membership_bounds(privacy_profiles(events(noise)), CURVE_DELTA)
    return noise, Claim(epsilon, DELTA, bounds.gaussian_mu)


def _right(rng: np.random.Generator, rounds: Rounds, noise: float, canaries: int, fault: Fault) -> int:
    """Return how many guesses are right in one run."""
    coins = rng.random(canaries) < 0.5
    sampled = rng.binomial(rounds.rounds, rounds.sampling_rate, size=canaries) * coins
    scale = {Fault.NONE: noise, Fault.TENTH_OF_NOISE: noise / 10, Fault.NO_CLIP_NO_NOISE: CROSS_TALK}[fault]
    size = UNCLIPPED if fault is Fault.NO_CLIP_NO_NOISE else 1.0
    scores = size * sampled + scale * np.sqrt(rounds.rounds) * rng.normal(size=canaries)
    guesses = round(GUESS_SHARE * canaries)
    return int(coins[np.argpartition(-scores, guesses)[:guesses]].sum())
