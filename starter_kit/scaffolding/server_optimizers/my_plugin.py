"""Nesterov momentum at the server.

This is a working server optimizer to start from. Replace the line above with the name and the source of your
server optimizer.

With the mean update Δ of a round and the velocity v, initially zero,

    v ← β·v + Δ
    w ← w + η·(Δ + β·v)

When you change a step, change the equations here and their test in test_my_plugin.py.
"""

import torch
from pydantic import Field
from torch import Tensor

from evaluator.records.server_steps import OtherStep, ServerStep
from starter_kit.federation.server_optimizers import ServerOptimizerPlugin
from starter_kit.learning.party_state import State


class ServerOptimizer(ServerOptimizerPlugin):
    """The server optimizer. Its fields are its settings: server_optimizer: {type: my_plugin.py, momentum: 0.9}

    Attributes:
        learning_rate: η.
        momentum: β.
    """

    learning_rate: float = Field(default=1.0, gt=0)
    momentum: float = Field(default=0.5, ge=0, lt=1)

    def step(self, weights: Tensor, mean: Tensor, state: State) -> Tensor:
        # The content of `state` is saved with the run, so a resumed run ends with the same model.
        velocity = self.momentum * state.get("velocity", torch.zeros_like(weights)) + mean
        state["velocity"] = velocity
        return weights + self.learning_rate * (mean + self.momentum * velocity)

    def recorded(self) -> ServerStep:
        # The step as stated in a private run's training record. If `evaluator.records.server_steps` has your rule,
        # return that, so that the evaluator can repeat the step. With OtherStep, no check can show that the sums led to
        # the model, and the run is flagged.
        return OtherStep(description="my_plugin: w + η·(Δ + β·v)")
