"""Check C10: the change of the weights can be the work of the declared tensors."""

import math
from collections.abc import Iterator, Mapping, Sequence

from evaluator.checkpoints.weight_changes import MAX_RANK, TensorChange
from evaluator.messages.jobs import Check
from evaluator.records.difference import Difference, judge
from evaluator.records.lines import TrainableTensor

Shape = tuple[int, ...]


def tensors(
    trainable: Sequence[TrainableTensor],
    base: Mapping[str, Shape],
    changes: Sequence[TensorChange],
    *,
    released: bool,
) -> Check:
    """Check C10.

    Args:
        trainable: The declared tensors; those whose names the base weights don't have are adapters.
        base: The shapes of the base weights by name.
        changes: The tensors in which the checkpoint differs from the base weights.
        released: Whether any round released something: a client's message, or noise that the server adds even to an
            empty sum.
    """
    if changes and not released:
        unchanged = Difference(
            "the base weights, because no round released anything", f"{len(changes)} changed tensors"
        )
        return judge("C10", [unchanged], otherwise="")
    return judge(
        "C10",
        _differences(trainable, base, changes),
        otherwise=f"{len(trainable)} declared, {len(changes)} changed",
    )


def _differences(
    trainable: Sequence[TrainableTensor], base: Mapping[str, Shape], changes: Sequence[TensorChange]
) -> Iterator[Difference]:
    for tensor in trainable:
        if (shape := base.get(tensor.name, tuple(tensor.shape))) != tuple(tensor.shape):
            yield Difference(list(shape), tensor.shape, f"trainable, {tensor.name}")
    declared = {tensor.name for tensor in trainable}
    adapters = [tuple(tensor.shape) for tensor in trainable if tensor.name not in base]
    merged = [change for change in changes if change.name not in declared]
    for change in merged:
        if change.shape not in adapters and _rank(change) > (most := _largest_rank(adapters, change.shape)):
            expected = f"a change of rank at most {most}, as adapters produce" if most else "its base weights"
            yield Difference(expected, _described(change), f"tensor {change.name}")
    sent = sum(math.prod(shape) for shape in adapters)
    needed = sum(min(change.numel, _rank(change) * sum(change.shape)) for change in merged)
    if needed > sent:
        yield Difference(f"changes of at most {sent} parameters by adapters", needed, "undeclared tensors")


def _rank(change: TensorChange) -> int:
    """Return a lower bound on the change's rank; a change without a rank counts as one of a large rank."""
    return change.rank or MAX_RANK + 1


def _largest_rank(adapters: Sequence[Shape], shape: Shape) -> int:
    """Return the largest rank of a product of two adapters with this shape, or 0 where there is none.

    Either adapter may be stored transposed.
    """
    if len(shape) != 2:
        return 0
    beside = [
        {math.prod(factor) // length for factor in adapters if len(factor) == 2 and length in factor}
        for length in shape
    ]
    return max(beside[0] & beside[1], default=0)


def _described(change: TensorChange) -> str:
    return f"a change of rank {change.rank}" if change.rank else "another change"
