"""Adapters, merged again: whether the checkpoint is the base weights with the products of the annex's adapters.

W becomes W + scale·B·A, in float32 and in any order. With eps = 2⁻²³ and a rank r, an entry of B·A takes r products
and r − 1 sums, so that its error is below r·eps/2·(|B|·|A|); scale, product and the last sum take a few operations
more, for which `replay.ROUNDINGS` leaves room. The checkpoint is rounded once more to its own format.

Large factors that cancel would make these bounds so wide that any matrix fits: with rank 2 and B·A = 0, entries of 2¹²
hide a change of 36 in every weight. So in no row and no column may the bounds be long beside the product itself.
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
# How long the bounds of rounding may be in a row or a column, over the length of the product there.
MOST_ROUNDED = 2.0**-10
CANCELING = "adapters whose products cancel, so that rounding could hide a change"

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
                    "the first values derived from the run token", "others", f"adapter {tensor.name}"
                )
        if found := merge_fault(pair, run.lora_scale or 0.0, end, base, checkpoint):
            yield Difference(
                "the base weights and the product of its adapters in the annex",
                found,
                f"tensor {pair.target}",
            )


def merge_fault(pair: Adapter, scale: float, end: Tensors, base: Path, checkpoint: Path) -> str:
    """Return what the target of `pair` is instead of the base weights with its product in `end`; empty if it is that.

    Rounding is allowed for.
    """
    (rank, columns), (rows, _) = pair.down.shape, pair.up.shape
    shapes = {pair.target: [rows, columns]}
    old, new = weight_vector(base, shapes), weight_vector(checkpoint, shapes)
    if old is None or new is None:
        return "others"
    down = end[pair.down.name].astype(np.float64).reshape(rank, columns)
    up = end[pair.up.name].astype(np.float64).reshape(rows, rank)
    stored = UNIT_ROUNDOFF[read_header(checkpoint).tensors[pair.target].dtype]
    share = ROUNDING + rank * EPS / 2
    step = max(1, MERGED_AT_ONCE // max(1, columns))
    products, bounded = np.zeros(columns), np.zeros(columns)
    for row in range(0, rows, step):
        part, bounds = up[row : row + step], (row * columns, min(rows, row + step) * columns)
        before, after = (
            vector.read(*bounds).astype(np.float64).reshape(-1, columns) for vector in (old, new)
        )
        product: Matrix = scale * (part @ down)
        bound: Matrix = share * scale * (np.abs(part) @ np.abs(down))
        rounding = bound + share * np.abs(before) + stored * np.abs(after)
        if not (np.abs(after - before - product) <= rounding).all():
            return "others"
        squares, hidden = product**2, bound**2
        products += squares.sum(axis=0)
        bounded += hidden.sum(axis=0)
        if _cancels(squares.sum(axis=1), hidden.sum(axis=1)):
            return CANCELING
    return CANCELING if _cancels(products, bounded) else ""


def _cancels(products: Matrix, hidden: Matrix) -> bool:
    """Return whether rounding could hide too much, by the squared lengths of rows or columns."""
    return bool((hidden > MOST_ROUNDED**2 * products).any())
