"""FedProx (Li et al. 2020, arXiv:1812.06127): a client is pulled back toward the model with which it began the round.

Each step's gradient g at the weights y becomes g + μ·(y − w), with the round's model w: the gradient of the loss with
μ/2·‖y − w‖² added. With μ = 0 nothing changes.
"""

from pydantic import Field

from starter_kit.learning.plugins import GradientStep, HookPlugin


class Hook(HookPlugin):
    """FedProx.

    Attributes:
        mu: μ, the weight of the pull.
    """

    mu: float = Field(default=0.01, ge=0)

    def correct(self, step: GradientStep) -> None:
        for parameter, start in zip(step.parameters, step.start, strict=True):
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach() - start, alpha=self.mu)
