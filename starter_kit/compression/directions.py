"""Directions that follow from their numbers, and vectors that are combinations of them.

Direction z_j (d,) has the entries ±1, independent fair coins of the generator Philox with the key j, so that anyone
can draw it again from j. Of K directions with K well below d, none is nearly a combination of the others. So a vector
that is a combination of them has one set of coefficients, which least squares finds.
"""

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from starter_kit.compression.plugin_codecs import CodecPlugin

# How many entries of directions are unpacked at once.
AT_ONCE = 2**22
# When coefficients are found, and after how many steps at most.
PRECISE, MOST_STEPS = 1e-7, 100

Floats = NDArray[np.float32]
Coefficients = NDArray[np.float64]


class DirectionsCodec(CodecPlugin):
    """Base of codecs whose vectors are combinations of the first `seeds` directions.

    Attributes:
        seeds: K, how many directions there are.
    """

    seeds: int = Field(default=1024, ge=1, le=2**16)


def direction(number: int, size: int) -> Tensor:
    """Return z (size,) of this number, float32."""
    return torch.from_numpy(_signs(_drawn(number, size), size))


def combined(coefficients: Coefficients, size: int, scale: float = 1.0) -> Tensor:
    """Return `scale`·Σ c_j·z_j (size,) float32 for coefficients (K,).

    Of whole coefficients below 2³⁷, every sum is exact in whichever order it is added, so that every machine gets the
    same bits.
    """
    used = np.flatnonzero(coefficients)
    packed = _packed(len(coefficients), size)[used]
    sums = _combined(packed, coefficients[used], size)
    return torch.from_numpy((sums * scale).astype(np.float32))


def coefficients_of(vector: Tensor, count: int) -> Coefficients:
    """Return the c (count,) for which Σ c_j·z_j is nearest to `vector` (d,), by conjugate gradients."""
    packed, size = _packed(count, len(vector)), len(vector)
    found: Coefficients = np.zeros(count)
    missing = _products(packed, vector.detach().numpy().astype(np.float64))
    along, square = missing, missing @ missing
    enough = PRECISE**2 * square
    for _ in range(MOST_STEPS):
        if square <= enough:
            break
        image = _products(packed, _combined(packed, along, size))
        step = square / (along @ image)
        found = found + step * along
        missing = missing - step * image
        square, before = missing @ missing, square
        along = missing + square / before * along
    return found


def _drawn(number: int, size: int) -> NDArray[np.uint8]:
    words = np.random.Philox(key=number).random_raw(-(-size // 64))
    return words.astype("<u8").view(np.uint8)


@lru_cache(maxsize=1)
def _packed(count: int, size: int) -> NDArray[np.uint8]:
    """Return the bits of the first `count` directions, a row for each."""
    return np.stack([_drawn(number, size) for number in range(count)])


def _signs(bits: NDArray[np.uint8], count: int) -> Floats:
    """Return ±1 (..., count) for packed bits."""
    unpacked = np.unpackbits(bits, axis=-1, count=count, bitorder="little")
    return unpacked.astype(np.float32) * np.float32(2) - np.float32(1)


def _parts(packed: NDArray[np.uint8], size: int) -> list[tuple[int, int]]:
    """Return the bounds of slices of coordinates whose entries are unpacked at once."""
    width = max(8, AT_ONCE // max(len(packed), 1) // 8 * 8)
    return [(begin, min(begin + width, size)) for begin in range(0, size, width)]


def _combined(packed: NDArray[np.uint8], coefficients: Coefficients, size: int) -> Coefficients:
    parts = [
        coefficients @ _signs(packed[:, begin // 8 : -(-end // 8)], end - begin)
        for begin, end in _parts(packed, size)
    ]
    return np.concatenate(parts)


def _products(packed: NDArray[np.uint8], vector: Coefficients) -> Coefficients:
    """Return z_j·v (K,) for a vector v (d,)."""
    total: Coefficients = np.zeros(len(packed))
    for begin, end in _parts(packed, len(vector)):
        total += _signs(packed[:, begin // 8 : -(-end // 8)], end - begin) @ vector[begin:end]
    return total
