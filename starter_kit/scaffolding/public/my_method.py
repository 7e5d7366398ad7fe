"""Federated averaging with momentum at the server (Hsu, Qi and Brown 2019, arXiv:1909.06335).

This is a working method to start from. Replace the line above with the name and the source of your method.

In each round, K clients drawn at random train from the model w on all their examples. With the mean Δ of their updates,
the server sets

    v ← β·v + Δ
    w ← w + η·v

When you change a step, change the equations here and their test in test_my_method.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.federation.rounds import Aggregate, Client, ClientTask, ClientUpdate, Sum
from starter_kit.learning.local_training import LocalTraining, State
from starter_kit.randomness import Stream
from starter_kit.settings.plan import Plan
from starter_kit.settings.run_settings import LocalTrainingSettings


class Settings(LocalTrainingSettings):
    """Settings of my_method.yaml in addition to those of all methods. Any other setting is rejected.

    Attributes:
        clients_per_round: K.
        momentum: β.
        server_learning_rate: η.
    """

    clients_per_round: int = Field(default=2, ge=1)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    server_learning_rate: float = Field(default=1.0, gt=0)

    def plan(self, clients: Sequence[Client]) -> Plan:
        # Reject settings that don't fit the clients here.
        if self.clients_per_round > len(clients):
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="clients_per_round",
                expected=f"from 1 to {len(clients)}, the clients that there are",
                found=self.clients_per_round,
            )
        method = MyMethod(self.clients_per_round, self.momentum, self.server_learning_rate, self.local)
        return Plan(clients=clients, method=method, rounds=self.rounds, most_clients=self.clients_per_round)


@dataclass(frozen=True)
class MyMethod:
    """The three steps of a round; the second runs at a client."""

    clients_per_round: int
    momentum: float
    server_learning_rate: float
    local: LocalTraining

    def choose_clients(self, clients: Sequence[int], stream: Stream) -> list[int]:
        # `stream` depends only on the run's seed: the same seed gives the same choice.
        return sorted(stream.random().sample(list(clients), self.clients_per_round))

    def client_update(self, task: ClientTask) -> ClientUpdate:
        # `task.learner` also has `provider_changes`, one provider after another, and `gradient`. State that a client
        # keeps from round to round, such as dual variables, goes into `task.state`, by name; it is never sent.
        trained = task.learner.train(task.weights, task.client.examples, self.local, task.stream, task.state)
        # The server receives nothing but the message, one vector as long as the model, and its bytes are counted.
        return ClientUpdate(trained.change, sampled=len(task.client.providers), loss=trained.loss)

    def accumulator(self, weights: Tensor, state: State) -> Sum:
        # `Sum` adds up the messages as they arrive. For any other sum, return your own `Accumulator`.
        return Sum(weights, state, self.aggregate)

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        mean = received.total / max(received.contributors, 1)
        # State that the server keeps from round to round goes into `state`, which is saved with the run.
        velocity = self.momentum * state.get("velocity", torch.zeros_like(weights)) + mean
        state["velocity"] = velocity
        return Aggregate(received.total, weights + self.server_learning_rate * velocity)
