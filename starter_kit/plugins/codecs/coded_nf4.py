"""NF4 with entropy-coded numbers: the same sixteen levels, in fewer bytes where some are more frequent than others.

As with the codec nf4, a block of 64 numbers is divided by its scale, and each number becomes the nearest of 16 levels
(Dettmers et al. 2023, arXiv:2305.14314). The scale is the block's largest absolute value, rounded up to the 8 digits of
a bfloat16. The message is empty if all numbers are zero, and otherwise

    ceil(d/64) scales, bfloat16, little-endian, then the d codes as `starter_kit.compression.entropy` writes them.

Encoding what came out of a message gives the same message again.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evaluator.communication.nf4 import BLOCK, LEVELS, MIDPOINTS, SMALLEST_SCALE
from starter_kit.compression import entropy
from starter_kit.compression.plugin_codecs import CodecPlugin


class Codec(CodecPlugin):
    """Entropy-coded NF4."""

    def encode(self, update: Tensor, state: dict[str, Tensor]) -> bytes:
        return self.encode_model(update)

    def decode(self, message: bytes, size: int) -> Tensor:
        return self.decode_model(message, size)

    def encode_model(self, change: Tensor) -> bytes:
        if not change.any():
            return b""
        values = change.detach().numpy()
        blocks = np.pad(values, (0, -len(values) % BLOCK)).reshape(-1, BLOCK)
        halves = _rounded_up(np.abs(blocks).max(axis=1))
        scales = _scales(halves)
        divisors = np.where(scales == 0, np.float32(1), scales)[:, np.newaxis]
        codes = np.searchsorted(MIDPOINTS, blocks / divisors).astype(np.uint8).reshape(-1)[: len(values)]
        return halves.astype("<u2").tobytes() + entropy.encode(codes, len(LEVELS))

    def decode_model(self, message: bytes, size: int) -> Tensor:
        if not message:
            return torch.zeros(size)
        count = -(-size // BLOCK)
        if len(message) < 2 * count:
            raise ValueError(f"{size} numbers have {count} scales, and the message has {len(message)} bytes")
        scales = _scales(np.frombuffer(message, "<u2", count).astype(np.uint16))
        if not (np.isfinite(scales) & (scales >= 0)).all():
            raise ValueError("a scale is negative or not finite")
        codes = entropy.decode(message[2 * count :], size, len(LEVELS))
        return torch.from_numpy(LEVELS[codes] * np.repeat(scales, BLOCK)[:size])


def _rounded_up(largest: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the upper half of each number's bits, rounded up; zero for one too small for all its digits."""
    bits = np.where(largest < SMALLEST_SCALE, np.float32(0), largest).astype(np.float32).view(np.uint32)
    rounded: NDArray[np.uint32] = (bits + np.uint32(0xFFFF)) >> np.uint32(16)
    # Rounded up, the largest numbers would be infinite.
    halves: NDArray[np.uint16] = np.minimum(rounded, 0x7F7F).astype(np.uint16)
    return halves


def _scales(halves: NDArray[np.uint16]) -> NDArray[np.float32]:
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
