"""One bit for each number of an update, with error feedback (EF-signSGD, Karimireddy et al. 2019, arXiv:1901.09847).

With what the client left out before, e, an update u becomes v = u + e. Sent are the signs of v, with 0 as plus, and one
scale for each block of 4096, the mean absolute value s of the block: the decoder gives s·sign(v), and v − s·sign(v) is
e from then on. The message is

    ceil(d/4096) scales s, float32, little-endian, then ceil(d/8) bytes of signs, the first in the highest bit; 1 is
    minus.

Models travel exactly, as their difference from what all parties start with.
"""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from starter_kit.compression.plugin_codecs import CodecPlugin

BLOCK = 4096
ERROR = "error"


class Codec(CodecPlugin):
    """Signs with error feedback."""

    keeps_state: ClassVar[bool] = True

    def encode(self, update: Tensor, state: dict[str, Tensor]) -> bytes:
        whole = update + state[ERROR] if ERROR in state else update
        scales = torch.stack([block.abs().mean() for block in torch.split(whole, BLOCK)])
        message = scales.numpy().astype("<f4").tobytes() + np.packbits((whole < 0).numpy()).tobytes()
        state[ERROR] = whole - self.decode(message, len(whole))
        return message

    def decode(self, message: bytes, size: int) -> Tensor:
        count = -(-size // BLOCK)
        if len(message) != 4 * count + -(-size // 8):
            raise ValueError(f"{size} signs take {4 * count + -(-size // 8)} bytes, not {len(message)}")
        scales = np.frombuffer(message, "<f4", count).astype(np.float32)
        if not (np.isfinite(scales) & (scales >= 0)).all():
            raise ValueError("a scale is negative or not finite")
        minus = np.unpackbits(np.frombuffer(message, np.uint8, offset=4 * count), count=size).astype(bool)
        values = np.repeat(scales, BLOCK)[:size]
        return torch.from_numpy(np.where(minus, -values, values))
