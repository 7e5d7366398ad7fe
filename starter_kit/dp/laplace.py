"""The Laplace mechanism: updates bounded in L1 norm, and Laplace noise from the operating system's entropy.

Noise of scale b = s/ε on a sum that one provider changes by at most s in L1 norm gives ε-DP (Dwork et al. 2006), over
the real numbers. Uniforms with 53 random bits become Laplace draws by the inverse distribution function in float64, are
scaled, and rounded to a grid with the sum that they cover (`starter_kit.dp.laplace_release`). The two tails are mirror
images; the largest value that can occur is 52 ln 2 = 36.04 scales, and even a run with 10¹⁴ coordinates would hardly
ever draw a larger one.

What this does not do: a float64 has 2⁵³ uniforms to draw from, so each multiple of the grid's step has only nearly the
probability of a Laplace distribution. That gap is not part of the reported ε. The grid closes the other one: which
values can occur no longer depends on what the noise is added to (Mironov 2012, "On significance of the least
significant bits for differential privacy").

The L1 bound holds for the float32 vector that is returned, not only for real numbers: products are rounded towards
zero.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from starter_kit.dp.keystream import Keystream

# How many coordinates are processed at a time, which bounds memory and fits the cache.
CHUNK = 1 << 18
# The error of two float64 sums of a billion terms, before and after.
SUMMATION_ROOM = 1 - 2.0**-22


def laplace_noise(size: int, scale: float, keystream: Keystream) -> Tensor:
    """Return a float64 vector (size,) of independent Laplace draws with mean 0 and density exp(-|x|/scale) / (2 scale).

    Raises:
        ValueError: `scale` is negative or not finite.
    """
    if not 0 <= scale < float("inf"):
        raise ValueError(f"a Laplace scale is finite and not negative, not {scale}")
    noise = np.empty(size)
    for start in range(0, size, CHUNK):
        part = noise[start : start + CHUNK]
        part[:] = scale * standard_quantiles(keystream.uniforms(len(part)))
    return torch.from_numpy(noise)


def standard_quantiles(uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quantiles (n,) of the standard Laplace distribution at `uniforms` (n,), multiples of 2⁻⁵³ in (0, 1].

    Above 1/2 the remaining probability counts from 2⁻⁵³, not from 0: the values at u and at 1 + 2⁻⁵³ - u are each
    other's negatives, and none is infinite.
    """
    lower = uniforms <= 0.5
    tails = np.where(lower, uniforms, (1 - uniforms) + 2.0**-53)
    sizes: NDArray[np.float64] = -np.log(2 * tails)
    return np.where(lower, -sizes, sizes)


def clip_l1(update: Tensor, clip_norm: float) -> Tensor | None:
    """Scale `update`, a float32 vector (d,) over all trained tensors, down to L1 norm at most `clip_norm`.

    Returns None for an update that is not finite. The norm before clipping is private and is not returned.

    Raises:
        ValueError: `update` is not a float32 vector or `clip_norm` is not positive.
    """
    if update.dtype != torch.float32 or update.dim() != 1:
        raise ValueError(f"an update is a float32 vector, not {update.dtype} of shape {tuple(update.shape)}")
    if not clip_norm > 0:
        raise ValueError(f"a clip norm is positive, not {clip_norm}")
    norm = float(torch.linalg.vector_norm(update, ord=1, dtype=torch.float64))
    if not math.isfinite(norm):
        return None
    if norm <= clip_norm:
        return update
    factor = clip_norm / norm * SUMMATION_ROOM
    return torch.cat([_scaled_towards_zero(part, factor) for part in torch.split(update, CHUNK)])


def _scaled_towards_zero(values: Tensor, factor: float) -> Tensor:
    exact = values.double() * factor
    rounded = exact.float()
    too_large = rounded.abs().double() > exact.abs()
    return torch.where(too_large, torch.nextafter(rounded, torch.zeros_like(rounded)), rounded)
