"""A seed with coefficients along directions that follow from it, and error feedback (Konečný et al. 2016, section 4).

Of arXiv:1610.05492, this is the random rotation with a random mask. With what the client left out before, e, an update
u becomes v = u + e. The seed is the beginning of the SHA-256 of v, and both sides draw from it k `directions` of length
1024: different rows of the Hadamard matrix, with a random sign for each column, over 32. They are orthonormal, and all
together V (k, 1024). Of each block b of 1024 numbers of v, the last one filled up with zeros, the coefficients c = V·b
are sent. The decoder gives Vᵀ·c, the projection of b; what it lacks of b is e from then on, which on average has
1 − k/1024 of the square of b. The message is

    the seed, 8 bytes; then k coefficients for each block, float32; little-endian.

Models travel exactly, as their difference from what all parties start with.
"""

import hashlib
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn.functional import pad

from starter_kit.compression.codecs import Float32
from starter_kit.compression.plugin_codecs import CodecPlugin

BLOCK, ROOT = 1024, 32
SEED_BYTES = 8
ERROR = "error"


class Codec(CodecPlugin):
    """A seed and coefficients.

    Attributes:
        directions: k, how many coefficients a block of 1024 numbers has.
    """

    keeps_state: ClassVar[bool] = True

    directions: int = Field(default=32, ge=1, le=BLOCK)

    def encode(self, update: Tensor, state: dict[str, Tensor]) -> bytes:
        whole = update + state[ERROR] if ERROR in state else update
        seed = hashlib.sha256(Float32().encode(whole)).digest()[:SEED_BYTES]
        blocks = pad(whole, (0, -len(whole) % BLOCK)).view(-1, BLOCK)
        coefficients = blocks @ directions_of(seed, self.directions).T
        message = seed + Float32().encode(coefficients.reshape(-1))
        state[ERROR] = whole - self.decode(message, len(whole))
        return message

    def decode(self, message: bytes, size: int) -> Tensor:
        seed, sent = message[:SEED_BYTES], message[SEED_BYTES:]
        coefficients = Float32().decode(sent, self.directions * -(-size // BLOCK))
        if not coefficients.isfinite().all():
            raise ValueError("a coefficient is not finite")
        blocks = coefficients.view(-1, self.directions) @ directions_of(seed, self.directions)
        return blocks.reshape(-1)[:size]


def directions_of(seed: bytes, count: int) -> Tensor:
    """Return V (count, 1024), the directions that follow from a seed of 8 bytes."""
    # Numbers straight from the generator, whose stream is the same in every version of numpy.
    draw = np.random.Philox(key=int.from_bytes(seed, "little")).random_raw
    rows = np.argsort(draw(BLOCK), kind="stable")[:count]
    signs = _plus_or_minus(draw(BLOCK) >> np.uint64(63))
    # Row i of the Hadamard matrix has −1 in the columns j with an odd number of bits in i and j.
    hadamard = _plus_or_minus(np.bitwise_count(rows[:, np.newaxis] & np.arange(BLOCK)) % 2)
    return torch.from_numpy(hadamard * signs / np.float32(ROOT))


def _plus_or_minus(bits: NDArray[np.integer]) -> NDArray[np.float32]:
    return np.float32(1) - np.float32(2) * bits.astype(np.float32)
