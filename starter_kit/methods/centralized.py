"""Training in one place: the data of all clients pooled, as an upper bound on what federation can reach.

The communication log lists the one party as client 0 of a federation of one, with the bytes that it would have sent.
"""

from collections.abc import Sequence

from starter_kit.federation.rounds import Client
from starter_kit.methods.fedavg import FedAvg
from starter_kit.settings.plan import Plan
from starter_kit.settings.run_settings import LocalTrainingSettings


class Settings(LocalTrainingSettings):
    """Settings of centralized training. A round is one local training, with a new optimizer."""

    def plan(self, clients: Sequence[Client]) -> Plan:
        return Plan(clients=pooled(clients), method=FedAvg(1, self.local), rounds=self.rounds)


def pooled(clients: Sequence[Client]) -> list[Client]:
    """Return one client with all providers of `clients`."""
    return [Client(0, {name: examples for client in clients for name, examples in client.providers.items()})]
