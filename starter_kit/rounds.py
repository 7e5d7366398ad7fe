"""The federated rounds, the same for every method: send the model down, gather updates, aggregate.

Methods differ in what a client does and how the server aggregates (`Method`), engines in where clients run (`Engine`),
codecs in how a vector becomes bytes (`Wire`). Every message is counted by the bytes that it is made of.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from evaluator.communication import LogEntry
from evaluator.contracts import SERVER
from starter_kit.learning import Learner, State
from starter_kit.randomness import Stream
from starter_kit.wire import Wire


@dataclass(frozen=True)
class Client:
    """One client's share of the data: for each of its providers, the indexes of that provider's examples."""

    id: int
    providers: dict[str, list[int]]

    @property
    def examples(self) -> list[int]:
        return [example for examples in self.providers.values() for example in examples]


@dataclass(frozen=True)
class ClientTask:
    """What a client works with in one round.

    Attributes:
        round: From 1.
        clients: K, how many clients were chosen for the round.
        weights: The round's model (d,), as it arrived.
        stream: The client's own, of this round.
        state: What the client keeps from round to round, such as dual variables. It is changed in place and never sent.
    """

    client: Client
    round: int
    clients: int
    weights: Tensor
    learner: Learner
    stream: Stream
    state: State


@dataclass(frozen=True)
class ClientUpdate:
    """What a client's part of a round results in.

    Attributes:
        message: The vector (d,) that is sent to the server; the server sees nothing else.
        sampled: How many of the client's providers took part. Private: it never leaves with the message, and is kept
            for the organizers' annex only.
        loss: Mean training loss; only where nothing is private, None elsewhere.
    """

    message: Tensor
    sampled: int = field(repr=False)
    loss: float | None = None


@dataclass(frozen=True)
class Message:
    """An update (d,) as it reached the server; the sum of `contributors` of them where they were added on the way."""

    client: int
    vector: Tensor
    contributors: int = 1


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

    def choose_clients(self, clients: Sequence[int], stream: Stream) -> list[int]:
        """The clients that take part in a round; may be none."""

    def client_update(self, task: ClientTask) -> ClientUpdate:
        """What a client does in a round."""

    def aggregate(self, weights: Tensor, messages: Iterable[Message], state: State) -> Aggregate:
        """The outcome of the round that started from `weights` (d,). Consumes `messages` once.

        `state` is the server's, kept from round to round and changed in place.
        """


@dataclass(frozen=True)
class Request:
    """What the server asks of a client: `payload` is the round's model in bytes."""

    round: int
    client: int
    clients: int
    payload: bytes = field(repr=False)


@dataclass(frozen=True)
class Reply:
    """A client's answer: `payload` is its update in bytes; the rest is not part of the message, see `ClientUpdate`."""

    client: int
    payload: bytes = field(repr=False)
    sampled: int = field(repr=False)
    loss: float | None = None


class Engine(Protocol):
    """Where a round's clients run."""

    @property
    def clients(self) -> Sequence[int]:
        """The ids of all clients."""

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """The clients' replies as they come. A client that was lost on the way is missing."""


class Participant:
    """The clients' side of a run, wherever an engine puts it: unpack the model, do the method's part, pack the update.

    Args:
        clients: Those whose data is at hand.
        stream: The run's.
    """

    def __init__(
        self, method: Method, clients: Sequence[Client], learner: Learner, wire: Wire, stream: Stream
    ) -> None:
        self._method = method
        self._clients = {client.id: client for client in clients}
        self._learner = learner
        self._wire = wire
        self._stream = stream

    @property
    def clients(self) -> list[int]:
        return list(self._clients)

    def answer(self, request: Request, state: State) -> Reply:
        """A client's reply; `state` is the client's own, changed in place."""
        update = self._method.client_update(
            ClientTask(
                client=self._clients[request.client],
                round=request.round,
                clients=request.clients,
                weights=self._wire.unpack_model(request.payload),
                learner=self._learner,
                stream=self._stream.at("round", request.round, "client", request.client),
                state=state,
            )
        )
        payload = self._wire.pack_update(update.message)
        return Reply(request.client, payload, update.sampled, update.loss)


@dataclass(frozen=True)
class Round:
    """A finished round.

    Attributes:
        number: From 1.
        clients: Those whose messages arrived.
        messages: What was sent, both ways.
        start: The model (d,) of the server before the round.
        aggregate: What the server made of the messages.
        sampled: For each client that took part, how many of its providers did. Private: see `ClientUpdate`.
        loss: Mean of the clients' training losses; None where there is none to tell.
    """

    number: int
    clients: list[int]
    messages: list[LogEntry]
    start: Tensor
    aggregate: Aggregate
    sampled: dict[int, int] = field(repr=False)
    loss: float | None = None

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


@dataclass
class Server:
    """The server's side of a run.

    Attributes:
        state: What the method keeps at the server from round to round.
    """

    method: Method
    engine: Engine
    wire: Wire
    stream: Stream
    state: State = field(default_factory=dict)

    def run(self, weights: Tensor, numbers: Iterable[int]) -> Iterator[Round]:
        """Run the rounds of these numbers from `weights` (d,), yielding each as it ends.

        Rounds without clients happen too.
        """
        for number in numbers:
            finished = self._round(number, weights)
            yield finished
            weights = finished.weights

    def _round(self, number: int, weights: Tensor) -> Round:
        chosen = self.method.choose_clients(self.engine.clients, self.stream.at("round", number, "clients"))
        payload = self.wire.pack_model(weights) if chosen else b""
        requests = [Request(number, client, len(chosen), payload) for client in chosen]
        log = [LogEntry(number, SERVER, client, len(payload)) for client in chosen]
        replies: list[Reply] = []
        aggregate = self.method.aggregate(weights, self._received(requests, log, replies), self.state)
        losses = [reply.loss for reply in replies if reply.loss is not None]
        return Round(
            number=number,
            clients=sorted(reply.client for reply in replies),
            messages=log,
            start=weights,
            aggregate=aggregate,
            sampled={reply.client: reply.sampled for reply in replies},
            loss=sum(losses) / len(losses) if losses else None,
        )

    def _received(
        self, requests: Sequence[Request], log: list[LogEntry], replies: list[Reply]
    ) -> Iterator[Message]:
        """The messages as they reach the server, each noted in `log`; `replies` keeps what came, but for its bytes."""
        for reply in self.engine.ask(requests) if requests else ():
            log.append(LogEntry(requests[0].round, reply.client, SERVER, len(reply.payload)))
            replies.append(Reply(reply.client, b"", reply.sampled, reply.loss))
            yield Message(reply.client, self.wire.unpack_update(reply.payload))
