"""The federated rounds, the same for every method: send the model down, gather updates, aggregate.

Methods differ in what a client does and how the server aggregates (`Method`), engines in where clients run (`Engine`),
codecs in how a vector becomes bytes (`Wire`), gatherings in whether the server sees updates or their sum only
(`Gathering`). Every message is counted by the bytes that it is made of.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from torch import Tensor

from evaluator.communication.log import LogEntry
from evaluator.contracts import SERVER
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.federation.wire import Wire
from starter_kit.learning.local_training import Learner, State
from starter_kit.randomness import Stream


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


TRAIN = "train"  # the leg of a round in which the model travels; secure aggregation has others


@dataclass(frozen=True)
class Request:
    """What the server asks of a client in one leg of a round of `clients` clients.

    `payload` is all that is sent: in the leg `train`, the round's model.
    """

    round: int
    client: int
    clients: int
    payload: bytes = field(repr=False)
    leg: str = TRAIN


@dataclass(frozen=True)
class Reply:
    """A client's answer: `payload` is all that is sent, in the leg `train` its update; see also `ClientUpdate`."""

    client: int
    payload: bytes = field(repr=False)
    sampled: int = field(default=0, repr=False)
    loss: float | None = None


AT_ITS_NODE = "at its node"  # in place of what a client keeps, where that is not kept here


class Engine(Protocol):
    """Where a round's clients run.

    Attributes:
        states: What each client keeps from round to round, as far as it is kept here; else `AT_ITS_NODE`.
        apart: Whether clients run apart from the server, which then sees nothing of them but their messages.
        unsent: The clients of the last requests that nothing was sent to, as they could not be reached.
    """

    states: dict[int, State]
    apart: bool
    unsent: list[int]

    @property
    def clients(self) -> Sequence[int]:
        """The ids of all clients."""

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """The clients' replies as they come. A client that was lost on the way is missing."""


OnUpdate = Callable[[int, int, int], None]  # (round, updates that have come, clients that were chosen)


def _nobody(_round: int, _come: int, _chosen: int) -> None:
    """Is told of updates where nobody waits for them."""


@dataclass(frozen=True)
class Channel:
    """The messages of one round, each noted in `log` as it is sent.

    Attributes:
        clients: Those chosen for the round.
        on_update: Told of each update as it comes; it learns nothing of what is in it.
        replies: Those of the leg `train`, without their bytes.
    """

    engine: Engine
    round: int
    clients: Sequence[int]
    on_update: OnUpdate = _nobody
    log: list[LogEntry] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def ask(self, payloads: Mapping[int, bytes], leg: str = TRAIN) -> Iterator[Reply]:
        """Send each client its payload; their replies as they come."""
        requests = [
            Request(self.round, client, len(self.clients), payload, leg)
            for client, payload in payloads.items()
        ]
        down = [LogEntry(self.round, SERVER, ask.client, len(ask.payload)) for ask in requests]
        self.log.extend(down)
        for reply in self.engine.ask(requests):
            self.log.append(LogEntry(self.round, reply.client, SERVER, len(reply.payload)))
            if leg == TRAIN:
                self.replies.append(replace(reply, payload=b""))
                self.on_update(self.round, len(self.replies), len(self.clients))
            yield reply
        for entry in down:
            if entry.receiver in self.engine.unsent:
                self.log.remove(entry)


class Gathering(Protocol):
    """How the updates of a round's clients reach the server."""

    def gather(self, channel: Channel, weights: Tensor) -> Iterator[Message]:
        """Send `weights` (d,) to the channel's clients; the updates, or their sum, as the server learns them."""

    def answer(self, request: Request, state: State, train: Callable[[Tensor], ClientUpdate]) -> Reply:
        """The client's side of it: a reply; `train` is the method's part, from the round's model (d,)."""


@dataclass(frozen=True)
class Openly:
    """Every update by itself."""

    wire: Wire

    def gather(self, channel: Channel, weights: Tensor) -> Iterator[Message]:
        payload = self.wire.pack_model(weights)
        for reply in channel.ask(dict.fromkeys(channel.clients, payload)):
            try:
                update = self.wire.unpack_update(reply.payload)
            except ValueError as error:
                raise ProblemError.of(
                    ErrorCode.CLIENTS_LOST,
                    message="A client answered with something else than an update.",
                    where=f"round {channel.round}, client {reply.client}",
                    expected="an update of the trained parameters",
                    found=error,
                ) from error
            yield Message(reply.client, update)

    def answer(self, request: Request, state: State, train: Callable[[Tensor], ClientUpdate]) -> Reply:
        update = train(self.wire.unpack_model(request.payload))
        return Reply(request.client, self.wire.pack_update(update.message), update.sampled, update.loss)


class Participant:
    """The clients' side of a run, wherever an engine puts it.

    Args:
        clients: Those whose data is at hand.
        stream: The run's.
    """

    def __init__(
        self,
        method: Method,
        clients: Sequence[Client],
        learner: Learner,
        gathering: Gathering,
        stream: Stream,
    ) -> None:
        self._method = method
        self._clients = {client.id: client for client in clients}
        self._learner = learner
        self._gathering = gathering
        self._stream = stream

    @property
    def clients(self) -> list[int]:
        return list(self._clients)

    def answer(self, request: Request, state: State) -> Reply:
        """A client's reply; `state` is the client's own, changed in place."""

        def train(weights: Tensor) -> ClientUpdate:
            return self._method.client_update(
                ClientTask(
                    client=self._clients[request.client],
                    round=request.round,
                    clients=request.clients,
                    weights=weights,
                    learner=self._learner,
                    stream=self._stream.at("round", request.round, "client", request.client),
                    state=state,
                )
            )

        return self._gathering.answer(request, state, train)


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
        needs_all: Whether a round counts only if every client that was chosen has answered.
        on_update: Told of each update as it comes.
    """

    method: Method
    engine: Engine
    gathering: Gathering
    stream: Stream
    state: State = field(default_factory=dict)
    needs_all: bool = False
    on_update: OnUpdate = _nobody

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
        channel = Channel(self.engine, number, chosen, self.on_update)
        aggregate = self.method.aggregate(weights, self._gathered(channel, weights), self.state)
        losses = [reply.loss for reply in channel.replies if reply.loss is not None]
        return Round(
            number=number,
            clients=sorted(reply.client for reply in channel.replies),
            messages=channel.log,
            start=weights,
            aggregate=aggregate,
            sampled={reply.client: reply.sampled for reply in channel.replies},
            loss=sum(losses) / len(losses) if losses else None,
        )

    def _gathered(self, channel: Channel, weights: Tensor) -> Iterator[Message]:
        if not channel.clients:
            return
        yield from self.gathering.gather(channel, weights)
        answered = {reply.client for reply in channel.replies}
        lost = [str(client) for client in channel.clients if client not in answered]
        if lost and (self.needs_all or not answered):
            raise ProblemError.of(
                ErrorCode.CLIENTS_LOST,
                where=f"round {channel.round}",
                expected="an answer of every client" if self.needs_all else "an answer of any client",
                found=f"none of client {', '.join(lost)}",
            )
