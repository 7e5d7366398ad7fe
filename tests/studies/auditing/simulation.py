"""How often an audit accuses an honest run, and how often it finds a gross fault: by simulation.

The simulated score is what the best possible auditor of a released model sees, one who knows the direction in which
each canary moves it: the sum over T rounds of the canary's clipped contribution, where it was sampled, and of the noise
along its direction. A loss shows less. So the false alarms hold for every score, and the power is an upper bound: what
the simulation doesn't find, nothing finds by this audit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import product

import numpy as np

from evaluator.accounting.calibration import noise_multiplier
from evaluator.accounting.membership import membership_bounds, privacy_profiles
from evaluator.auditing.audit import ALPHA, Claim, claim_p_value
from evaluator.auditing.escrow import GUESS_SHARE
from evaluator.mechanisms.events import PoissonGaussian
from evaluator.records.noise_tests import Doubles
from tests.studies.study import completed

DELTA = 1e-5
EPSILONS = (1, 4, 8)
CANARIES = (100, 400, 1000)
TEAMS = 10
HONEST_RUNS, FAULTY_RUNS = 1000, 100
SEED = 0
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
class Case:
    """What is simulated: `runs` audits with so many canaries, of runs with a claim and a fault."""

    rounds: Rounds
    epsilon: int
    canaries: int
    fault: Fault
    runs: int


@dataclass(frozen=True)
class Simulated(Case):
    """How many of the audits refute the claim: by themselves, and among ten teams at once."""

    refuted: int
    refuted_among_teams: int


def cases(samplings: Sequence[Rounds] = SAMPLINGS, epsilons: Sequence[int] = EPSILONS) -> list[Case]:
    """Return every combination of sampling, claim, number of canaries and fault."""
    return [
        Case(rounds, epsilon, canaries, fault, HONEST_RUNS if fault is Fault.NONE else FAULTY_RUNS)
        for rounds, epsilon, canaries, fault in product(samplings, epsilons, CANARIES, Fault)
    ]


def run(earlier: list[Simulated] | None = None) -> Iterator[list[Simulated]]:
    """Simulate the cases that are missing; yield the counts of all."""
    kept = {case_of(found): found for found in earlier or []}
    return completed(cases(), kept, simulate)


def case_of(found: Simulated) -> Case:
    """Return what was simulated."""
    return Case(found.rounds, found.epsilon, found.canaries, found.fault, found.runs)


def simulate(case: Case) -> Simulated:
    """Return the counts of a case; the same each time."""
    rounds, canaries = case.rounds, case.canaries
    noise, claim = _claimed(rounds, case.epsilon)
    rng = np.random.default_rng([SEED, rounds.rounds, case.epsilon, canaries, len(case.fault)])
    right = [_right(rng, rounds, noise, canaries, case.fault) for _ in range(case.runs)]
    found = _p_values(canaries, claim)[right]
    refuted, among_teams = int((found < ALPHA).sum()), int((found < ALPHA / TEAMS).sum())
    return Simulated(**vars(case), refuted=refuted, refuted_among_teams=among_teams)


@cache
def _p_values(canaries: int, claim: Claim) -> Doubles:
    """Return the p-value of a claim for each number of right guesses."""
    guesses = round(GUESS_SHARE * canaries)
    return np.array([claim_p_value(canaries, guesses, right, claim) for right in range(guesses + 1)])


@cache
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
