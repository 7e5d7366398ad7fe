"""The weight vector of a run, read from a checkpoint: its trainable tensors end to end, as float32."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluator.checkpoints.header import ITEM_BYTES, read_header
from evaluator.checkpoints.weight_changes import SLICE, STORED_AS, stored_numbers

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class _Part:
    """A tensor that is read where it is needed: a map of its file would count as memory, page by page.

    Attributes:
        begin: Where it begins in the whole vector.
        read: Returns its coordinates from one to another, counted from its own first one.
    """

    begin: int
    numel: int
    read: Callable[[int, int], Floats]


class WeightVector:
    """A vector of tensors that are read where they are needed; `weight_vector` makes it."""

    def __init__(self, parts: Sequence[_Part]) -> None:
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
    parts: list[_Part] = []
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes.values()]
    for (name, shape), begin in zip(shapes.items(), accumulate(sizes, initial=0), strict=False):
        if name in beside:
            values = beside[name]
            parts.append(_Part(begin, len(values), partial(_slice, values)))
            continue
        tensor = header.tensors.get(name)
        if tensor is None or tensor.shape != tuple(shape) or tensor.dtype not in STORED_AS:
            return None
        read = partial(_read, checkpoint, header.data_start + tensor.begin, tensor.dtype)
        parts.append(_Part(begin, tensor.numel, read))
    return WeightVector(parts)


def _slice(values: Floats, begin: int, end: int) -> Floats:
    return values[begin:end]


def _read(path: Path, offset: int, dtype: str, begin: int, end: int) -> Floats:
    """Return the coordinates from `begin` to `end` of a tensor that begins `offset` bytes into a file."""
    start = offset + begin * ITEM_BYTES[dtype]
    stored = np.fromfile(path, STORED_AS[dtype], count=end - begin, offset=start)
    return stored_numbers(stored, dtype).astype(np.float32, copy=False)
