"""The federated rounds, the same for every method: send the weights down, gather updates, aggregate.

Methods differ in what a client does and how the server aggregates (`Method`); engines differ in where clients run
(`Engine`). Every message is counted by the bytes of the tensor that it carries.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class ClientUpdate:
    """What a client's part of a round results in.

    Attributes:
        message: The vector (d,) that is sent to the server; the server sees nothing else.
        sampled: How many of the client's providers took part. Private: it never leaves with the message, and is kept
            for the organizers' annex only.
    """

    message: Tensor
    sampled: int = field(repr=False)


@dataclass(frozen=True)
class Aggregate:
    """What the server makes of a round's messages.

    Attributes:
        total: uₜ, the sum (d,) of all messages and of the server's noise, if it adds any.
        weights: The model (d,) after the round; where noise protects the sum, a function of released values and it.
    """

    total: Tensor
    weights: Tensor


class Method(Protocol):
    """A training method: three steps of a round, of which the second runs at a client."""

    def choose_clients(self, clients: Sequence[int]) -> list[int]:
        """The clients that take part in a round; may be none."""

    def client_update(self, client: Client, weights: Tensor, learner: Learner) -> ClientUpdate:
        """What `client` does in the round that starts from `weights` (d,)."""

    def aggregate(self, weights: Tensor, messages: Iterable[Tensor]) -> Aggregate:
        """The round's outcome, from the messages of the clients that took part. Consumes `messages` once."""


class Engine(Protocol):
    """Where a round's clients run."""

    @property
    def clients(self) -> Sequence[int]:
        """The ids of all clients."""

    def client_updates(
        self, method: Method, clients: Sequence[int], weights: Tensor
    ) -> Iterator[ClientUpdate]:
        """Each client's update, in the order of `clients`."""


@dataclass(frozen=True)
class Round:
    """A finished round.

    Attributes:
        number: From 1.
        clients: Those that took part.
        messages: What was sent, both ways.
        start: The weights (d,) that were sent down.
        aggregate: What the server made of the messages.
        sampled: For each client that took part, how many of its providers did. Private: see `ClientUpdate`.
    """

    number: int
    clients: list[int]
    messages: list[LogEntry]
    start: Tensor
    aggregate: Aggregate
    sampled: dict[int, int] = field(repr=False)

    @property
    def weights(self) -> Tensor:
        """The model (d,) after the round."""
        return self.aggregate.weights

    @property
    def bytes_down(self) -> int:
        return sum(message.size_bytes for message in self.messages if message.sender == SERVER)

    @property
    def bytes_up(self) -> int:
        return sum(message.size_bytes for message in self.messages if message.receiver == SERVER)


def run_rounds(method: Method, engine: Engine, weights: Tensor, rounds: int) -> Iterator[Round]:
    """Run `rounds` rounds from `weights` (d,), yielding each as it ends. Rounds without clients happen too."""
    for number in range(1, rounds + 1):
        clients = method.choose_clients(engine.clients)
        messages = [LogEntry(number, SERVER, client, weights.nbytes) for client in clients]
        sampled: dict[int, int] = {}
        updates = zip(clients, engine.client_updates(method, clients, weights), strict=True)
        aggregate = method.aggregate(weights, _received(number, updates, messages, sampled))
        yield Round(number, clients, messages, weights, aggregate, sampled)
        weights = aggregate.weights


def _received(
    number: int,
    updates: Iterable[tuple[int, ClientUpdate]],
    messages: list[LogEntry],
    sampled: dict[int, int],
) -> Iterator[Tensor]:
    """The messages as they reach the server, each noted in `messages`; what stays behind is noted in `sampled`."""
    for client, update in updates:
        messages.append(LogEntry(number, client, SERVER, update.message.nbytes))
        sampled[client] = update.sampled
        yield update.message
