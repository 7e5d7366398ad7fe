"""FedAdam (Reddi et al. 2021, arXiv:2003.00295, algorithm 2): Adam at the server, without bias correction.

With the mean update Δ of a round and m, s from zero,

    m ← β₁·m + (1 − β₁)·Δ      s ← β₂·s + (1 − β₂)·Δ²      w ← w + η·m/(√s + τ)
"""

import torch
from pydantic import Field
from torch import Tensor

from evaluator.records.server_steps import AdamStep, ServerStep
from starter_kit.federation.server_optimizers import ServerOptimizerPlugin
from starter_kit.learning.party_state import State


class ServerOptimizer(ServerOptimizerPlugin):
    """Adam at the server.

    Attributes:
        learning_rate: η, about the largest step of a weight in a round.
        beta_1, beta_2: β₁ of the direction, and β₂ of its size.
        tau: τ, which limits how adaptive the steps are: for updates far below τ, steps are proportional to
        the update.
    """

    learning_rate: float = Field(default=0.01, gt=0)
    beta_1: float = Field(default=0.9, ge=0, lt=1)
    beta_2: float = Field(default=0.99, ge=0, lt=1)
    tau: float = Field(default=1e-3, gt=0)

    def step(self, weights: Tensor, mean: Tensor, state: State) -> Tensor:
        zeros = torch.zeros_like(weights)
        state["direction"] = self.beta_1 * state.get("direction", zeros) + (1 - self.beta_1) * mean
        state["size"] = self.beta_2 * state.get("size", zeros) + (1 - self.beta_2) * mean.square()
        return weights + self.learning_rate * state["direction"] / (state["size"].sqrt() + self.tau)

    def recorded(self) -> ServerStep:
        return AdamStep(
            learning_rate=self.learning_rate,
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.tau,
            bias_correction=False,
        )
