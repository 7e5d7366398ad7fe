"""Adapters, merged again: whether the checkpoint is the base weights with the products of the annex's adapters.

W becomes W + scale·B·A, in float32 and in any order. With eps = 2⁻²³ and a rank r, an entry of B·A takes r products
and r − 1 sums, so that its error is below r·eps/2·(|B|·|A|); scale, product and the last sum take a few operations
more, for which `replay.ROUNDINGS` leaves room. The checkpoint is rounded once more to its own format.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluator.checkpoints.header import read_header
from evaluator.checkpoints.weight_changes import UNIT_ROUNDOFF, TensorChange
from evaluator.checkpoints.weight_vector import Floats, weight_vector
from evaluator.messages.checks import Difference
from evaluator.records.adapter_start import first_values
from evaluator.records.lines import Adapter, RunLine
from evaluator.records.replay import EPS, ROUNDING

# How many entries of a matrix are merged at once.
MERGED_AT_ONCE = 2**20

Tensors = Mapping[str, Floats]
Matrix = NDArray[np.float64]


def badly_merged(
    run: RunLine, start: Tensors, end: Tensors, base: Path, checkpoint: Path, changes: Sequence[TensorChange]
) -> Iterator[Difference]:
    """Yield what the merged adapters don't explain; `changes` are the tensors that differ from the base weights."""
    explained = {tensor.name for tensor in run.trainable} | {pair.target for pair in run.adapters}
    for change in changes:
        if change.name not in explained:
            yield Difference(
                "its base weights, because it is neither trained nor part of an adapter",
                "others",
                f"tensor {change.name}",
            )
    for pair in run.adapters:
        for tensor in (pair.down, pair.up):
            if not np.array_equal(start[tensor.name], first_values(run.run_token, tensor)):
                yield Difference(
                    "the first values that follow from the run token", "others", f"adapter {tensor.name}"
                )
        if not is_merged(pair, run.lora_scale or 0.0, end, base, checkpoint):
            yield Difference(
                "the base weights and the product of its adapters in the annex",
                "others",
                f"tensor {pair.target}",
            )


def is_merged(pair: Adapter, scale: float, end: Tensors, base: Path, checkpoint: Path) -> bool:
    """Return whether the target of `pair` is the base weights with its product in `end`, but for rounding."""
    (rank, columns), (rows, _) = pair.down.shape, pair.up.shape
    shapes = {pair.target: [rows, columns]}
    old, new = weight_vector(base, shapes), weight_vector(checkpoint, shapes)
    if old is None or new is None:
        return False
    down = end[pair.down.name].astype(np.float64).reshape(rank, columns)
    up = end[pair.up.name].astype(np.float64).reshape(rows, rank)
    stored = UNIT_ROUNDOFF[read_header(checkpoint).tensors[pair.target].dtype]
    step = max(1, MERGED_AT_ONCE // max(1, columns))
    for row in range(0, rows, step):
        part, bounds = up[row : row + step], (row * columns, min(rows, row + step) * columns)
        before, after = (
            vector.read(*bounds).astype(np.float64).reshape(-1, columns) for vector in (old, new)
        )
        merged = before + scale * (part @ down)
        magnitudes: Matrix = scale * (np.abs(part) @ np.abs(down))
        rounding = (ROUNDING + rank * EPS / 2) * (magnitudes + np.abs(before)) + stored * np.abs(after)
        if not (np.abs(after - merged) <= rounding).all():
            return False
    return True
