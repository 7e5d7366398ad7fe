"""Adapters, merged again: whether the checkpoint is the base weights with the changes of the annex's adapters.

W becomes W + scale·U·D (`evaluator.parametrizations`), which the kit computes in float64 as well. Others may do so in
float32 and in any order: with eps = 2⁻²³ and a rank r, an entry of U·D takes r products and r − 1 sums, so that its
error is below r·eps/2·(|U|·|D|); scale, product and the last sum take a few operations more, for which
`replay.ROUNDINGS` leaves room. The checkpoint is rounded once more to its own format.

Large factors that cancel would make these bounds so wide that any matrix fits: with rank 2 and U·D = 0, entries of 2¹²
hide a change of 36 in every weight. So in no row and no column may the bounds be long beside the product itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from evaluator.checkpoints.header import read_header
from evaluator.checkpoints.weight_changes import UNIT_ROUNDOFF, TensorChange
from evaluator.checkpoints.weight_vector import Floats, weight_vector
from evaluator.messages.checks import Difference
from evaluator.parametrizations.core import NoSingularVectorsError
from evaluator.parametrizations.parametrization import Doubles, NewAdapter, added, doubles
from evaluator.records.lines import Adapter, RunLine
from evaluator.records.replay import EPS, ROUNDING

# How many entries of a matrix are merged at once.
MERGED_AT_ONCE = 2**20
# How long the bounds of rounding may be in a row or a column, over the length of the product there.
MOST_ROUNDED = 2.0**-10
CANCELING = "adapters whose products cancel, so that rounding could hide a change"

Tensors = Mapping[str, Floats]


def badly_merged(
    run: RunLine, start: Tensors, end: Tensors, base: Path, checkpoint: Path, changes: Sequence[TensorChange]
) -> Iterator[Difference]:
    """Yield what the merged adapters don't explain; `changes` are the tensors that differ from the base weights."""
    explained = {tensor.name for tensor in run.trainable} | {adapter.target for adapter in run.adapters}
    for change in changes:
        if change.name not in explained:
            yield Difference(
                "its base weights, because it is neither trained nor part of an adapter",
                "others",
                f"tensor {change.name}",
            )
    for adapter in run.adapters:
        first = first_parts(adapter, run.run_token or "", base)
        for letter, tensor in adapter.tensors.items():
            if first is not None and not np.array_equal(start[tensor.name], first[letter].reshape(-1)):
                yield Difference(
                    "the first values derived from the run token", "others", f"adapter {tensor.name}"
                )
        if found := merge_fault(adapter, run.lora_scale or 0.0, first, end, base, checkpoint):
            yield Difference(
                "the base weights and the product of its adapters in the annex",
                found,
                f"tensor {adapter.target}",
            )


def first_parts(adapter: Adapter, start: str, base: Path) -> Mapping[str, Floats] | None:
    """Return the first values of all parts of an adapter by their letters; None where it doesn't fit the base weights.

    Args:
        start: The run token, or what a transcript says in its place.
    """
    known = read_header(base).tensors.get(adapter.target)
    if known is None or not adapter.fits(known.shape):
        return None
    rows, columns = known.shape
    vector = weight_vector(base, {adapter.target: known.shape})
    if vector is None:
        return None
    try:
        return adapter.parametrization.first_values(
            NewAdapter(
                adapter.layer,
                start,
                adapter.rank,
                (rows, columns),
                lambda: vector.read(0, vector.numel).reshape(rows, columns),
            )
        )
    except NoSingularVectorsError:
        return None


def merge_fault(
    adapter: Adapter,
    scale: float,
    first: Mapping[str, Floats] | None,
    end: Tensors,
    base: Path,
    checkpoint: Path,
) -> str:
    """Return what the target is instead of the base weights with the adapter in them; empty if it is that.

    Rounding is allowed for.

    Args:
        first: The first values of all parts: see `first_parts`.
        end: The last values of those that are trained, by the names of tensors.
    """
    if first is None:
        return "others"
    last = {letter: end[tensor.name].reshape(tensor.shape) for letter, tensor in adapter.tensors.items()}
    down, up = adapter.parametrization.factors(doubles({**first, **last}))
    rows, columns = len(up), down.shape[1]
    shapes = {adapter.target: [rows, columns]}
    old, new = weight_vector(base, shapes), weight_vector(checkpoint, shapes)
    if old is None or new is None:
        return "others"
    stored = UNIT_ROUNDOFF[read_header(checkpoint).tensors[adapter.target].dtype]
    share = ROUNDING + len(down) * EPS / 2
    step = max(1, MERGED_AT_ONCE // max(1, columns))
    products, bounded = np.zeros(columns), np.zeros(columns)
    for row in range(0, rows, step):
        some, bounds = slice(row, row + step), (row * columns, min(rows, row + step) * columns)
        before, after = (
            vector.read(*bounds).astype(np.float64).reshape(-1, columns) for vector in (old, new)
        )
        product = added(scale, down, up[some])
        bound = share * added(scale, np.abs(down), np.abs(up[some]))
        rounding = bound + ROUNDING * np.abs(before) + stored * np.abs(after)
        if not (np.abs(after - before - product) <= rounding).all():
            return "others"
        squares, hidden = product**2, bound**2
        products += squares.sum(axis=0)
        bounded += hidden.sum(axis=0)
        if _cancels(squares.sum(axis=1), hidden.sum(axis=1)):
            return CANCELING
    return CANCELING if _cancels(products, bounded) else ""


def _cancels(products: Doubles, hidden: Doubles) -> bool:
    """Return whether rounding could hide too much, by the squared lengths of rows or columns."""
    return bool((hidden > MOST_ROUNDED**2 * products).any())
