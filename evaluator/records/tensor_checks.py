"""The check that the change in the weights can be the work of the declared tensors."""

import math
from collections.abc import Iterator, Mapping, Sequence

from evaluator.checkpoints.header import read_header
from evaluator.checkpoints.weight_changes import MAX_RANK, TensorChange
from evaluator.errors import ErrorCode
from evaluator.mechanisms.noise import Placement
from evaluator.messages.checks import Difference, Findings, NamedCheck
from evaluator.messages.jobs import Check
from evaluator.records.case import Case, RunFile, record_check
from evaluator.records.lines import RunLine, TrainableTensor

Shape = tuple[int, ...]


@record_check(
    NamedCheck(
        "record.tensors",
        name="trained tensors",
        meaning="The declared tensors are distinct, in the order of their names, and have the shapes of the base "
        "weights. If any other tensor of the checkpoint changed, the declared adapters can produce a change of that "
        "rank.",
        limit="Tensors that were sent but did not change.",
        code=ErrorCode.RECORD_TENSORS,
        findings=Findings.PUBLIC,
    ),
    RunFile.BASE,
    RunFile.CHECKPOINT,
)
def tensors(this: NamedCheck, case: Case) -> Check:
    record, run = case.record, case.record.run
    shapes = {name: tensor.shape for name, tensor in read_header(case.files[RunFile.BASE]).tensors.items()}
    # A client's message, or noise that the server adds even to an empty sum.
    is_noised = record.run.noise.placement is Placement.SERVER
    released = any(is_noised or line.clients for line in record.rounds)
    return this.judge(
        tensor_differences(run.trainable, shapes, case.changes, _frozen(run, shapes), released=released),
        otherwise=f"{len(run.trainable)} declared, {len(case.changes)} changed",
    )


def _frozen(run: RunLine, base: Mapping[str, Shape]) -> list[Shape]:
    """Return the shapes of the parts of the run's adapters that aren't trained."""
    shapes: list[Shape] = []
    for adapter in run.adapters:
        if adapter.fits(weight := base.get(adapter.target, ())):
            parts = adapter.parametrization.parts
            shapes += [part.shape(adapter.rank, weight) for part in parts if not part.is_trained]
    return shapes


def tensor_differences(
    trainable: Sequence[TrainableTensor],
    base: Mapping[str, Shape],
    changes: Sequence[TensorChange],
    frozen: Sequence[Shape] = (),
    *,
    released: bool,
) -> Iterator[Difference]:
    """Yield what can't be the work of the declared tensors.

    Args:
        trainable: The declared tensors; those whose names the base weights don't have are adapters.
        base: The shapes of the base weights by name.
        changes: The tensors in which the checkpoint differs from the base weights.
        frozen: The shapes of parts of adapters that aren't trained.
        released: Whether any round released something.
    """
    if changes and not released:
        unchanged = "the base weights, because no round released anything"
        yield Difference(unchanged, f"{len(changes)} changed tensors")
        return
    names = [tensor.name for tensor in trainable]
    if names != sorted(names):
        # Whoever may choose the order can put what matters into few blocks.
        unordered = next(name for name, due in zip(names, sorted(names), strict=True) if name != due)
        yield Difference("tensors in the order of their names", unordered, "line 1, trainable")
    for tensor in trainable:
        if (shape := base.get(tensor.name, tuple(tensor.shape))) != tuple(tensor.shape):
            yield Difference(list(shape), tensor.shape, f"trainable, {tensor.name}")
    declared = {tensor.name for tensor in trainable}
    adapters = [*frozen, *(tuple(tensor.shape) for tensor in trainable if tensor.name not in base)]
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
