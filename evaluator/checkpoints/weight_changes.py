"""What training changed: the tensors that differ between base weights and checkpoint, and how much each could say.

The number of parameters that a change takes bounds what had to be sent for it: a matrix whose change has rank r is a
product of two factors with r·(m+n) parameters in all, as an adapter sends them. The rank is numerical. A merged
adapter is stored rounded, so its change is one of low rank plus rounding of full rank; directions no larger than
rounding are not counted. In 16-bit formats rounding is 2^13 (F16) or 2^16 (BF16) times that of F32 and hides
small directions, so the rank found is a lower bound. A change that was rounded to 16 bits and then stored as F32
counts as one of full rank.

The rank is read off a random sketch: G·A for a change A (m, n) and Gaussian G (128, m) has the rank of A up to 128
almost surely, and singular values within a small factor of those of A (Halko, Martinsson and Tropp, 2011,
arXiv:0909.4061). G is drawn from the hash of the checkpoint's tensor: the same files give the same result, and nobody
can fit a change to G.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator.checkpoints.header import ITEM_BYTES, Header, Tensor, read_header, untied
from evaluator.checkpoints.inspection import architecture_problems
from evaluator.errors import ProblemError

# A change of a higher rank counts as one of full rank.
MAX_RANK = 64
SKETCH_ROWS = 2 * MAX_RANK
# The roundings of so many independent merges, one on the other, still count as rounding.
MERGES = 16
# How many numbers are in memory at once.
SLICE = 2**21

# Largest relative error of rounding to the nearest number.
UNIT_ROUNDOFF = {"F64": 2.0**-53, "F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}
STORED_AS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


@dataclass(frozen=True)
class TensorChange:
    """A tensor that isn't, bit for bit, what it was.

    Attributes:
        rank: Numerical rank of a matrix's change, at least 1; None above `MAX_RANK` and for whatever is no matrix of
            finite floating-point numbers.
    """

    name: str
    shape: tuple[int, ...]
    numel: int
    rank: int | None

    @property
    def parameters(self) -> int:
        """The fewest numbers that say the change: all entries, or those of two factors."""
        return self.numel if self.rank is None else min(self.numel, self.rank * sum(self.shape))


def changed_tensors(base: Path, checkpoint: Path) -> list[TensorChange]:
    """Return the tensors of `base` that `checkpoint` holds with other bits, in the order of the base weights' file.

    Copies of the shared embedding are not looked at, and neither is what only the checkpoint has. Takes memory for a
    few slices and a map of one tensor of each file.

    Raises:
        ProblemError: ``E_CHECKPOINT_*``: one of the files is no safetensors file, or a tensor of the base is missing
            from the checkpoint or has another shape or dtype there.
    """
    before, after = read_header(base), read_header(checkpoint)
    expected = untied(before)
    shared = {name: tensor for name, tensor in after.tensors.items() if name in expected}
    if problems := list(architecture_problems(shared, expected)):
        raise ProblemError(*problems)
    changes = []
    for name, tensor in expected.items():
        old, new = tensor_bytes(base, before, tensor), tensor_bytes(checkpoint, after, shared[name])
        step = SLICE * ITEM_BYTES[tensor.dtype]
        slices = (slice(begin, begin + step) for begin in range(0, old.size, step))
        if not all(np.array_equal(old[some], new[some]) for some in slices):
            changes.append(TensorChange(name, tensor.shape, tensor.numel, _rank_of_change(tensor, old, new)))
    return changes


def _rank_of_change(tensor: Tensor, before: NDArray[np.uint8], after: NDArray[np.uint8]) -> int | None:
    if len(tensor.shape) != 2 or tensor.dtype not in STORED_AS:
        return None
    # The sketch is summed over the longer side, so that it is no larger than 128 times the shorter.
    short = min(tensor.shape)
    sketch = np.zeros((SKETCH_ROWS, short))
    squares = 0.0
    random = np.random.default_rng(list(hashlib.sha256(after.data).digest()))
    for old, new in zip(_slices(before, tensor), _slices(after, tensor), strict=True):
        squares += float(np.vdot(old, old) + np.vdot(new, new))
        if not math.isfinite(squares):
            return None
        sketch += random.standard_normal((SKETCH_ROWS, len(new))) @ (new - old)
    # Of independent rounding errors E, G·E is a random matrix with entries of variance |E|²/short, at most.
    rounding = UNIT_ROUNDOFF[tensor.dtype] * math.sqrt(MERGES * squares)
    tolerance = rounding * (1 + math.sqrt(SKETCH_ROWS / short))
    rank = int((np.linalg.svd(sketch, compute_uv=False) > tolerance).sum())
    return max(1, rank) if rank <= MAX_RANK else None


def _slices(stored: NDArray[np.uint8], tensor: Tensor) -> Iterator[NDArray[np.float64]]:
    """Yield a matrix in float64, in slices along its longer side, which comes first."""
    matrix = stored.view(STORED_AS[tensor.dtype]).reshape(tensor.shape)
    if tensor.shape[0] < tensor.shape[1]:
        matrix = matrix.T
    rows = max(1, SLICE // max(SKETCH_ROWS, matrix.shape[1]))
    for begin in range(0, len(matrix), rows):
        yield stored_numbers(matrix[begin : begin + rows], tensor.dtype).astype(np.float64)


def stored_numbers(stored: NDArray[Any], dtype: str) -> NDArray[np.floating]:
    """Return what is stored as `STORED_AS` says as numbers; a BF16 is the upper half of a float32."""
    return (stored.astype("<u4") << 16).view("<f4") if dtype == "BF16" else stored


def tensor_bytes(path: Path, header: Header, tensor: Tensor) -> NDArray[np.uint8]:
    """Return a map of a tensor's bytes, one-dimensional; an empty tensor can't be mapped."""
    size = tensor.end - tensor.begin
    if not size:
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, "r", offset=header.data_start + tensor.begin, shape=(size,))
