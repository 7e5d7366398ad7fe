"""ε by Rényi differential privacy: looser than PLD, and comparable with the published numbers.

Guarantee: an upper bound. The Poisson-sampled Gaussian is bounded as in Mironov, Talwar and Zhang, "Rényi Differential
Privacy of the Sampled Gaussian Mechanism" (2019), by dp-accounting, over the orders of the competition's published
script; a fixed-size sample under add/remove is one at half of the noise (see `pairs`). A round that happens with
probability C, visibly, has the Rényi divergence ln(1 − C + C·e^((α−1)D))/(α−1), where D is that of the round itself.

Not all orders need be tried. (α − 1)D is convex in α, for a composition as for a round, and so is what the conversion
to ε adds: ln(1/δ) − ln α + (α − 1)ln(1 − 1/α). Their sum over α − 1 is ε, which thus falls and then rises. The least
one is searched for among the whole orders, which are quick to compute, and then between the neighbors of the best.
"""

import logging
import math
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
from dp_accounting import (
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
)
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp.rdp_privacy_accountant import compute_delta, compute_epsilon

from evaluator.accounting.pairs import Floats
from evaluator.mechanisms.events import (
    AdmmLaplace,
    Event,
    FedAvgLaplace,
    FixedSizeGaussian,
    Gaussian,
    Laplace,
    PoissonGaussian,
    RandomAllocationGaussian,
    SingleStage,
    TwoStage,
    UnsupportedError,
    check_delta,
    merged,
)
from evaluator.mechanisms.units import Adjacency

ORDERS = np.array([1 + tenth / 10 for tenth in range(1, 100)] + [float(order) for order in range(12, 64)])
WHOLE = np.flatnonzero(ORDERS % 1 == 0)


def epsilon(events: Iterable[Event], delta: float) -> float:
    """Return an upper bound on ε at δ of the composition of `events`, 0 for none.

    The bound is infinite where no order gives one.

    Raises:
        UnsupportedError: No bound is known here for one of the events under its adjacency.
        ValueError: δ is not in (0, 1), or the events don't compose.
    """
    check_delta(delta)
    composition = merged(events)
    if not composition:
        return 0.0

    @cache
    def bound(index: int) -> float:
        """Return ε by one order."""
        order = ORDERS[index : index + 1]
        divergences = sum(event.rounds * _divergences(event, order) for event in composition)
        return float(compute_epsilon(order, divergences, delta)[0])

    best = _position_of_least(lambda position: bound(int(WHOLE[position])), len(WHOLE))
    first = int(WHOLE[best - 1]) if best else 0
    last = int(WHOLE[best + 1]) if best + 1 < len(WHOLE) else len(ORDERS) - 1
    least = first + _position_of_least(lambda position: bound(first + position), last - first + 1)
    return bound(least)


def best_of(events: Iterable[Event], delta: float, runs: float) -> float:
    """Return an upper bound on ε at δ of the best of a random number of runs, each of which releases `events`.

    Nothing of the other runs is released. Only a random number can be bounded so: Papernot and Steinke, "Hyperparameter
    Tuning with Renyi Differential Privacy" (2022), theorem 6. It needs nothing of a run but its Rényi divergences.

    Args:
        runs: The mean of their number, which is Poisson-distributed; above 0.

    Raises:
        UnsupportedError: No bound is known here for one of the events under its adjacency.
        ValueError: An argument is out of range, or the events don't compose.
    """
    check_delta(delta)
    if not 0 < runs < math.inf:
        raise ValueError(f"the mean number of runs must be above 0, not {runs}")
    composition = merged(events)
    if not composition:
        return 0.0
    divergences = sum(event.rounds * _divergences(event, ORDERS) for event in composition)
    deltas = np.array(
        [compute_delta(ORDERS, divergences, math.log1p(1 / (order - 1)))[0] for order in ORDERS]
    )
    of_the_best = np.maximum(divergences + runs * deltas + math.log(runs) / (ORDERS - 1), 0)
    return float(compute_epsilon(ORDERS, of_the_best, delta)[0])


def _position_of_least(value: Callable[[int], float], count: int) -> int:
    """Return the position of the least of `count` values that fall and then rise.

    Infinite ones, at orders for which the series of dp-accounting doesn't converge, may be anywhere among them: where
    one comes in between, all are tried.
    """
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        left, right = value(middle), value(middle + 1)
        if math.isinf(left) or math.isinf(right):
            return min(range(low, high + 1), key=value)
        low, high = (low, middle) if left <= right else (middle + 1, high)
    return low


def _divergences(event: Event, orders: Floats) -> Floats:
    """Return the Rényi divergences (n,) of one round, one for each of `orders` (n,)."""
    if isinstance(event, TwoStage):
        inner = (orders - 1) * _divergences(event.within, orders)
        seldom = -np.inf if event.client_rate == 1 else np.log1p(-event.client_rate)
        return np.asarray(np.logaddexp(seldom, np.log(event.client_rate) + inner) / (orders - 1))
    accountant = RdpAccountant(orders)
    accountant.compose(_known_event(event))
    return np.asarray(accountant.rdp)


def _known_event(event: SingleStage) -> DpEvent:
    """Return one round as an event of dp-accounting."""
    match event:
        case Gaussian(effective_noise_multiplier=noise):
            return GaussianDpEvent(noise / 2 if event.adjacency is Adjacency.REPLACE else noise)
        case PoissonGaussian() | FixedSizeGaussian() if event.adjacency is Adjacency.REPLACE:
            raise UnsupportedError(f"no Rényi bound is known here for {event.type} under replacement")
        case PoissonGaussian(sampling_rate=rate, effective_noise_multiplier=noise):
            return PoissonSampledDpEvent(rate, GaussianDpEvent(noise))
        case FixedSizeGaussian(sampling_rate=rate, effective_noise_multiplier=noise):
            return PoissonSampledDpEvent(rate, GaussianDpEvent(noise / 2))
        case RandomAllocationGaussian():
            raise UnsupportedError("no Rényi bound is known here for random allocation")
        case Laplace(relative_scale=noise):
            return LaplaceDpEvent(noise)
        case FedAvgLaplace() | AdmmLaplace():
            return _known_event(event.as_laplace())


def _is_worth_reading(record: logging.LogRecord) -> bool:
    """Return whether a log record of dp-accounting is worth reading.

    The library warns about every order at which its series doesn't converge, and soundly leaves that order out.
    """
    return "_compute_log_a_frac failed to converge" not in str(record.msg)


logging.getLogger("absl").addFilter(_is_worth_reading)
