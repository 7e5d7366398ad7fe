"""Two bytes for each number, in both directions: half precision (IEEE 754 binary16).

This is a working codec to start from. Replace the line above with the name and the source of your codec.

A message has one little-endian float16 for each of d numbers and takes 2·d bytes. Numbers beyond the largest float16
are clamped to it.

When you change the content of a message, change the description here and the test in test_my_plugin.py.
"""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from starter_kit.compression.plugin_codecs import CodecPlugin

LARGEST = 65504.0


class Codec(CodecPlugin):
    """The codec. Its fields are its settings, in a config: codec: {type: my_plugin.py, gain: 2.0}

    Attributes:
        gain: A factor by which the sender multiplies and the receiver divides. It keeps small updates above the
            smallest float16.
    """

    # None if the size of messages varies or the directions differ; a private run then rejects the codec.
    bits_per_parameter: ClassVar[float | None] = 16.0
    # True if `encode` keeps something in `state` for the client's later messages, such as what it omitted.
    keeps_state: ClassVar[bool] = False

    gain: float = 1024.0

    def encode(self, update: Tensor, state: dict[str, Tensor]) -> bytes:
        # `update` is finite. The content of `state` stays at the client, is saved with the run, and is never sent.
        scaled = (update * self.gain).clamp(-LARGEST, LARGEST)
        return scaled.numpy().astype("<f2").tobytes()

    def decode(self, message: bytes, size: int) -> Tensor:
        # The bytes come from another party: reject anything that `encode` can't have written.
        if len(message) != 2 * size:
            raise ValueError(f"{size} numbers take {2 * size} bytes, not {len(message)}")
        return torch.from_numpy(np.frombuffer(message, "<f2").astype(np.float32)) / self.gain

    # Without these two methods, the server sends the exact model, as the float32 difference from the common start, and
    # the first download takes no bytes.
    def encode_model(self, change: Tensor) -> bytes:
        return self.encode(change, {})

    def decode_model(self, message: bytes, size: int) -> Tensor:
        return self.decode(message, size)
