"""Training many providers at once, each by itself, where low-rank adapters are all that is trained.

A provider's adapters are small and the model that they stand beside is the same for all. So the adapters of G providers
are stacked, (G, rank, in) and (G, out, rank). A step is one pass of the model over a batch of each provider, in which a
provider's examples meet its own adapters and no others; one backward pass over the sum of the providers' losses, which
leaves each with the gradient of its own; and one step of an elementwise optimizer over the stacks, which is G steps
that know nothing of each other. A provider that has made its last step is not touched again, not even by weight decay.

In exact arithmetic that is what training one after another gives. Rounding depends on who shares a stack, and AdamW
makes much of it where a gradient is nearly zero, as it divides by the gradient's size: where updates are to be private,
`adam_epsilon` should be above that size.

`make_learner` trains one after another instead where a stack would change the result or gain nothing:

- other tensors are trained than adapters, such as box and image layers in full: stacks of those are large;
- dropout is on: the masks of a batch follow from one seed, so that one provider's would depend on the others' examples;
- the model reads batches in the published way, so that a row's padding, and thereby its output, depends on the others;
- the optimizer is Shampoo, which is not elementwise.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import Parameter

from starter_kit.compression.lora import Adapters
from starter_kit.learning.local_training import Learner, LocalTraining, batches, make_optimizer
from starter_kit.learning.tensors import TrainableTensors
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.randomness import Stream

CPU_MEMORY_BYTES = 1 << 29
GPU_MEMORY_SHARE = 4
# Of the memory: an allocator loses the rest between tensors whose sizes differ from step to step.
USABLE = 0.9
ELEMENTWISE = ("adamw", "sgd")

# The batches of one provider.
Batches = list[list[int]]


class GroupedExamples(Protocol):
    """Examples whose loss can be had for several batches in one pass of the model."""

    @property
    def longest(self) -> int:
        """The example that takes most memory."""

    def loss(self, examples: Sequence[int]) -> Tensor:
        """The mean loss over the examples."""

    def losses(self, groups: Sequence[Sequence[int]]) -> Tensor:
        """The `loss` (G,) of each group."""


def make_learner(model: TrainableModel, documents: GroupedExamples, local: LocalTraining | None) -> Learner:
    """The fastest learner for `model` and its examples.

    Args:
        local: How providers train; None where the method needs gradients only.
    """
    if (
        model.adapters is None
        or not model.trains_adapters_only
        or model.dropout
        or model.config.published_batching
        or local is None
        or local.optimizer not in ELEMENTWISE
    ):
        return Learner(model.tensors, documents.loss)
    return StackedLearner(model.tensors, documents, model.adapters)


class StackedLearner(Learner):
    """A learner whose providers train together, in stacks of `local.providers_at_once`.

    Args:
        tensors: The adapters' and no others.
        documents: The training examples.
    """

    def __init__(self, tensors: TrainableTensors, documents: GroupedExamples, adapters: Adapters) -> None:
        super().__init__(tensors, documents.loss)
        self._documents = documents
        self._adapters = adapters
        self._bytes_of_an_example: int | None = None

    def provider_changes(
        self, weights: Tensor, providers: Mapping[str, Sequence[int]], local: LocalTraining, stream: Stream
    ) -> Iterator[Tensor]:
        """What each provider's own training from `weights` changes (d,), in their order.

        Raises:
            ValueError: The optimizer is not elementwise.
        """
        if local.optimizer not in ELEMENTWISE:
            raise ValueError(f"providers can't be stacked under {local.optimizer}")
        if not any(providers.values()):
            yield from (torch.zeros_like(weights) for _ in providers)
            return
        names = list(providers)
        at_once = local.providers_at_once or self._providers_that_fit(local)
        for start in range(0, len(names), at_once):
            plans = [
                list(batches(providers[name], local, stream.at("provider", name)))
                for name in names[start : start + at_once]
            ]
            longest_first = sorted(range(len(plans)), key=lambda place: -len(plans[place]))
            stacks = self._stacks(weights, len(plans))
            self._train(stacks, [plans[place] for place in longest_first], local)
            for row in sorted(range(len(plans)), key=longest_first.__getitem__):
                yield torch.cat([stack[row].reshape(-1).cpu() for stack in stacks]).sub_(weights)

    def _stacks(self, weights: Tensor, count: int) -> list[Tensor]:
        """`count` copies of each adapter, side by side."""
        parameters = self.tensors.parameters.values()
        parts = torch.split(weights, [parameter.numel() for parameter in parameters])
        return [
            part.to(parameter).view_as(parameter).expand(count, *parameter.shape).clone()
            for parameter, part in zip(parameters, parts, strict=True)
        ]

    def _train(self, stacks: list[Tensor], plans: Sequence[Batches], local: LocalTraining) -> None:
        """Train each row of `stacks` by its plan, the longest first, so that who still trains is in the first rows."""
        optimizer = make_optimizer([Parameter(stack) for stack in stacks], local)
        for step in range(len(plans[0])):
            groups = [plan[step] for plan in plans if step < len(plan)]
            parameters = _first_rows(optimizer, len(groups))
            optimizer.zero_grad()
            named = dict(zip(self.tensors.parameters, parameters, strict=True))
            with self._adapters.using(named, [len(group) for group in groups]):
                torch.autograd.backward(self._documents.losses(groups).sum())
            optimizer.step()

    def _providers_that_fit(self, local: LocalTraining) -> int:
        """How many can train at once in the memory that is set aside for it; at least one.

        Counted are what the model keeps of a batch for the backward pass; twice as much again for what comes and goes
        in it, which isn't given back at once; and five vectors a provider: adapters, gradient, two moments, one more in
        passing.
        """
        if self._bytes_of_an_example is None:
            longest = self._documents.longest
            one, two = (_bytes_kept(partial(self._documents.losses, [[longest] * n])) for n in (1, 2))
            # The difference is without the model's weights, which are kept in either.
            self._bytes_of_an_example = two - one
        provider = 3 * local.batch_size * self._bytes_of_an_example + 5 * 4 * self.tensors.size
        device = next(iter(self.tensors.parameters.values())).device
        return max(1, int(USABLE * _memory_bytes(device)) // provider)


def _first_rows(optimizer: torch.optim.Optimizer, count: int) -> list[Parameter]:
    """Leave to `optimizer` the first `count` rows of its parameters, and what it knows of them, in the same memory."""
    group = optimizer.param_groups[0]
    for place, stack in enumerate(group["params"]):
        if len(stack) > count:
            group["params"][place] = kept = Parameter(stack.detach()[:count])
            optimizer.state[kept] = {
                name: value if value is None or value.dim() == 0 else value[:count]
                for name, value in optimizer.state.pop(stack, {}).items()
            }
    parameters: list[Parameter] = group["params"]
    return parameters


def _bytes_kept(forward: Callable[[], Tensor]) -> int:
    """Memory that the backward pass of `forward`'s result needs, the model's weights among it."""
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        # The result is held, so that no memory is used twice.
        result = forward()
    del result
    return sum(kept.values())


def _memory_bytes(device: torch.device) -> int:
    if device.type == "cpu":
        return CPU_MEMORY_BYTES
    return torch.cuda.get_device_properties(device).total_memory // GPU_MEMORY_SHARE
