"""The federated rounds, the same for every method: send the weights down, gather updates, aggregate.

Methods differ in what a client does and how the server aggregates (`Method`); engines differ in where clients run
(`Engine`). Every message is counted by the bytes of the tensor that it carries.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from evaluator.communication import LogEntry
from evaluator.contracts import SERVER
from starter_kit.learning import Learner


@dataclass(frozen=True)
class Client:
    """One client's share of the data: for each of its providers, the indexes of that provider's examples."""

    id: int
    providers: dict[str, list[int]]

    @property
    def examples(self) -> list[int]:
        return [example for examples in self.providers.values() for example in examples]


class Method(Protocol):
    """A training method: three pure steps of a round, of which the second runs at a client."""

    def choose_clients(self, clients: Sequence[int]) -> list[int]:
        """The clients that take part in a round; may be none."""

    def client_update(self, client: Client, weights: Tensor, learner: Learner) -> Tensor:
        """What `client` sends to the server for the round that starts from `weights` (d,)."""

    def aggregate(self, weights: Tensor, updates: Iterable[Tensor]) -> Tensor:
        """The weights after the round, from the updates of the clients that took part. Consumes `updates` once."""


class Engine(Protocol):
    """Where a round's clients run."""

    @property
    def clients(self) -> Sequence[int]:
        """The ids of all clients."""

    def client_updates(self, method: Method, clients: Sequence[int], weights: Tensor) -> Iterator[Tensor]:
        """Each client's update, in the order of `clients`."""


@dataclass(frozen=True)
class Round:
    """A finished round: its number from 1, who took part, what was sent and the weights (d,) that came out."""

    number: int
    clients: list[int]
    messages: list[LogEntry]
    weights: Tensor


def run_rounds(method: Method, engine: Engine, weights: Tensor, rounds: int) -> Iterator[Round]:
    """Run `rounds` rounds from `weights` (d,), yielding each as it ends. Rounds without clients happen too."""
    for number in range(1, rounds + 1):
        clients = method.choose_clients(engine.clients)
        messages = [LogEntry(number, SERVER, client, weights.nbytes) for client in clients]
        updates = zip(clients, engine.client_updates(method, clients, weights), strict=True)
        weights = method.aggregate(weights, _received(number, updates, messages))
        yield Round(number, clients, messages, weights)


def _received(
    number: int, updates: Iterable[tuple[int, Tensor]], messages: list[LogEntry]
) -> Iterator[Tensor]:
    """The updates as they reach the server, each noted in `messages`."""
    for client, update in updates:
        messages.append(LogEntry(number, client, SERVER, update.nbytes))
        yield update
