"""The size of the steps of a local training: warm-up, a schedule that slows down, and a bound on the gradient.

Each local training has its own: the schedule runs from its first step to its last, and starts again in the next round.
None of it changes what privacy costs. Whatever a provider or a client does with its own examples, its whole update is
clipped afterwards, and that bound is what noise is measured against.
"""

import math
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from starter_kit.learning.local_training import LocalTraining


def steps_of(examples: int, local: "LocalTraining") -> int:
    """Return how many optimizer steps a local training on so many examples makes."""
    steps = local.epochs * math.ceil(examples / local.batch_size)
    return steps if local.max_steps is None else min(steps, local.max_steps)


def learning_rate_factor(step: int, steps: int, local: "LocalTraining") -> float:
    """Return the factor on the learning rate in a step, counted from 0, of so many.

    The warm-up rises to 1 in its last step. From there `linear` falls towards 0 in equal amounts, and `cosine` slowly
    at both ends; neither reaches 0.
    """
    if step < local.warmup_steps:
        return (step + 1) / local.warmup_steps
    done = (step - local.warmup_steps) / max(1, steps - local.warmup_steps)
    match local.schedule:
        case "linear":
            return 1 - done
        case "cosine":
            return (1 + math.cos(math.pi * done)) / 2
        case _:
            return 1.0


class Pace:
    """Prepares the steps of one local training, one after another.

    Args:
        examples: How many examples it is on.
        done: How many steps an earlier process made.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, local: "LocalTraining", examples: int, done: int = 0
    ) -> None:
        self._optimizer = optimizer
        self._local = local
        self._steps = steps_of(examples, local)
        self._step = done

    def prepare_step(self) -> None:
        """Set the learning rate of the next step, and clip the gradient that it is made from."""
        if self._local.paces_steps:
            factor = learning_rate_factor(self._step, self._steps, self._local)
            for group in self._optimizer.param_groups:
                group["lr"] = factor * self._local.learning_rate
        if self._local.max_gradient_norm is not None:
            parameters = [each for group in self._optimizer.param_groups for each in group["params"]]
            torch.nn.utils.clip_grad_norm_(parameters, self._local.max_gradient_norm)
        self._step += 1
