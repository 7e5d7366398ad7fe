"""ε by Rényi differential privacy: shown beside the official ε, and comparable with the published numbers.

Guarantee: an upper bound, from 12 % above the PLD accountant's to nearly its double in the published settings. The
sampled Gaussian mechanism is bounded as in Mironov, Talwar and Zhang, "Rényi Differential Privacy of the Sampled
Gaussian Mechanism" (2019), over the orders of the competition's published script.
"""

import logging
from collections.abc import Iterable

from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant

from evaluator.accounting.mechanisms import PoissonGaussian, check_delta, grouped

ORDERS = [1 + tenth / 10 for tenth in range(1, 100)] + [float(order) for order in range(12, 64)]


def epsilon(mechanisms: Iterable[PoissonGaussian], delta: float) -> float:
    """Upper bound on ε at δ of the composition of `mechanisms`; 0 for none."""
    check_delta(delta)
    groups = grouped(mechanisms)
    if not groups:
        return 0.0
    accountant = RdpAccountant(ORDERS, NeighboringRelation.ADD_OR_REMOVE_ONE)
    for group in groups:
        round_event = PoissonSampledDpEvent(group.sampling_rate, GaussianDpEvent(group.noise_multiplier))
        accountant.compose(round_event, group.rounds)
    return float(accountant.get_epsilon(delta))


def _is_worth_reading(record: logging.LogRecord) -> bool:
    """The library warns of every order at which its series doesn't converge; it leaves that order out, soundly."""
    return "_compute_log_a_frac failed to converge" not in str(record.msg)


logging.getLogger("absl").addFilter(_is_worth_reading)
