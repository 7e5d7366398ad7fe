"""The weight vector of a run, read from a checkpoint: its trainable tensors end to end, as float32."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluator.checkpoints.header import ITEM_BYTES, read_header
from evaluator.checkpoints.weight_changes import SLICE, STORED_AS, stored_numbers

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class _InFile:
    """A tensor that is read from its file when it is needed: a map would count as memory, page by page.

    Attributes:
        begin: Where it begins in the whole vector.
        offset: Where it begins in the file, in bytes.
        dtype: What the file has.
    """

    begin: int
    numel: int
    path: Path
    offset: int
    dtype: str

    def read(self, begin: int, end: int) -> Floats:
        """Return its coordinates from `begin` to `end`, counted from its own first one."""
        stored = np.fromfile(
            self.path,
            STORED_AS[self.dtype],
            count=end - begin,
            offset=self.offset + begin * ITEM_BYTES[self.dtype],
        )
        return stored_numbers(stored, self.dtype).astype(np.float32, copy=False)


@dataclass(frozen=True)
class _InMemory:
    """A tensor that isn't in the file, such as an adapter; see `_InFile`."""

    begin: int
    values: Floats

    @property
    def numel(self) -> int:
        return len(self.values)

    def read(self, begin: int, end: int) -> Floats:
        """Return its coordinates from `begin` to `end`, counted from its own first one."""
        return self.values[begin:end]


class WeightVector:
    """A vector of tensors that are read where they are needed; `weight_vector` makes it."""

    def __init__(self, parts: Sequence[_InFile | _InMemory]) -> None:
        self._parts = parts
        self.numel = parts[-1].begin + parts[-1].numel

    def read(self, begin: int, end: int) -> Floats:
        """Return the coordinates from `begin` to `end`, or to the last one where there are fewer."""
        return np.concatenate(
            [
                part.read(max(0, begin - part.begin), min(end - part.begin, part.numel))
                for part in self._parts
                if part.begin < end and begin < part.begin + part.numel
            ]
        )

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
    parts: list[_InFile | _InMemory] = []
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes.values()]
    for (name, shape), begin in zip(shapes.items(), accumulate(sizes, initial=0), strict=False):
        if name in beside:
            parts.append(_InMemory(begin, beside[name]))
            continue
        tensor = header.tensors.get(name)
        if tensor is None or tensor.shape != tuple(shape) or tensor.dtype not in STORED_AS:
            return None
        parts.append(_InFile(begin, tensor.numel, checkpoint, header.data_start + tensor.begin, tensor.dtype))
    return WeightVector(parts)
