"""Seeds and scalars: a vector as a combination of fixed directions, one for each of K seeds (Qin et al. 2023).

Of arXiv:2312.06353, this is what FedKSeed sends. The directions are those of `starter_kit.compression.directions`. A
vector becomes the coefficients of the combination that is nearest to it, rounded to multiples of their scale, the
largest absolute value over 32767. The message is empty if all coefficients are zero, and otherwise the shorter of

    the scale, float32, then K coefficients, int16
    the scale, float32, then the seeds with a coefficient other than zero, uint16, ascending, then their coefficients,
    int16

little-endian. Where both are equally long, it is the first one. What other methods send loses all that isn't along the
directions.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from starter_kit.compression.directions import DirectionsCodec, coefficients_of, combined

LEVELS = 32767
SMALLEST = np.finfo(np.float32).smallest_normal


class Codec(DirectionsCodec):
    """Seeds and scalars."""

    def encode(self, update: Tensor, state: dict[str, Tensor]) -> bytes:
        return self.encode_model(update)

    def decode(self, message: bytes, size: int) -> Tensor:
        return self.decode_model(message, size)

    def encode_model(self, change: Tensor) -> bytes:
        found = coefficients_of(change, self.seeds)
        scale = np.float32(np.abs(found).max() / LEVELS)
        if scale < SMALLEST:
            return b""
        levels = np.clip(np.rint(found / scale), -LEVELS, LEVELS).astype("<i2")
        used = np.flatnonzero(levels)
        dense, sparse = levels.tobytes(), used.astype("<u2").tobytes() + levels[used].tobytes()
        return np.array(scale, "<f4").tobytes() + (sparse if len(sparse) < len(dense) else dense)

    def decode_model(self, message: bytes, size: int) -> Tensor:
        if not message:
            return torch.zeros(size)
        if len(message) < 4 or len(message) > 4 + 2 * self.seeds or len(message) % 2:
            raise ValueError(f"at most {self.seeds} coefficients and their scale, not {len(message)} bytes")
        scale, sent = np.frombuffer(message, "<f4", 1)[0], message[4:]
        if not (np.isfinite(scale) and scale >= SMALLEST):
            raise ValueError("a scale that no encoder writes")
        levels = np.zeros(self.seeds)
        if len(sent) == 2 * self.seeds:
            levels[:] = np.frombuffer(sent, "<i2")
        else:
            used = self._used(sent)
            levels[used] = np.frombuffer(sent, "<i2", offset=2 * len(used))
        return combined(levels, size, float(scale))

    def _used(self, sent: bytes) -> NDArray[np.int64]:
        """Return the seeds of a sparse message."""
        if len(sent) % 4:
            raise ValueError("a seed without a coefficient")
        used = np.frombuffer(sent, "<u2", len(sent) // 4).astype(np.int64)
        if (used >= self.seeds).any() or (np.diff(used) <= 0).any():
            raise ValueError(f"seeds ascend and are below {self.seeds}")
        return used
