"""Federated averaging (McMahan et al. 2017, arXiv:1602.05629): the baseline of track 1.

Each round K of the N clients, drawn uniformly, train on all their examples; the server takes the plain mean of
their updates. Clients are not weighted by their number of examples, as in the competition's published baseline:
their sizes are alike, and a plain mean needs no count from a client. Nothing here is private.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from pydantic import Field
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding.server_step import is_computable
from evaluator.records.server_steps import ServerStep, SumStep
from starter_kit.federation.rounds import Aggregate, Client, ClientTask, ClientUpdate, Sum
from starter_kit.federation.server_optimizers import SERVER_OPTIMIZERS, ServerOptimizerPlugin, computed_step
from starter_kit.learning.local_training import LocalTraining, State
from starter_kit.plugin import WRITER, reported
from starter_kit.randomness import Stream
from starter_kit.settings.plan import Plan
from starter_kit.settings.run_settings import LocalTrainingSettings


class Settings(LocalTrainingSettings):
    """Settings of federated averaging: `clients_per_round` is K.

    Attributes:
        server_optimizer: How the server applies the mean update; null to add it.
    """

    clients_per_round: int = Field(default=2, ge=1)
    server_optimizer: Annotated[ServerOptimizerPlugin | None, SERVER_OPTIMIZERS.reader, WRITER] = None

    def plan(self, clients: Sequence[Client]) -> Plan:
        if self.clients_per_round > len(clients):
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="clients_per_round",
                expected=f"from 1 to {len(clients)}, the clients that there are",
                found=self.clients_per_round,
            )
        method = FedAvg(self.clients_per_round, self.local, self.server_optimizer)
        return Plan(
            clients=clients,
            method=method,
            rounds=self.rounds,
            most_clients=self.clients_per_round,
            step_of_mean=method.server_step,
        )


@dataclass(frozen=True)
class FedAvg:
    """Federated averaging; the attributes are those of `Settings`."""

    clients_per_round: int
    local: LocalTraining
    server_optimizer: ServerOptimizerPlugin | None = None

    @cached_property
    def server_step(self) -> ServerStep:
        """What the server does with the mean update."""
        return self.server_optimizer.recorded() if self.server_optimizer else SumStep(learning_rate=1.0)

    def choose_clients(self, clients: Sequence[int], stream: Stream) -> list[int]:
        return sorted(stream.random().sample(list(clients), self.clients_per_round))

    def client_update(self, task: ClientTask) -> ClientUpdate:
        trained = task.learner.train(task.weights, task.client.examples, self.local, task.stream, task.state)
        return ClientUpdate(trained.change, sampled=len(task.client.providers), loss=trained.loss)

    def accumulator(self, weights: Tensor, state: State) -> Sum:
        return Sum(weights, state, self.aggregate)

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        mean = received.total / max(received.contributors, 1)
        if self.server_optimizer is None or is_computable(self.server_step):
            # As the evaluator computes it: torch rounds square roots its own way.
            return Aggregate(received.total, computed_step(self.server_step, weights, mean, state))
        with reported(self.server_optimizer):
            return Aggregate(received.total, self.server_optimizer.step(weights, mean, state))
