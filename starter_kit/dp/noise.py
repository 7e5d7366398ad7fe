"""Gaussian noise from the operating system's entropy.

Uniforms with 53 random bits become standard normals by the Box–Muller transform in float64, are scaled, and rounded to
the grid of the sum that they cover (`starter_kit.dp.grid`). The largest value that can occur is 8.57 standard
deviations, and even a run with 10¹⁵ coordinates would hardly ever draw a larger one.

What this does not do: the privacy analysis is over the real numbers, and a float64 has 2⁵³ uniforms to draw from, so
the rounded noise takes each multiple of the step with a probability that is only nearly that of a Gaussian (Holohan and
Braghin 2021, arXiv:2107.10138). That gap is not part of the reported ε. The other one, that the low bits of a released
value show which numbers were added (Mironov 2012), is closed by the grid.
"""

import math

import torch
from torch import Tensor

from starter_kit.dp.grid import noised_on_grid
from starter_kit.dp.keystream import Keystream

# In standard deviations; no draw is larger, see above.
LARGEST_DRAW = 8.58
# How many normals are made at a time, which bounds memory and fits the cache. The same on every device, so that a key
# gives the same draws.
CHUNK = 1 << 18


def with_gaussian_noise(vector: Tensor, std: float, step: float, keystream: Keystream) -> Tensor:
    """Return `vector` (d,), whole multiples of `step`, plus independent N(0, std²) draws rounded to such multiples.

    The uniforms come from the CPU; all that follows is computed on the vector's device, while the CPU makes the next
    ones. The result is float32, on that device.

    Raises:
        ValueError: `std` is negative or not finite.
    """
    if not 0 <= std < float("inf"):
        raise ValueError(f"a standard deviation is finite and not negative, not {std}")
    noised = torch.empty_like(vector, dtype=torch.float32)
    for into, part in zip(torch.split(noised, CHUNK), torch.split(vector, CHUNK), strict=True):
        into.copy_(
            noised_on_grid(part, standard_normals(len(part), keystream, vector.device).mul_(std), step)
        )
    return noised


def standard_normals(count: int, keystream: Keystream, device: torch.device | str = "cpu") -> Tensor:
    """Return standard normal float64 draws (count,) on `device`, by Box–Muller (1958)."""
    half = (count + 1) // 2
    uniforms = torch.from_numpy(keystream.uniforms(2 * half)).to(device)
    radius = uniforms[:half].log_().mul_(-2).sqrt_()
    angle = uniforms[half:].mul_(2 * math.pi)
    return torch.cat([radius * angle.cos(), radius * angle.sin()])[:count]
