"""Local training: from given weights, a few AdamW steps on given examples, and what they changed.

The result depends on the weights, the examples and fresh randomness, on nothing else: the optimizer starts anew
each time, batches are drawn and dropout is seeded from the operating system's entropy. Provider-level privacy
rests on that, for one provider must not reach into another's update.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from random import SystemRandom

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from starter_kit.tensors import TrainableTensors


class LocalTraining(BaseModel):
    """How a client, or a provider, trains on its own examples.

    Attributes:
        epochs: Passes over the examples, each in a new random order.
        max_steps: Stop after so many optimizer steps, if set.
        batch_size: Examples a step.
        adam_epsilon: AdamW's ε. Large values, above the gradients' size, make a step proportional to the gradient.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = Field(default=1, ge=1)
    max_steps: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=16, ge=1)
    learning_rate: float = Field(gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    adam_epsilon: float = Field(default=1e-8, gt=0)


class Learner:
    """A model with its training examples, addressed by their indexes.

    Args:
        tensors: What is trained.
        loss: The mean loss over the examples of the given indexes.
    """

    def __init__(self, tensors: TrainableTensors, loss: Callable[[Sequence[int]], Tensor]) -> None:
        self.tensors = tensors
        self._loss = loss

    def update(self, weights: Tensor, examples: Sequence[int], local: LocalTraining) -> Tensor:
        """Train from `weights` (d,) on `examples`; the change, a float32 vector (d,). No examples, no change."""
        if not examples:
            return torch.zeros_like(weights)
        self.tensors.write(weights)
        parameters = list(self.tensors.parameters.values())
        optimizer = torch.optim.AdamW(
            parameters, lr=local.learning_rate, weight_decay=local.weight_decay, eps=local.adam_epsilon
        )
        with torch.random.fork_rng():
            torch.manual_seed(secrets.randbits(63))
            for batch in batches(examples, local):
                optimizer.zero_grad()
                torch.autograd.backward(self._loss(batch))
                optimizer.step()
        optimizer.zero_grad()
        return self.tensors.read() - weights


def batches(examples: Sequence[int], local: LocalTraining) -> Iterator[list[int]]:
    """The batches of one local training, in order."""
    steps = 0
    for _ in range(local.epochs):
        order = list(examples)
        SystemRandom().shuffle(order)
        for start in range(0, len(order), local.batch_size):
            if steps == local.max_steps:
                return
            yield order[start : start + local.batch_size]
            steps += 1
