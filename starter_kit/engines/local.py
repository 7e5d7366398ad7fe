"""All clients in this process, one after the other, sharing one model.

The model's memory is needed once, whatever the number of clients. Since clients and server share the process, the
server that aggregates is a trusted one: a simulation, and the natural way to train for the benchmark.
"""

from collections.abc import Callable, Iterator, Sequence

from torch import Tensor

from starter_kit.learning import Learner
from starter_kit.rounds import Client, ClientUpdate, Method


class LocalEngine:
    """Runs clients in process. `on_client` is told after each client; it learns nothing about its data."""

    def __init__(
        self, clients: Sequence[Client], learner: Learner, on_client: Callable[[], None] = lambda: None
    ) -> None:
        self._clients = {client.id: client for client in clients}
        self._learner = learner
        self._on_client = on_client

    @property
    def clients(self) -> list[int]:
        return list(self._clients)

    def client_updates(
        self, method: Method, clients: Sequence[int], weights: Tensor
    ) -> Iterator[ClientUpdate]:
        for client in clients:
            yield method.client_update(self._clients[client], weights, self._learner)
            self._on_client()
