"""FedAvgM (Hsu, Qi and Brown 2019, arXiv:1909.06335): momentum at the server.

With the mean update Δ of a round and the velocity v from zero, v ← β·v + Δ and w ← w + η·v.
"""

import torch
from pydantic import Field
from torch import Tensor

from evaluator.records.server_steps import MomentumStep, ServerStep
from starter_kit.federation.server_optimizers import ServerOptimizerPlugin
from starter_kit.learning.party_state import State


class ServerOptimizer(ServerOptimizerPlugin):
    """Momentum at the server.

    Attributes:
        learning_rate: η.
        momentum: β.
    """

    learning_rate: float = Field(default=1.0, gt=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)

    def step(self, weights: Tensor, mean: Tensor, state: State) -> Tensor:
        velocity = self.momentum * state.get("velocity", torch.zeros_like(weights)) + mean
        state["velocity"] = velocity
        return weights + self.learning_rate * velocity

    def recorded(self) -> ServerStep:
        return MomentumStep(learning_rate=self.learning_rate, momentum=self.momentum)
