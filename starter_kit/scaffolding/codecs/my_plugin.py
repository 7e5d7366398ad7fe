"""Two bytes for each number, in both directions: half precision (IEEE 754 binary16).

This is a working codec to start from. Replace the line above with what your codec is and where it was published.

A message has one little-endian float16 for each number, so that it takes 2·d bytes. What is sent beyond the largest
float16 is cut to it.

When you change what a message contains, change it here and in test_my_plugin.py.
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
        gain: A factor on what is sent, which the decoder takes out again: small updates need it to stay above the
            smallest float16.
    """

    # Leave it at None where messages vary in size, or the directions differ; a private run then rejects the codec.
    bits_per_parameter: ClassVar[float | None] = 16.0
    # True if `encode` keeps something in `state` for the client's later messages, such as what it left out.
    keeps_state: ClassVar[bool] = False

    gain: float = 1024.0

    def encode(self, update: Tensor, state: dict[str, Tensor]) -> bytes:
        # `update` is finite. What `state` gets stays at the client, is saved with the run, and is never sent.
        scaled = (update * self.gain).clamp(-LARGEST, LARGEST)
        return scaled.numpy().astype("<f2").tobytes()

    def decode(self, message: bytes, size: int) -> Tensor:
        # Reject what `encode` can't have written: the bytes come from somebody else.
        if len(message) != 2 * size:
            raise ValueError(f"{size} numbers take {2 * size} bytes, not {len(message)}")
        return torch.from_numpy(np.frombuffer(message, "<f2").astype(np.float32)) / self.gain

    # Without the two below, a model travels exactly, as float32 of its difference from what all parties start with, and
    # the first download takes no bytes.
    def encode_model(self, change: Tensor) -> bytes:
        return self.encode(change, {})

    def decode_model(self, message: bytes, size: int) -> Tensor:
        return self.decode(message, size)
