"""Gaussian noise from the operating system's entropy.

Uniforms with 53 random bits become standard normals by the Box–Muller transform in float64, are scaled and only
then rounded to float32. The largest value that can occur is 8.57 standard deviations, and even a run with 10¹⁵
coordinates would hardly ever draw a larger one.

What this does not do: the privacy analysis is over the real numbers, while these are floating-point numbers, and
floating-point Gaussians are not exactly Gaussian (Mironov 2012; Holohan and Braghin 2021, arXiv:2107.10138).
The gap is not part of the reported ε; a discrete Gaussian on a grid would close it.
"""

import math

import torch
from torch import Tensor

from starter_kit.dp.keystream import Keystream

# In standard deviations; no draw is larger, see above.
LARGEST_DRAW = 8.58
# How many normals are made at a time, which bounds memory and fits the cache. The same on every device, so that a key
# gives the same draws.
CHUNK = 1 << 18


def gaussian_noise(size: int, std: float, keystream: Keystream, device: torch.device | str = "cpu") -> Tensor:
    """Return a float32 vector (size,) on `device` of independent N(0, std²) draws.

    The uniforms come from the CPU; all that follows is computed on the device, while the CPU makes the next ones.

    Raises:
        ValueError: `std` is negative or not finite.
    """
    if not 0 <= std < float("inf"):
        raise ValueError(f"a standard deviation is finite and not negative, not {std}")
    noise = torch.empty(size, device=device)
    for part in torch.split(noise, CHUNK):
        part.copy_(standard_normals(len(part), keystream, device).mul_(std))
    return noise


def standard_normals(count: int, keystream: Keystream, device: torch.device | str = "cpu") -> Tensor:
    """Return standard normal float64 draws (count,) on `device`, by Box–Muller (1958)."""
    half = (count + 1) // 2
    uniforms = torch.from_numpy(keystream.uniforms(2 * half)).to(device)
    radius = uniforms[:half].log_().mul_(-2).sqrt_()
    angle = uniforms[half:].mul_(2 * math.pi)
    return torch.cat([radius * angle.cos(), radius * angle.sin()])[:count]
