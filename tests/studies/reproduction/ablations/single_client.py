"""Federated averaging in a federation of one client: the one that is named. Nothing here is private."""

from collections.abc import Sequence

from starter_kit.federation.rounds import Client
from starter_kit.methods.fedavg import FedAvg
from starter_kit.settings.plan import Plan
from starter_kit.settings.run_settings import LocalTrainingSettings


class Settings(LocalTrainingSettings):
    """Settings of training at one client.

    Attributes:
        client: Its id; the others take no part.
    """

    client: int

    def plan(self, clients: Sequence[Client]) -> Plan:
        named = [client for client in clients if client.id == self.client]
        return Plan(clients=named, method=FedAvg(1, self.local), rounds=self.rounds)
