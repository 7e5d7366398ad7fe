"""How models and updates travel: as the bytes of a codec.

A lossy codec encodes differences from the weights that every party started from, which are small: the first download is
then exact, and only the change loses precision.
"""

from dataclasses import dataclass

from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.compression.codecs import Codec


@dataclass(frozen=True)
class Wire:
    """The codec of a run, with the weights (d,) that all parties know before the first round."""

    codec: Codec
    start: Tensor

    def pack_model(self, weights: Tensor) -> bytes:
        """Return the message for the model `weights` (d,)."""
        return self.codec.encode(weights if self.codec.exact else weights - self.start)

    def unpack_model(self, message: bytes) -> Tensor:
        """Return the model (d,). Raises ValueError for a message of another size."""
        vector = self.codec.decode(message, len(self.start))
        return vector if self.codec.exact else self.start + vector

    def pack_update(self, update: Tensor) -> bytes:
        """Return the message for `update` (d,).

        Raises:
            ProblemError: (`E_CHECKPOINT_NOT_FINITE`) The codec is lossy, and the update is not finite.
        """
        if not self.codec.exact and not update.isfinite().all():
            raise ProblemError.of(ErrorCode.CHECKPOINT_NOT_FINITE, where="a client's update")
        return self.codec.encode(update)

    def unpack_update(self, message: bytes) -> Tensor:
        """Return the update (d,). Raises ValueError for a message of another size."""
        return self.codec.decode(message, len(self.start))
