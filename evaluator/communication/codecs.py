"""The built-in codecs: how a vector becomes the bytes of a message and comes back, the same for kit and evaluator.

A message carries values only. Both sides know the number of coordinates d, and a message of another length is rejected.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evaluator.communication import nf4

Floats = NDArray[np.float32]


class BuiltInCodec(Protocol):
    """A way to write a vector (d,) as bytes.

    Attributes:
        exact: Whether decoding gives back the very vector that was encoded. A model then travels as it is; otherwise as
            its difference from the weights that every party started from, which is small.
    """

    exact: bool

    def encode(self, vector: Floats) -> bytes:
        """Return the message for `vector` (d,). Raises ValueError for a vector that this codec cannot write."""

    def decode(self, message: bytes, size: int) -> Floats:
        """Return the vector (size,). Raises ValueError for a message that is not one of `size` coordinates."""


class Float32Codec:
    """Writes the values as they are, little-endian. Exact, for NaN and infinities too."""

    exact = True

    def encode(self, vector: Floats) -> bytes:
        return vector.astype("<f4", copy=False).tobytes()

    def decode(self, message: bytes, size: int) -> Floats:
        if len(message) != 4 * size:
            raise ValueError(f"{size} float32 values take {4 * size} bytes, not {len(message)}")
        return np.frombuffer(message, dtype="<f4").astype(np.float32)


class NF4Codec:
    """Writes four bits per value and a scale per block of 64, see `nf4`. Rejects values that are not finite."""

    exact = False

    def encode(self, vector: Floats) -> bytes:
        return nf4.quantize(vector)

    def decode(self, message: bytes, size: int) -> Floats:
        return nf4.dequantize(message, size)


CODECS: dict[str, BuiltInCodec] = {"float32": Float32Codec(), "nf4": NF4Codec()}


def packed_model(codec: BuiltInCodec, weights: Floats, start: Floats) -> bytes:
    """Return the message for the model `weights` (d,), where every party started from `start` (d,)."""
    return codec.encode(weights if codec.exact else weights - start)
