"""How models and updates travel: as the bytes of a codec.

A lossy codec encodes differences from the weights that every party started from, which are small: the first download is
then exact, and only the change loses precision.
"""

from dataclasses import dataclass

from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.compression.codecs import Codec
from starter_kit.compression.plugin_codecs import CodecPlugin, decoded, encoded
from starter_kit.plugin import reported


@dataclass(frozen=True)
class Wire:
    """The codec of a run, with the weights (d,) that all parties know before the first round."""

    codec: Codec | CodecPlugin
    start: Tensor

    def pack_model(self, weights: Tensor) -> bytes:
        """Return the message for the model `weights` (d,)."""
        codec = self.codec
        if isinstance(codec, CodecPlugin):
            return encoded(codec, codec.encode_model, weights - self.start)
        return codec.encode(weights if codec.exact else weights - self.start)

    def unpack_model(self, message: bytes) -> Tensor:
        """Return the model (d,).

        Raises:
            ValueError: The message has another size.
            ProblemError: (`E_CONFIGURATION`) The codec is a plug-in, and can't read it.
        """
        codec = self.codec
        if isinstance(codec, CodecPlugin):
            with reported(codec):
                return self.start + decoded(codec, codec.decode_model, message, len(self.start))
        vector = codec.decode(message, len(self.start))
        return vector if codec.exact else self.start + vector

    def pack_update(self, update: Tensor, state: dict[str, Tensor] | None = None) -> bytes:
        """Return the message for `update` (d,).

        Args:
            state: What the client's codec keeps from message to message; changed in place.

        Raises:
            ProblemError: (`E_CHECKPOINT_NOT_FINITE`) The codec is lossy, and the update is not finite.
        """
        codec = self.codec
        if not codec.exact and not update.isfinite().all():
            raise ProblemError.of(ErrorCode.CHECKPOINT_NOT_FINITE, where="a client's update")
        if isinstance(codec, CodecPlugin):
            return encoded(codec, codec.encode, update, {} if state is None else state)
        return codec.encode(update)

    def unpack_update(self, message: bytes) -> Tensor:
        """Return the update (d,). Raises ValueError for a message of another size."""
        codec = self.codec
        if isinstance(codec, CodecPlugin):
            return decoded(codec, codec.decode, message, len(self.start))
        return codec.decode(message, len(self.start))
