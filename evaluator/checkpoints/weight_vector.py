"""The weight vector of a run, read from a checkpoint: its trainable tensors end to end, as float32."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluator.checkpoints.header import read_header
from evaluator.checkpoints.weight_changes import SLICE, STORED_AS, stored_numbers, tensor_bytes

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class _Part:
    """A tensor of the vector, mapped and not in memory, in the dtype that the file has."""

    begin: int
    stored: NDArray[np.generic]
    dtype: str

    def read(self, begin: int, end: int) -> Floats:
        """Return its coordinates of those from `begin` to `end` of the whole vector; there may be none."""
        inside = self.stored[max(0, begin - self.begin) : max(0, end - self.begin)]
        return stored_numbers(inside, self.dtype).astype(np.float32)


class WeightVector:
    """A vector of tensors that are read where they are needed; `weight_vector` makes it."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = parts
        self.numel = parts[-1].begin + len(parts[-1].stored)

    def read(self, begin: int, end: int) -> Floats:
        """Return the coordinates from `begin` to `end`, or to the last one where there are fewer."""
        parts = [part for part in self._parts if part.begin < end and begin < part.begin + len(part.stored)]
        return np.concatenate([part.read(begin, end) for part in parts])

    def pieces(self) -> Iterator[Floats]:
        """Yield the whole vector in pieces of `SLICE` coordinates; the last one may be shorter."""
        for begin in range(0, self.numel, SLICE):
            yield self.read(begin, begin + SLICE)


def weight_vector(
    checkpoint: Path, shapes: Mapping[str, Sequence[int]], beside: Mapping[str, Floats] | None = None
) -> WeightVector | None:
    """Return the vector of the tensors named in `shapes`, in the given order.

    Args:
        beside: The coordinates of tensors that aren't in the file, such as adapters.

    Returns:
        None where a tensor is in neither, or has another shape, or isn't of floating-point numbers.

    Raises:
        ProblemError: ``E_CHECKPOINT_*``: the file is no safetensors file.
    """
    header, beside = read_header(checkpoint), beside or {}
    parts, sizes = [], [int(np.prod(shape, dtype=np.int64)) for shape in shapes.values()]
    for (name, shape), begin in zip(shapes.items(), accumulate(sizes, initial=0), strict=False):
        if name in beside:
            parts.append(_Part(begin, beside[name], "F32"))
            continue
        tensor = header.tensors.get(name)
        if tensor is None or tensor.shape != tuple(shape) or tensor.dtype not in STORED_AS:
            return None
        stored = np.asarray(tensor_bytes(checkpoint, header, tensor)).view(STORED_AS[tensor.dtype])
        parts.append(_Part(begin, stored, tensor.dtype))
    return WeightVector(parts)
