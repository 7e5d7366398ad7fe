"""Lion (Chen et al. 2023, arXiv:2302.06675): steps of one size, along the sign of a momentum.

With the gradient g, the momentum m from zero, the learning rate λ and the weight decay ω, a step is

    w ← w − λ·(sign(β₁·m + (1 − β₁)·g) + ω·w)
    m ← β₂·m + (1 − β₂)·g
"""

import torch
from pydantic import Field
from torch.nn import Parameter

from starter_kit.learning.plugins import OptimizerPlugin


class Optimizer(OptimizerPlugin):
    """Lion. `local.learning_rate` is λ, a tenth to a third of AdamW's.

    Attributes:
        beta_1: β₁, how much of the momentum goes into the direction of a step.
        beta_2: β₂, how much of the momentum is kept from step to step.
        decay: ω.
    """

    beta_1: float = Field(default=0.9, ge=0, lt=1)
    beta_2: float = Field(default=0.99, ge=0, lt=1)
    decay: float = Field(default=0.0, ge=0)

    def build(self, parameters: list[Parameter], learning_rate: float) -> torch.optim.Optimizer:
        return _Lion(parameters, learning_rate, self)


class _Lion(torch.optim.Optimizer):
    def __init__(self, parameters: list[Parameter], learning_rate: float, settings: Optimizer) -> None:
        super().__init__(parameters, {"lr": learning_rate})
        self._settings = settings

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        settings = self._settings
        for group in self.param_groups:
            for parameter in group["params"]:
                if (gradient := parameter.grad) is None:
                    continue
                momentum = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
                direction = torch.lerp(gradient, momentum, settings.beta_1).sign()
                parameter.mul_(1 - group["lr"] * settings.decay).sub_(direction, alpha=group["lr"])
                momentum.lerp_(gradient, 1 - settings.beta_2)
