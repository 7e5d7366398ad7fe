"""Eight bits for each number, with a scale for each block of 256, in both directions.

A block is divided by s, its largest absolute value over 127, and each number becomes the nearest of -127 to 127;
half-way between two, the even one. The message is

    ceil(d/256) scales s, float32, then d numbers, int8; little-endian.

That is 8.125 bits per parameter where 256 divides d. A block of values below 2⁻¹²⁶ (1.2e-38) is sent as zeros.
"""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from starter_kit.compression.plugin_codecs import CodecPlugin

BLOCK, LEVELS = 256, 127
SMALLEST = np.finfo(np.float32).smallest_normal


class Codec(CodecPlugin):
    """Eight bits per parameter. It keeps nothing, and its messages have one size, so that a record can state it."""

    bits_per_parameter: ClassVar[float] = 8 + 32 / BLOCK

    def encode(self, update: Tensor, state: dict[str, Tensor]) -> bytes:
        return self.encode_model(update)

    def decode(self, message: bytes, size: int) -> Tensor:
        return self.decode_model(message, size)

    def encode_model(self, change: Tensor) -> bytes:
        values = change.detach().numpy()
        blocks = np.pad(values, (0, -len(values) % BLOCK)).reshape(-1, BLOCK)
        largest = np.abs(blocks).max(axis=1)
        scales = np.where(largest < SMALLEST, np.float32(0), np.maximum(largest / LEVELS, SMALLEST)).astype(
            "<f4"
        )
        divisors = np.where(scales == 0, np.float32(np.inf), scales)
        codes = np.rint(blocks / divisors[:, np.newaxis]).astype(np.int8)
        return scales.tobytes() + codes.reshape(-1)[: len(values)].tobytes()

    def decode_model(self, message: bytes, size: int) -> Tensor:
        count = -(-size // BLOCK)
        if len(message) != 4 * count + size:
            raise ValueError(f"{size} numbers take {4 * count + size} bytes, not {len(message)}")
        scales = np.frombuffer(message, "<f4", count)
        codes = np.frombuffer(message, np.int8, offset=4 * count)
        if not (np.isfinite(scales) & (scales >= 0)).all() or (codes == -128).any():
            raise ValueError("a message with a scale or a number that no encoder writes")
        return torch.from_numpy(codes.astype(np.float32) * np.repeat(scales, BLOCK)[:size].astype(np.float32))
