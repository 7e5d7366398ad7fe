"""Training many providers at once, each by itself, where low-rank adapters are all that is trained.

A provider's adapters are small, and the model beside them is the same for all. So the adapters of G providers are
stacked, (G, rank, in) and (G, out, rank). A step is one pass of the model over a batch of each provider, in which a
provider's examples pass through its own adapters and no others; one backward pass over the sum of the providers'
losses, which gives each provider the gradient of its own loss; and one step of an elementwise optimizer over the
stacks, which is G independent steps. A provider that has made its last step doesn't change any more, not even by weight
decay.

A provider whose batch doesn't fit beside another's, into memory or into `compute.micro_batch_size`, trains by itself.

In exact arithmetic the result equals that of training one after another. Rounding depends on who shares a stack, and
AdamW amplifies it where a gradient is nearly zero, as it divides by the gradient's size: where updates must be private,
`adam_epsilon` should be above that size.

`make_learner` trains one after another instead where a stack would change the result or be no faster:

- tensors other than adapters are trained, such as box and image layers in full: stacks of those are large;
- dropout is on: the masks of a batch follow from one seed, so that one provider's would depend on the others' examples;
- the model reads batches in the published way, so that a row's padding, and thereby its output, depends on the others;
- the optimizer is Shampoo, which is not elementwise, or a plug-in, which may not be;
- gradients are clipped, or the learning rate changes from step to step: both would need a factor for each provider;
- a hook corrects the gradients, and sees one provider's parameters.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn import Parameter

from evaluator.docvqa.inference import is_out_of_memory
from starter_kit.compression.lora import Adapters
from starter_kit.learning.documents import Documents
from starter_kit.learning.local_training import Learner, LocalTraining, batches, make_optimizer
from starter_kit.learning.tensors import TrainableTensors
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.randomness import Stream

logger = logging.getLogger(__name__)

CPU_MEMORY_BYTES = 1 << 29
GPU_MEMORY_SHARE = 4
# The share of that memory that can be used: an allocator loses the rest to fragmentation, as sizes vary by step.
USABLE = 0.9

# The batches of one provider.
Batches = list[list[int]]


def make_learner(model: TrainableModel, documents: Documents, local: LocalTraining | None) -> Learner:
    """Return the fastest learner for `model` and its examples.

    Args:
        local: How providers train; None where the method needs only gradients.
    """
    if (
        model.adapters is None
        or not model.trains_adapters_only
        or model.dropout
        or model.config.published_batching
        or local is None
        or not local.is_elementwise
    ):
        return Learner(model.tensors, documents.loss, backward=documents.backward, prepare=documents.prepare)
    return StackedLearner(model.tensors, documents, model.adapters, model.backward)


class StackedLearner(Learner):
    """A learner whose providers train together, in stacks of `local.providers_at_once`.

    Args:
        tensors: The tensors of the adapters, and no others.
        documents: The training examples.
        propagate: Adds the gradient of a loss to the adapters that it depends on.
    """

    def __init__(
        self,
        tensors: TrainableTensors,
        documents: Documents,
        adapters: Adapters,
        propagate: Callable[[Tensor], None] = torch.autograd.backward,
    ) -> None:
        super().__init__(tensors, documents.loss, backward=documents.backward, prepare=documents.prepare)
        self._documents = documents
        self._adapters = adapters
        self._propagate = propagate
        self._bytes_of_an_example: int | None = None

    def provider_changes(
        self, weights: Tensor, providers: Mapping[str, Sequence[int]], local: LocalTraining, stream: Stream
    ) -> Iterator[Tensor]:
        """Yield the change (d,) that each provider's own training from `weights` (d,) makes, in their order.

        Raises:
            ValueError: The steps are not elementwise.
        """
        if not local.is_elementwise:
            raise ValueError(f"providers can't be stacked under {local.optimizer} with steps that differ")
        if not any(providers.values()):
            yield from (torch.zeros_like(weights) for _ in providers)
            return
        names = list(providers)
        at_once = self.providers_at_once(local)
        while names and at_once > 1:
            some = names[:at_once]
            try:
                changes = self._changes(weights, {name: providers[name] for name in some}, local, stream)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                changes = None
            if changes is None:
                # Outside of the handler, nothing holds what the failed training stored. Half of them start again.
                at_once = max(1, len(some) // 2)
                logger.warning("memory doesn't suffice; continuing with %d providers at once", at_once)
                continue
            yield from changes
            names = names[len(some) :]
        # One by one, whose batches can pass through the model in parts.
        yield from super().provider_changes(weights, {name: providers[name] for name in names}, local, stream)

    def _changes(
        self, weights: Tensor, providers: Mapping[str, Sequence[int]], local: LocalTraining, stream: Stream
    ) -> Iterator[Tensor]:
        """Train these providers at once, and return the change (d,) of each, in their order."""
        plans = [
            list(batches(examples, local, stream.at("provider", name)))
            for name, examples in providers.items()
        ]
        longest_first = sorted(range(len(plans)), key=lambda place: -len(plans[place]))
        stacks = self._stacks(weights, len(plans))
        self._train(stacks, [plans[place] for place in longest_first], local)
        return (
            torch.cat([stack[row].reshape(-1).to(weights.device) for stack in stacks]).sub_(weights)
            for row in sorted(range(len(plans)), key=longest_first.__getitem__)
        )

    def _stacks(self, weights: Tensor, count: int) -> list[Tensor]:
        """Return a stack (count, ...) of copies of each adapter in `weights` (d,)."""
        parameters = self.tensors.parameters.values()
        parts = torch.split(weights, [parameter.numel() for parameter in parameters])
        return [
            part.to(parameter).view_as(parameter).expand(count, *parameter.shape).clone()
            for parameter, part in zip(parameters, parts, strict=True)
        ]

    def _train(self, stacks: list[Tensor], plans: Sequence[Batches], local: LocalTraining) -> None:
        """Train each row of `stacks` by its plan, the longest first, so that the first rows are those still
        training."""
        trained = [parameter.requires_grad for parameter in self.tensors.parameters.values()]
        optimizer = make_optimizer(
            [Parameter(stack, requires_grad=one) for stack, one in zip(stacks, trained, strict=True)], local
        )
        for step in range(len(plans[0])):
            groups = [plan[step] for plan in plans if step < len(plan)]
            parameters = _first_rows(optimizer, len(groups))
            optimizer.zero_grad()
            named = dict(zip(self.tensors.parameters, parameters, strict=True))
            with self._adapters.using(named, [len(group) for group in groups]):
                self._propagate(self._documents.losses(groups).sum())
            optimizer.step()

    def providers_at_once(self, local: LocalTraining) -> int:
        """Return how many providers train at once, at least one: as many as `local` says or else as fit into the memory
        reserved for it, but no more than have their batches in one micro-batch.
        """
        at_once = local.providers_at_once or self._providers_that_fit(local)
        if self._documents.micro_batch_size is not None:
            at_once = min(at_once, self._documents.micro_batch_size // local.batch_size)
        return max(1, at_once)

    def _providers_that_fit(self, local: LocalTraining) -> int:
        """Estimate how many providers can train at once in the memory reserved for it; perhaps none.

        The estimate covers what the model stores of a batch for the backward pass; twice as much again for temporary
        tensors in it, which aren't freed at once; and five vectors per provider: adapters, gradient, two moments, and a
        temporary one.
        """
        if self._bytes_of_an_example is None:
            longest = self._documents.longest
            one, two = (bytes_saved(partial(self._documents.losses, [[longest] * n])) for n in (1, 2))
            # The difference excludes the model's weights, which are stored in both cases.
            self._bytes_of_an_example = two - one
        provider = 3 * local.batch_size * self._bytes_of_an_example + 5 * 4 * self.tensors.size
        return int(USABLE * _memory_bytes(self.device)) // provider


def _first_rows(optimizer: torch.optim.Optimizer, count: int) -> list[Parameter]:
    """Cut the optimizer's parameters and their state to the first `count` rows, in the same memory."""
    group = optimizer.param_groups[0]
    for place, stack in enumerate(group["params"]):
        if len(stack) > count:
            group["params"][place] = kept = Parameter(
                stack.detach()[:count], requires_grad=stack.requires_grad
            )
            optimizer.state[kept] = {
                name: value if value is None or value.dim() == 0 else value[:count]
                for name, value in optimizer.state.pop(stack, {}).items()
            }
    parameters: list[Parameter] = group["params"]
    return parameters


def bytes_saved(forward: Callable[[], Tensor], beside: Iterable[Tensor] = ()) -> int:
    """Return the memory that the backward pass of `forward`'s result needs, including the model's weights.

    Args:
        beside: Tensors that aren't counted, such as the model's weights.
    """
    known = {tensor.untyped_storage().data_ptr() for tensor in beside}
    saved: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        # Where an operation saves its result, the tensor itself would lead back to the operation, and neither be freed.
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        # The result stays referenced, so that no memory is used twice.
        result = forward()
    del result
    return sum(size for place, size in saved.items() if place not in known)


def _memory_bytes(device: torch.device) -> int:
    match device.type:
        case "cuda":
            return torch.cuda.get_device_properties(device).total_memory // GPU_MEMORY_SHARE
        case "mps":
            return torch.mps.recommended_max_memory() // GPU_MEMORY_SHARE
        case _:
            return CPU_MEMORY_BYTES
