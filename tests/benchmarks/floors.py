"""The floor of a measured time: the matrix products that nobody can do without.

Ours and a careful implementation multiply the same matrices. On a processor that runs PyTorch's own products at its
full speed, they are most of the careful implementation's time, which then can't be beaten by much.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pytest
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


@dataclass(frozen=True)
class Speed:
    """How many times as fast as a reference something is.

    Attributes:
        name: What is compared with what.
        target: How many times as fast it is to be. Where the floor forbids that, `NEAR` of `at_floor` will do.
        at_floor: How many times as fast as the reference the matrix products alone are.
    """

    name: str
    ratio: float
    target: float
    at_floor: float

    @property
    def is_reached(self) -> bool:
        return self.ratio >= (self.target if self.at_floor >= self.target else NEAR * self.at_floor)

    def __str__(self) -> str:
        end = "" if self.ratio >= self.target else ", not reached"
        return f"{self.ratio:.2f} (target {self.target:g}{end}; {self.at_floor:.2f} at the floor)"


def expect(speeds: Iterable[Speed]) -> None:
    """End a benchmark whose figures are right and printed: as an expected failure where a target isn't reached.

    Being slower than a reference is a failure.
    """
    found = list(speeds)
    assert [str(speed) for speed in found if speed.ratio < 1] == []
    if missed := [f"{speed.name}: {speed}" for speed in found if not speed.is_reached]:
        pytest.xfail("; ".join(missed))
