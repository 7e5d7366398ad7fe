"""One batch on several devices: each has a replica of the model, and a share of the batch's examples.

A step first copies the trained tensors from the first device to the others. Each device then computes the losses of its
examples, in a thread of its own; the first one adds them up. A loss is a mean over tokens, so what a device found
counts by its tokens: the sum is the loss of the whole batch, and its gradient the batch's. In the backward pass torch
works on all GPUs at once, and the gradients of the replicas are added to those of the first, in the order of the
devices. Loss and gradient differ from those of one device by rounding only.

Under dropout each device draws masks of its own, from a seed that the first one draws: other masks than one device
would draw, and the same ones in each run with as many devices.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from evaluator.docvqa.vt5 import IGNORED, Batch
from starter_kit.learning.trainable_model import TrainableModel


@dataclass(frozen=True)
class Share:
    """What one device computes of a batch.

    Attributes:
        batch: Its examples.
        groups: The groups that these belong to.
        sizes: How many of its examples belong to each of them.
        parts: Which part of the group's tokens these have, for each of them.
    """

    batch: Batch
    groups: list[int]
    sizes: list[int]
    parts: Tensor


class Replicas:
    """A model on the first of `devices`, with a replica on each of the others: losses and gradients are the model's.

    Args:
        model: On the first device. Its trained tensors are those that optimizers change.
        devices: All of them, the first included.
    """

    def __init__(self, model: TrainableModel, devices: Sequence[torch.device]) -> None:
        self._models = [model, *(model.copied_to(device) for device in devices[1:])]

    @property
    def devices(self) -> list[torch.device]:
        """The devices, the first of which has the model itself."""
        return [model.device for model in self._models]

    @torch.no_grad()
    def copy_weights(self) -> None:
        """Give the replicas the model's trained tensors, as they are before a step."""
        first, *others = (model.tensors.parameters for model in self._models)
        for parameters in others:
            for name, parameter in parameters.items():
                parameter.copy_(first[name], non_blocking=True)

    def losses(self, batch: Batch, sizes: Sequence[int]) -> Tensor:
        """Return the mean loss (G,) over the answers' tokens of each group of examples, on the first device.

        See `TrainableModel.losses`. A batch of fewer examples than devices leaves the last ones without work.
        """
        shares = shares_of(batch, sizes, len(self._models))
        with self._own_dropout():
            found = self._computed(shares)
        first = self._models[0].device
        total = torch.zeros(len(sizes), device=first)
        for share, losses in zip(shares, found, strict=True):
            groups, parts = torch.tensor(share.groups).to(first), share.parts.to(first)
            total = total.index_add(0, groups, losses.to(first) * parts)
        return total

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a loss that follows from `losses` to the model's trained tensors."""
        first, *others = self._models
        first.backward(loss)
        for model in others:
            for name, parameter in model.tensors.parameters.items():
                if parameter.grad is not None:
                    _add_gradient(first.tensors.parameters[name], parameter.grad)
            model.tensors.drop_gradients()

    def let_go(self) -> None:
        """Remove what a step that failed left on the devices."""
        for model in self._models:
            model.let_go()

    def _computed(self, shares: Sequence[Share]) -> list[Tensor]:
        """Return the losses of each share, on its own device."""
        enabled = torch.is_grad_enabled()

        def losses(model: TrainableModel, share: Share) -> Tensor:
            # A thread's own setting, which is on at first.
            with torch.set_grad_enabled(enabled):
                return model.losses(share.batch, share.sizes)

        work = list(zip(self._models, shares, strict=False))
        if len(work) == 1 or self._draws_on_cpu:
            return [losses(model, share) for model, share in work]
        others = [self._threads.submit(losses, model, share) for model, share in work[1:]]
        # All threads are waited for, also where one fails.
        try:
            found = [losses(*work[0])]
        finally:
            failed = [other.exception() for other in others]
        for error in failed:
            if error is not None:
                raise error
        return [*found, *(other.result() for other in others)]

    @property
    def _draws_on_cpu(self) -> bool:
        """Whether all replicas draw their masks from one generator, so that the order of the draws matters."""
        first = self._models[0]
        return first.dropout and first.device.type == "cpu"

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(len(self._models) - 1, "replicas")

    @contextmanager
    def _own_dropout(self) -> Iterator[None]:
        """In the block, the masks of the other GPUs follow from the generator that a training seeds."""
        first = self._models[0]
        others = [device for device in self.devices[1:] if device.type == "cuda"]
        if not (first.dropout and others):
            yield
            return
        seed = int(torch.randint(2**62, ()))
        with torch.random.fork_rng(devices=others):
            for number, device in enumerate(others):
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(seed + number)
            yield


def shares_of(batch: Batch, sizes: Sequence[int], devices: int) -> list[Share]:
    """Split a batch of groups of `sizes` examples into one share for each device, as equal as can be; into fewer shares
    where there are fewer examples.

    Raises:
        ValueError: The batch has no labels.
    """
    if batch.labels is None:
        raise ValueError("the batch has no labels")
    rows = len(batch.labels)
    group = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    tokens = (batch.labels != IGNORED).sum(1).cpu()
    all_tokens = torch.zeros(len(sizes), dtype=torch.long).index_add(0, group, tokens)
    found = []
    for part in torch.arange(rows).tensor_split(min(devices, rows)):
        chosen = slice(int(part[0]), int(part[-1]) + 1)
        counts = group[chosen].bincount(minlength=len(sizes))
        groups = counts.nonzero().squeeze(1)
        own_tokens = torch.zeros(len(sizes), dtype=torch.long).index_add(0, group[chosen], tokens[chosen])
        found.append(
            Share(
                _rows(batch, chosen),
                groups.tolist(),
                counts[groups].tolist(),
                (own_tokens[groups] / all_tokens[groups]).float(),
            )
        )
    return found


def _rows(batch: Batch, rows: slice) -> Batch:
    return replace(
        batch,
        input_ids=batch.input_ids[rows],
        boxes=batch.boxes[rows],
        attention_mask=batch.attention_mask[rows],
        features=batch.features[rows],
        labels=None if batch.labels is None else batch.labels[rows],
    )


def _add_gradient(parameter: torch.nn.Parameter, gradient: Tensor) -> None:
    gradient = gradient.to(parameter.device)
    if parameter.grad is None:
        parameter.grad = gradient
    else:
        parameter.grad += gradient
