"""Codecs that are plug-ins: any bytes that their decoder maps back to a vector of d numbers.

A client's update is encoded as the codec likes, with state that the client keeps: what one message leaves out may go
into a later one. A model travels as the difference from the weights that every party starts with, by default exactly:
as float32, and without a byte where there is no difference. So the first download is free, since base weights are
public and adapters follow from the seed. Messages count with the bytes that are sent.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor

from starter_kit.compression.codecs import BUILT_IN, Float32
from starter_kit.plugin import Plugin, PluginKind, reported

# What a codec is tried out with: a matrix and a number, of which there is no multiple of anything.
LAYOUT = (torch.Size([28, 36]), torch.Size([1]))
SOME = 1009


class CodecPlugin(Plugin):
    """A codec in a file of its own: a class `Codec` that is derived from this one.

    It may rely on this: `decode` gets the bytes that `encode` returned, the sizes are the same, and nothing else
    travels. Encoding must not draw from generators that others use; where it needs randomness, seed it from what it
    encodes.

    Attributes:
        bits_per_parameter: The bits that a coordinate takes in every message of both directions; None where messages
            vary in size, or the directions differ. A private run's record states them, and rejects None.
        keeps_state: Whether `encode` keeps something of an update for later messages.
    """

    exact: ClassVar[bool] = False
    bits_per_parameter: ClassVar[float | None] = None
    keeps_state: ClassVar[bool] = False

    def with_layout(self, shapes: Sequence[torch.Size]) -> Self:
        """Return the codec for vectors of tensors of these shapes, one after another; by default itself."""
        return self

    @abstractmethod
    def encode(self, update: Tensor, state: dict[str, Tensor]) -> bytes:
        """Return the message for a client's finite `update` (d,), float32 on the CPU.

        Args:
            state: What the client keeps for its later messages, by name; changed in place, saved with the run, and
                never sent.
        """

    @abstractmethod
    def decode(self, message: bytes, size: int) -> Tensor:
        """Return the update (size,), float32, of a message. Raises ValueError for what `encode` can't have written."""

    def encode_model(self, change: Tensor) -> bytes:
        """Return the message for a model, as its difference (d,) from what all parties start with."""
        return Float32().encode(change) if change.any() else b""

    def decode_model(self, message: bytes, size: int) -> Tensor:
        """Return the difference (size,), float32. Raises ValueError for what `encode_model` can't have written."""
        return Float32().decode(message, size) if message else torch.zeros(size)

    def try_out(self) -> None:
        fitted, state = self.with_layout(LAYOUT), dict[str, Tensor]()
        if not isinstance(fitted, type(self)):
            raise TypeError(f"with_layout returns the codec, not {fitted}")
        for vector in (torch.zeros(SOME), torch.linspace(-1, 1, SOME), torch.ones(SOME)):
            decoded(self, fitted.decode, encoded(self, fitted.encode, vector.clone(), state), SOME)
            decoded(self, fitted.decode_model, encoded(self, fitted.encode_model, vector.clone()), SOME)
        if state and not self.keeps_state:
            raise ValueError("it keeps something for later messages, and keeps_state is not True")
        if not all(isinstance(kept, Tensor) for kept in state.values()):
            raise TypeError("what a codec keeps is tensors, by name")


CODECS = PluginKind(
    "codec", "Codec", CodecPlugin, "codecs", "--codec", "how a message becomes bytes", BUILT_IN
)


def encoded(codec: CodecPlugin, encode: Callable[..., bytes], *values: object) -> bytes:
    """Return the message that `encode` of the codec makes of `values`.

    Raises:
        ProblemError: (`E_CONFIGURATION`) It failed, or it returned something other than bytes.
    """
    with reported(codec):
        message = encode(*values)
        if not isinstance(message, bytes):
            raise TypeError(f"a message is bytes, not {type(message).__name__}")
    return message


def decoded(codec: CodecPlugin, decode: Callable[[bytes, int], Tensor], message: bytes, size: int) -> Tensor:
    """Return the vector (size,) that `decode` reads with the codec.

    Raises:
        ValueError: It can't read the message, or it returned something other than such a vector.
    """
    try:
        vector = decode(message, size)
    except Exception as error:
        raise ValueError(f"codec {codec}: {type(error).__name__}: {error}") from error
    if not isinstance(vector, Tensor) or vector.dtype != torch.float32 or vector.shape != (size,):
        found = f"{vector.dtype} of shape {tuple(vector.shape)}" if isinstance(vector, Tensor) else vector
        raise ValueError(f"codec {codec}: a decoded vector is float32 of shape ({size},), not {found}")
    return vector.cpu()
