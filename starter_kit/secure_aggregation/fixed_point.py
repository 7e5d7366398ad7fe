"""Real vectors as integers modulo 2³², on a grid fine enough and wide enough for a sum of them.

A coordinate becomes the nearest multiple of `step` (ties to the even one), and a negative multiple its complement to
2³². Sums of up to `clients` such vectors stay within ±(2³¹ − 1) multiples, so that they can be read back.

Values outside the bound are rejected, not saturated. Saturating would alter the sum silently, and noise that is
clipped at single clients no longer adds up to the noise of the privacy analysis. A bound on everything that
can occur is never exceeded: `starter_kit.dp.noise` draws at most 8.57 standard deviations.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from starter_kit.secure_aggregation.masks import CHUNK, WORD, Words

LARGEST_SUM = 2**31 - 1  # multiples of the step
SMALLEST_BOUND, LARGEST_BOUND = (
    2.0**-126,
    2.0**127,
)  # as far as normal float32 numbers reach, and one power less


class OutOfBoundError(ValueError):
    """Raised where a coordinate can't be encoded: it is beyond the bound, or not a number."""


@dataclass(frozen=True)
class Grid:
    """The multiples of `step` that clients' coordinates are rounded to.

    Attributes:
        step: A power of two, so that dividing by it and multiplying with it are exact.
        bound: The largest absolute value of a coordinate of one client.
        clients: The largest number of vectors in a sum.

    Raises:
        ValueError: The sum could wrap around, nothing but 0 could be encoded, or `step` is not a power of two.
    """

    step: float
    bound: float
    clients: int

    def __post_init__(self) -> None:
        _check_range(self.bound, self.clients)
        if not (0 < self.step < math.inf) or math.frexp(self.step)[0] != 0.5:
            raise ValueError(f"a step is a power of two, not {self.step}")
        if not 1 <= _multiples(self.bound, self.step) <= LARGEST_SUM // self.clients:
            raise ValueError(
                f"with the step {self.step}, {self.clients} coordinates of up to {self.bound} "
                f"don't come to between 1 and {LARGEST_SUM} steps"
            )

    def encode(self, vector: NDArray[np.float32] | NDArray[np.float64]) -> Words:
        """Return the integers (d,) of a float32 or float64 `vector` (d,).

        Raises:
            OutOfBoundError: A coordinate is beyond the bound, or not a number.
        """
        if vector.ndim != 1 or vector.dtype not in (np.float32, np.float64):
            raise ValueError(
                f"a vector is one-dimensional, of float32 or float64, not {vector.dtype}{vector.shape}"
            )
        encoded = np.empty(len(vector), WORD)
        for start in range(0, len(vector), CHUNK):
            part = vector[start : start + CHUNK].astype(np.float64)
            within = np.abs(part) <= self.bound
            if not within.all():
                raise OutOfBoundError(
                    f"coordinate {start + int(np.argmin(within))} is not within ±{self.bound}, which the grid is for"
                )
            encoded[start : start + CHUNK] = np.rint(part / self.step).astype(np.int32).view(np.uint32)
        return encoded

    def decode_sum(self, total: Words) -> NDArray[np.float64]:
        """Return the exact sum (d,) of at most `clients` vectors, from the sum `total` (d,) of their encodings
        modulo 2³²."""
        return np.multiply(total.view(np.int32), self.step, dtype=np.float64)


def finest_grid(bound: float, clients: int) -> Grid:
    """Return the grid with the smallest step at which sums of `clients` vectors bounded by `bound` can't wrap.

    The step is bound · clients / 2³¹, give or take a factor of two.

    Raises:
        ValueError: No grid has this bound, or this many clients.
    """
    _check_range(bound, clients)
    _, exponent = math.frexp(bound * clients / LARGEST_SUM)
    coarser = (math.ldexp(1.0, power) for power in range(exponent - 2, exponent + 3))
    step = next(step for step in coarser if clients * _multiples(bound, step) <= LARGEST_SUM)
    return Grid(step, bound, clients)


def _check_range(bound: float, clients: int) -> None:
    if not SMALLEST_BOUND <= bound <= LARGEST_BOUND:
        raise ValueError(f"a bound is from {SMALLEST_BOUND} to {LARGEST_BOUND}, not {bound}")
    if not 1 <= clients <= LARGEST_SUM:
        raise ValueError(f"a sum has from 1 to {LARGEST_SUM} vectors, not {clients}")


def _multiples(value: float, step: float) -> int:
    return round(value / step)  # ties to even, as np.rint
