"""Gaussian noise from the operating system's entropy.

Uniforms with 53 random bits become standard normals by the Box–Muller transform in float64, are scaled and only
then rounded to float32. The largest value that can occur is 8.57 standard deviations, and even a run with 10¹⁵
coordinates would hardly ever draw a larger one.

What this does not do: the privacy analysis is over the real numbers, while these are floating-point numbers, and
floating-point Gaussians are not exactly Gaussian (Mironov 2012; Holohan and Braghin 2021, arXiv:2107.10138).
The gap is not part of the reported ε; a discrete Gaussian on a grid would close it.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from starter_kit.dp.keystream import Keystream

# In standard deviations; no draw is larger, see above.
LARGEST_DRAW = 8.58
# How many normals are made at a time, which bounds memory and fits the cache.
CHUNK = 1 << 18


def gaussian_noise(size: int, std: float, keystream: Keystream) -> Tensor:
    """Return a float32 vector (size,) of independent N(0, std²) draws.

    Raises:
        ValueError: `std` is negative or not finite.
    """
    if not 0 <= std < float("inf"):
        raise ValueError(f"a standard deviation is finite and not negative, not {std}")
    noise = np.empty(size, dtype=np.float32)
    for start in range(0, size, CHUNK):
        part = noise[start : start + CHUNK]
        part[:] = std * standard_normals(len(part), keystream)
    return torch.from_numpy(noise)


def standard_normals(count: int, keystream: Keystream) -> NDArray[np.float64]:
    """Return standard normal float64 draws (count,), by Box–Muller (1958)."""
    half = (count + 1) // 2
    uniforms = keystream.uniforms(2 * half)
    radius = np.sqrt(-2 * np.log(uniforms[:half]))
    angle = 2 * np.pi * uniforms[half:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]
