"""Federated averaging (McMahan et al. 2017, arXiv:1602.05629): the baseline of track 1.

Each round K of the N clients, drawn uniformly, train on all their examples; the server takes the plain mean of
their updates. Clients are not weighted by their number of examples, as in the competition's published baseline:
their sizes are alike, and a plain mean needs no count from a client. Nothing here is private.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import SystemRandom

import torch
from torch import Tensor

from starter_kit.learning import Learner, LocalTraining
from starter_kit.rounds import Aggregate, Client, ClientUpdate


@dataclass(frozen=True)
class FedAvg:
    """`clients_per_round` is K; `local` is how each client trains."""

    clients_per_round: int
    local: LocalTraining

    def choose_clients(self, clients: Sequence[int]) -> list[int]:
        return sorted(SystemRandom().sample(list(clients), min(self.clients_per_round, len(clients))))

    def client_update(self, client: Client, weights: Tensor, learner: Learner) -> ClientUpdate:
        message = learner.update(weights, client.examples, self.local)
        return ClientUpdate(message, sampled=len(client.providers))

    def aggregate(self, weights: Tensor, messages: Iterable[Tensor]) -> Aggregate:
        total, count = torch.zeros_like(weights), 0
        for message in messages:
            total += message
            count += 1
        return Aggregate(total, weights + total / max(count, 1))
