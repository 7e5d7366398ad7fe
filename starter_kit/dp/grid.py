"""The grid on which clipped updates are added up and noised, so that no low bit tells what lies below the noise.

A sum of floating-point numbers plus floating-point noise lies on a grid that depends on the sum: where nobody's update
touches a coordinate, the noise alone has finer steps, and a released value with such a step shows it. Here every
update becomes whole multiples of one public step before it is added, and noise is rounded to multiples of it too.

Guarantees: rounding towards zero makes no update longer, and a sum that is kept within `LARGEST` steps is exact in
float32. Keeping it there after each addition moves two sums no further apart, so one update still changes the sum by at
most its own length. What is released is a function of the exact integers: rounding x + z, with a whole x, is x plus the
rounded z, so the rounded noise costs no privacy over the real numbers beyond z itself.
"""

import math

import torch
from torch import Tensor

# The steps in which float32 counts exactly.
LARGEST = 2**24
# Rounding takes at most this part of the clip norm from an update.
ROUNDED_AWAY = 2.0**-10
# How many coordinates are handled at a time: as many as fit the cache.
CHUNK = 1 << 18


def grid_step(clip_norm: float, numel: int) -> float:
    """Return the step for updates (numel,) of at most this L2 norm: a power of two."""
    return 2.0 ** math.floor(math.log2(clip_norm * ROUNDED_AWAY / math.sqrt(numel)))


def add_on_grid(total: Tensor, update: Tensor, step: float, parts: int) -> None:
    """Add `update` (d,), rounded towards zero, to `total` (d,) in place, both float32.

    Args:
        parts: How many such totals are added up later, so that their sum is exact as well.
    """
    most = LARGEST // parts * step
    for into, part in zip(torch.split(total, CHUNK), torch.split(update, CHUNK), strict=True):
        into.add_((part / step).trunc_().mul_(step)).clamp_(-most, most)


def noised_on_grid(vector: Tensor, noise: Tensor, step: float) -> Tensor:
    """Return float64 multiples (n,) of `step` nearest to `vector` (n,), in whole steps, and as much of `noise` (n,)."""
    return (noise / step).round_().add_((vector.double() / step).round_()).mul_(step)
