"""Masks: keys stretched to uniform integers modulo 2³² by AES-256 in counter mode, added to a vector.

The key of a mask is derived for this mask alone, so counting starts from 0. Four bytes of keystream are one integer:
all 2³² of them are equally likely without rejecting any, and unsigned 32-bit arithmetic wraps around where it must.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

Words = NDArray[np.uint32]

WORD = np.dtype("<u4")
CHUNK = 1 << 17  # words masked at a time: fits the cache, and bounds memory whatever the vector's size

_BLOCK_BYTES = 16


@dataclass(frozen=True)
class Mask:
    """A mask, and whether it is added or subtracted.

    Attributes:
        key: 32 bytes, for this mask alone.
    """

    key: bytes = field(repr=False)
    sign: Literal[1, -1]

    def reversed(self) -> "Mask":
        """Return the mask that cancels this one."""
        return Mask(self.key, 1 if self.sign == -1 else -1)


def pairwise_sign(client: int, other: int) -> Literal[1, -1]:
    """Return the sign of the pair's mask in `client`'s message; in `other`'s it is the opposite."""
    return 1 if client < other else -1


def add_masks(vector: Words, masks: Sequence[Mask]) -> None:
    """Add `masks` to `vector` (d,), in place and modulo 2³²."""
    streams = [(_encryptor(mask.key), np.add if mask.sign == 1 else np.subtract) for mask in masks]
    zeros = memoryview(bytes(CHUNK * WORD.itemsize))
    keystream = bytearray(len(zeros) + _BLOCK_BYTES - 1)
    for start in range(0, len(vector), CHUNK):
        part = vector[start : start + CHUNK]
        words = np.frombuffer(keystream, WORD, len(part))
        for encryptor, combine in streams:
            encryptor.update_into(zeros[: part.nbytes], keystream)
            combine(part, words, out=part)


def _encryptor(key: bytes) -> CipherContext:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(_BLOCK_BYTES))).encryptor()
