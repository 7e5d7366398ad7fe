"""ε by numerical composition of privacy loss distributions: the official accountant.

Guarantee: the returned ε is an upper bound. Every discretization is pessimistic (connect-the-dots: Doroshenko et
al., "Connect the Dots: Tighter Discrete Approximations of Privacy Loss Distributions", PoPETs 2022), both
directions of add/remove are taken, and truncated tail mass counts as an infinite loss. Identical rounds are
composed with themselves; different rounds are composed as they are and never averaged. Assumed is exact
real-number noise: see docs/privacy.md.
"""

import math
from collections.abc import Iterable, Sequence
from functools import reduce

from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution, from_gaussian_mechanism

from evaluator.accounting.mechanisms import PoissonGaussian, check_delta, grouped

# The grid is what precision and speed are traded by. On 1e-3 one ε takes some 20 ms and agrees with a grid of 1e-4
# to 1e-4 in ε over tens of rounds. The pessimism grows with rounds × interval², so the interval shrinks with the
# square root of the number of rounds. The cap on points keeps a run with hardly any noise, whose loss spans
# thousands, from taking gigabytes: there the grid is coarser and the bound, still sound, less tight.
MAX_INTERVAL = 1e-3
ROOT_TOTAL_INTERVAL = 1e-2
MAX_POINTS_PER_ROUND = 2**16


def epsilon(mechanisms: Iterable[PoissonGaussian], delta: float) -> float:
    """Upper bound on ε at δ of the composition of `mechanisms`; 0 for none, infinite where no ε holds."""
    check_delta(delta)
    groups = grouped(mechanisms)
    if not groups:
        return 0.0
    interval = loss_interval(groups)
    composed = reduce(PrivacyLossDistribution.compose, (_distribution(group, interval) for group in groups))
    return float(composed.get_epsilon_for_delta(delta))


def loss_interval(mechanisms: Sequence[PoissonGaussian]) -> float:
    """The width of the grid on which the privacy losses of this composition lie."""
    rounds = sum(mechanism.rounds for mechanism in mechanisms)
    sigma = min((mechanism.noise_multiplier for mechanism in mechanisms), default=1.0)
    loss_range = 1 / (2 * sigma**2) + 10 / sigma  # of one unsampled round, out to ten standard deviations
    return max(
        min(MAX_INTERVAL, ROOT_TOTAL_INTERVAL / math.sqrt(max(rounds, 1))), loss_range / MAX_POINTS_PER_ROUND
    )


def _distribution(mechanism: PoissonGaussian, interval: float) -> PrivacyLossDistribution:
    one_round = from_gaussian_mechanism(
        mechanism.noise_multiplier,
        sampling_prob=mechanism.sampling_rate,
        value_discretization_interval=interval,
        pessimistic_estimate=True,
        use_connect_dots=True,
    )
    return one_round.self_compose(mechanism.rounds)
