"""The largest of an update's numbers with their places, and error feedback (Stich et al. 2018, arXiv:1809.07599).

With what the client left out before, e, an update u becomes v = u + e. Sent are the k = ⌈fraction·d⌉ coordinates of v
with the largest absolute values; of equal ones, those that come first. What they leave out is e from then on. The
message is

    their places, uint32, ascending, then their values, float32, in the same order; little-endian: 8·k bytes.

A model travels as its difference from what all parties start with: as places and values of all coordinates that differ
where that is shorter, and as float32 otherwise, after a byte that says which.
"""

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from starter_kit.compression.codecs import Float32
from starter_kit.compression.plugin_codecs import CodecPlugin

ERROR = "error"
SPARSE, DENSE = b"s", b"d"


class Codec(CodecPlugin):
    """Top-k with error feedback.

    Attributes:
        fraction: The share of an update's coordinates that are sent.
        error_feedback: Whether what is left out is added to the client's next update.
    """

    keeps_state: ClassVar[bool] = True

    fraction: float = Field(default=0.01, gt=0, le=1)
    error_feedback: bool = True

    def encode(self, update: Tensor, state: dict[str, Tensor]) -> bytes:
        whole = update + state[ERROR] if ERROR in state else update
        # The sort is stable, so that equal values are sent in the same choice everywhere.
        order = torch.sort(whole.abs(), descending=True, stable=True).indices
        places = order[: self._count(len(whole))].sort().values
        if self.error_feedback:
            state[ERROR] = whole.index_fill(0, places, 0.0)
        return _sparse(whole, places)

    def decode(self, message: bytes, size: int) -> Tensor:
        return _dense(message, self._count(size), size)

    def encode_model(self, change: Tensor) -> bytes:
        places = change.nonzero().squeeze(1)
        if len(places) == 0:
            return b""
        if 2 * len(places) < len(change):
            return SPARSE + _sparse(change, places)
        return DENSE + Float32().encode(change)

    def decode_model(self, message: bytes, size: int) -> Tensor:
        if not message:
            return torch.zeros(size)
        if message[:1] == DENSE:
            return Float32().decode(message[1:], size)
        return _dense(message[1:], (len(message) - 1) // 8, size)

    def _count(self, size: int) -> int:
        return int(np.ceil(self.fraction * size))


def _sparse(vector: Tensor, places: Tensor) -> bytes:
    return places.numpy().astype("<u4").tobytes() + vector[places].numpy().astype("<f4").tobytes()


def _dense(message: bytes, count: int, size: int) -> Tensor:
    if len(message) != 8 * count:
        raise ValueError(f"{count} places and values take {8 * count} bytes, not {len(message)}")
    places: NDArray[np.int64] = np.frombuffer(message, "<u4", count).astype(np.int64)
    if count and (places[-1] >= size or (np.diff(places) <= 0).any()):
        raise ValueError("places of a sparse message ascend, below the number of coordinates")
    values = np.frombuffer(message, "<f4", offset=4 * count)
    if not np.isfinite(values).all():
        raise ValueError("a value is not finite")
    vector = torch.zeros(size)
    vector[torch.from_numpy(places)] = torch.from_numpy(values.copy())
    return vector
