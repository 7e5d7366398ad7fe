"""Whole multiples of a step, entropy-coded: a number costs as many bits as it is surprising, and zeros almost none.

A number becomes the nearest multiple of `step`, at most 127 steps from zero: a uniform quantizer, which entropy coding
makes nearly optimal at every rate (Sullivan 1996). Multiples 0, -1, 1, -2, 2 and so on are the symbols 0, 1, 2, 3, 4.
The message is empty if all numbers are zero, and otherwise

    the number of different symbols up to the largest one, less one, 1 byte, then the d symbols as
    `starter_kit.compression.entropy` writes them.

A model that only one client has changed in each round lies on the grid, so that downloads are exact.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from starter_kit.compression import entropy
from starter_kit.compression.plugin_codecs import CodecPlugin

FARTHEST = 127


class Codec(CodecPlugin):
    """A grid with entropy coding.

    Attributes:
        step: The distance between two multiples. Larger steps need fewer bytes and lose more.
    """

    step: float = Field(default=0.01, gt=0)

    def encode(self, update: Tensor, state: dict[str, Tensor]) -> bytes:
        return self.encode_model(update)

    def decode(self, message: bytes, size: int) -> Tensor:
        return self.decode_model(message, size)

    def encode_model(self, change: Tensor) -> bytes:
        steps = np.rint(change.detach().numpy().astype(np.float64) / self.step)
        multiples = np.clip(steps, -FARTHEST, FARTHEST).astype(np.int16)
        symbols = np.where(multiples < 0, -2 * multiples - 1, 2 * multiples).astype(np.uint8)
        if not symbols.any():
            return b""
        largest = int(symbols.max())
        return bytes([largest]) + entropy.encode(symbols, largest + 1)

    def decode_model(self, message: bytes, size: int) -> Tensor:
        if not message:
            return torch.zeros(size)
        if message[0] > 2 * FARTHEST:
            raise ValueError(f"a symbol is at most {2 * FARTHEST}, not {message[0]}")
        symbols = entropy.decode(message[1:], size, message[0] + 1).astype(np.int16)
        multiples: NDArray[np.int16] = np.where(symbols % 2, -(symbols + 1) // 2, symbols // 2)
        return torch.from_numpy((multiples * np.float64(self.step)).astype(np.float32))
