"""SGD that clips the gradient to a norm in each step (Pascanu, Mikolov and Bengio 2013, arXiv:1211.5063).

This is a working optimizer to start from. Replace the line above with the name and the source of your optimizer.

With the gradient g over all trained tensors, the learning rate λ and the largest norm L, a step is

    w ← w − λ·g·min(1, L/‖g‖)

When you change a step, change the equation here and its test in test_my_plugin.py.
"""

import torch
from pydantic import Field
from torch.nn import Parameter

from starter_kit.learning.plugins import OptimizerPlugin


class Optimizer(OptimizerPlugin):
    """The optimizer. Its fields are its settings, in a config: local.optimizer: {type: my_plugin.py, largest_norm: 2.0}

    Attributes:
        largest_norm: L.
    """

    largest_norm: float = Field(default=1.0, gt=0)

    def build(self, parameters: list[Parameter], learning_rate: float) -> torch.optim.Optimizer:
        # Called for every local training. Nothing may carry over from one training to the next: privacy depends on
        # that. The learning rate is `local.learning_rate`; all other numbers are fields of this class.
        return _Clipped(parameters, learning_rate, self.largest_norm)


class _Clipped(torch.optim.Optimizer):
    def __init__(self, parameters: list[Parameter], learning_rate: float, largest_norm: float) -> None:
        super().__init__(parameters, {"lr": learning_rate})
        self._largest_norm = largest_norm

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            torch.nn.utils.clip_grad_norm_(group["params"], self._largest_norm)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad, alpha=group["lr"])
