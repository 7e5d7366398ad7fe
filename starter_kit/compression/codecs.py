"""Codecs: how a vector of parameters becomes the bytes of a message, and comes back.

These two are built in, with the evaluator's own encoding (`evaluator.communication.codecs`); `plugin_codecs` has the
protocol of others. A message carries values only. Both sides know the number of coordinates d, and a message of another
length is rejected.
"""

from typing import Protocol

import torch
from torch import Tensor

from evaluator.communication import nf4
from evaluator.communication.codecs import CODECS

BUILT_IN = ("float32", "nf4")


class Codec(Protocol):
    """A way to write a float32 vector (d,) on the CPU as bytes.

    Attributes:
        name: As in a configuration file.
        bits_per_parameter: Bits that a coordinate takes in a long message, with everything that is sent.
        exact: Whether decoding gives back the very vector that was encoded.
    """

    name: str
    bits_per_parameter: float
    exact: bool

    def encode(self, vector: Tensor) -> bytes:
        """Return the message for `vector` (d,). Raises ValueError for a vector that this codec cannot write."""

    def decode(self, message: bytes, size: int) -> Tensor:
        """Return the vector (size,), float32. Raises ValueError for a message that is not one of `size` coordinates."""


class Float32:
    """Writes the values as they are, little-endian. Exact, for NaN and infinities too."""

    name = "float32"
    bits_per_parameter = 32.0
    exact = True

    def encode(self, vector: Tensor) -> bytes:
        _check(vector)
        return CODECS["float32"].encode(vector.detach().numpy())

    def decode(self, message: bytes, size: int) -> Tensor:
        return torch.from_numpy(CODECS["float32"].decode(message, size))


class NF4:
    """Writes four bits per value and a scale per block of 64, see `nf4`. Rejects values that are not finite."""

    name = "nf4"
    bits_per_parameter = 4 + 32 / nf4.BLOCK
    exact = False

    def encode(self, vector: Tensor) -> bytes:
        _check(vector)
        return CODECS["nf4"].encode(vector.detach().numpy())

    def decode(self, message: bytes, size: int) -> Tensor:
        return torch.from_numpy(CODECS["nf4"].decode(message, size))


def codec(name: str) -> Codec:
    """Return the built-in codec called `name`."""
    codecs: dict[str, Codec] = {"float32": Float32(), "nf4": NF4()}
    return codecs[name]


def _check(vector: Tensor) -> None:
    if vector.dtype != torch.float32 or vector.dim() != 1 or vector.device.type != "cpu":
        raise ValueError(
            f"a codec takes a float32 vector on the CPU, not {vector.dtype} of shape {tuple(vector.shape)} "
            f"on {vector.device}"
        )
