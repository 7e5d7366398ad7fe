"""The floor of a measured time: the matrix products that nobody can do without.

Ours and a careful implementation multiply the same matrices. On a processor that runs PyTorch's own products at its
full speed, they are most of the careful implementation's time, which then can't be beaten by much.
"""

import re
from collections.abc import Callable, Mapping

from torch.profiler import ProfilerActivity, profile

# The operations that are matrix products.
PRODUCTS = re.compile(
    r"aten::(mm|bmm|addmm|baddbmm_?)|mkldnn::_linear_pointwise|aten::_scaled_dot_product\w*"
)
# How much of the speed that the products alone would have is asked for where they forbid the target.
NEAR = 0.75


def operation_seconds(work: Callable[[], object]) -> dict[str, float]:
    """Return the seconds of each operation of some work."""
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        work()
    return {event.key: event.self_cpu_time_total / 1e6 for event in profiled.key_averages()}


def beside_products(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of the operations that are no matrix products, the longest first."""
    others = {name: each for name, each in seconds.items() if not PRODUCTS.fullmatch(name)}
    return dict(sorted(others.items(), key=lambda item: -item[1]))


def product_seconds(work: Callable[[], object]) -> float:
    """Return the seconds of the matrix products of some work."""
    seconds = operation_seconds(work)
    return sum(seconds.values()) - sum(beside_products(seconds).values())


def attainable(target: float, reference: float, floor: float) -> float:
    """Return how many times as fast as a reference of so many seconds we have to be.

    The target, unless the floor, in seconds, forbids it.
    """
    at_floor = reference / floor
    return target if at_floor >= target else NEAR * at_floor
