"""Matrices of low rank, with error feedback and a warm start (PowerSGD, Vogels et al. 2019, arXiv:1905.13727).

With what the client left out before, e, an update u becomes v = u + e. Each matrix M (n, m) of v is sent as two
factors, from one step of the power method:

    P ← orthonormal columns of M·Q        Q ← Mᵀ·P        sent: P (n, r) and Q (m, r), which give P·Qᵀ

Q begins with normal numbers, the same for all clients, and in the client's next message with the Q of this one. A
column that became zero begins again. What P·Qᵀ lacks of M is e from then on. A tensor of more dimensions is the matrix
(first, all others); a tensor that its factors are not smaller than, such as a vector, is sent as it is. The message is

    for each tensor, in their order: its P and its Q, or its numbers; float32, little-endian.

In the source, workers average their P before they compute Q. Here a client sends one message a round, so both factors
are its own, and the server averages the products. Models travel exactly, as their difference from what all parties
start with.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Self

import torch
from pydantic import Field, PrivateAttr
from torch import Tensor

from starter_kit.compression.codecs import Float32
from starter_kit.compression.plugin_codecs import CodecPlugin

ERROR = "error"


class Codec(CodecPlugin):
    """PowerSGD.

    Attributes:
        rank: r, how many columns P and Q have.
    """

    keeps_state: ClassVar[bool] = True

    rank: int = Field(default=2, ge=1)
    _shapes: tuple[torch.Size, ...] = PrivateAttr(())

    def with_layout(self, shapes: Sequence[torch.Size]) -> Self:
        fitted = self.model_copy()
        fitted._shapes = tuple(shapes)
        return fitted

    def encode(self, update: Tensor, state: dict[str, Tensor]) -> bytes:
        whole = update + state[ERROR] if ERROR in state else update
        numbers = []
        for place, part in enumerate(self._parts(whole)):
            if self._has_factors(part):
                left = torch.linalg.qr(part @ _begun(state, place, part.shape[1], self.rank)).Q
                right = part.T @ left
                state[_name(place)] = right
                numbers += [left.reshape(-1), right.reshape(-1)]
            else:
                numbers.append(part.reshape(-1))
        message = Float32().encode(torch.cat(numbers))
        state[ERROR] = whole - self.decode(message, len(whole))
        return message

    def decode(self, message: bytes, size: int) -> Tensor:
        # What is copied into these parts is copied into the vector.
        vector = torch.empty(size)
        parts = list(self._parts(vector))
        counts = [self.rank * sum(part.shape) if self._has_factors(part) else part.numel() for part in parts]
        numbers = Float32().decode(message, sum(counts))
        if not numbers.isfinite().all():
            raise ValueError("a number is not finite")
        for part, sent in zip(parts, torch.split(numbers, counts), strict=True):
            if self._has_factors(part):
                left, right = torch.split(sent.view(-1, self.rank), list(part.shape))
                part.copy_(left @ right.T)
            else:
                part.copy_(sent.view_as(part))
        return vector

    def _parts(self, vector: Tensor) -> Iterator[Tensor]:
        """Yield each tensor of `vector` (d,) as a matrix in the same memory; the last has what no tensor covers."""
        counts = [shape.numel() for shape in self._shapes]
        *parts, rest = torch.split(vector, [*counts, len(vector) - sum(counts)])
        for part, shape in zip(parts, self._shapes, strict=True):
            yield part.view(shape[0] if shape else 1, -1)
        yield rest.view(1, -1)

    def _has_factors(self, part: Tensor) -> bool:
        rows, columns = part.shape
        return self.rank * (rows + columns) < rows * columns


def _begun(state: dict[str, Tensor], place: int, columns: int, rank: int) -> Tensor:
    """Return the Q (columns, rank) that a message begins with."""
    new = torch.randn(columns, rank, generator=torch.Generator().manual_seed(place))
    kept = state.get(_name(place), torch.zeros_like(new))
    return kept.where(kept.any(dim=0), new)


def _name(place: int) -> str:
    return f"{place}.right"
