"""SCAFFOLD (Karimireddy et al. 2020, arXiv:1910.06378): control variates against the drift of unlike clients.

The server has a control variate c, each client k one of its own c_k, all zero at first. In each round K of the N
clients, drawn uniformly, receive the model w with c. A client

1. takes s local steps of size λ from y = w, each along g − c_k + c with the step's gradient g;
2. sets c_k⁺ = c_k − c + (w − y)/(s·λ), which is option II of the source (with the sum of all steps' λ for s·λ);
3. sends y − w with c_k⁺ − c_k, and keeps c_k⁺.

The server sets w ← w + η·mean(y − w) and c ← c + (K/N)·mean(c_k⁺ − c_k), over the clients that answered. Messages are
twice as long as those of fedavg, in both directions, and counted so. c_k describes a client's data and stays there; its
changes are sent, and nothing here is private. The equations are those of plain SGD steps, so no other optimizer is
taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from starter_kit.federation.auxiliary import AUXILIARY, AuxiliaryVectors
from starter_kit.federation.rounds import Aggregate, Client, ClientTask, ClientUpdate, Sum
from starter_kit.learning.local_training import State
from starter_kit.learning.plugins import GradientStep
from starter_kit.methods import fedavg
from starter_kit.methods.fedavg import FedAvg
from starter_kit.settings.plan import Plan

# The name of c_k in a client's state.
CONTROL = "control"


class Settings(fedavg.Settings):
    """Settings of SCAFFOLD: those of federated averaging with SGD.

    Attributes:
        server_learning_rate: η, the factor on the mean update.
        server_optimizer: Fixed, because the server's rule is part of the method.
    """

    client_vectors: ClassVar[int] = 1

    server_learning_rate: float = Field(default=1.0, gt=0)
    server_optimizer: None = None

    @model_validator(mode="after")
    def _steps_are_those_of_the_equations(self) -> Self:
        if self.local.optimizer != "sgd" or self.local.momentum:
            raise ValueError(
                "SCAFFOLD's control variates follow from plain steps; set local.optimizer to sgd, without momentum"
            )
        if self.local.hook is not None:
            raise ValueError("SCAFFOLD corrects each step by itself; leave local.hook at null")
        return self

    def plan(self, clients: Sequence[Client]) -> Plan:
        plan = super().plan(clients)
        method = Scaffold(
            self.clients_per_round,
            self.local,
            server_learning_rate=self.server_learning_rate,
            clients=len(clients),
        )
        return replace(plan, method=method, auxiliary=AuxiliaryVectors(vectors=1))


@dataclass(frozen=True, kw_only=True)
class _Correction:
    """The hook that adds c − c_k (d,) to each step's gradient, and notes the steps' sizes."""

    vector: Tensor
    sizes: list[float]

    def correct(self, step: GradientStep) -> None:
        self.sizes.append(step.learning_rate)
        parts = torch.split(self.vector, [parameter.numel() for parameter in step.parameters])
        for parameter, part in zip(step.parameters, parts, strict=True):
            if parameter.grad is not None:
                parameter.grad.add_(part.view_as(parameter))

    def finish(self, step: GradientStep) -> None:
        """Everything is noted already."""


@dataclass(frozen=True)
class Scaffold(FedAvg):
    """SCAFFOLD.

    Attributes:
        server_learning_rate: η.
        clients: N.
    """

    server_learning_rate: float = 1.0
    clients: int = 1

    def client_update(self, task: ClientTask) -> ClientUpdate:
        control, own = task.auxiliary, task.state.get(CONTROL, torch.zeros_like(task.weights))
        hook = _Correction(vector=(control - own).to(_device(task)), sizes=[])
        trained = task.learner.train(task.weights, task.client.examples, self.local, task.stream, hook=hook)
        moved = own
        if hook.sizes:
            moved = own - control - trained.change / sum(hook.sizes)
        task.state[CONTROL] = moved
        message = torch.cat([trained.change, moved - own])
        return ClientUpdate(message, sampled=len(task.client.providers), loss=trained.loss)

    def accumulator(self, weights: Tensor, state: State) -> Sum:
        return Sum(torch.cat([weights, torch.zeros_like(weights)]), state, self.aggregate)

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        model, _ = weights.tensor_split(2)
        change, control = (received.total / max(received.contributors, 1)).tensor_split(2)
        share = received.contributors / self.clients
        state[AUXILIARY] = state.get(AUXILIARY, torch.zeros_like(model)) + share * control
        return Aggregate(received.total, model + self.server_learning_rate * change)


def _device(task: ClientTask) -> torch.device:
    return next(iter(task.learner.tensors.parameters.values())).device
