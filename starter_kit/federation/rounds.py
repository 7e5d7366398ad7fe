"""The federated rounds, the same for every method: send the model down, gather updates, aggregate.

Methods differ in what a client does and how the server aggregates (`Method`), engines in where clients run (`Engine`),
codecs in how a vector becomes bytes (`Wire`), aggregation protocols in whether the server sees each update or only
their sum (`Aggregation`). Every message counts with the bytes that are sent.

The server holds one update at a time: an update is as large as the model, so a round of K clients would otherwise need
the memory of K models. Therefore messages stream through an iterator, from the engine to the method's `Accumulator`;
with the engines of one machine, a client trains when the server asks for the next message.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from evaluator.communication.log import LogEntry
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import SERVER
from evaluator.parametrizations.turns import Turns
from evaluator.records.round_keys import DrawKeys
from starter_kit.dp.keystream import drawing_from
from starter_kit.federation.auxiliary import AUXILIARY, NO_AUXILIARY, AuxiliaryVectors
from starter_kit.federation.client_state import ClientState, LocalState
from starter_kit.learning.local_training import Learner, State
from starter_kit.randomness import Stream


@dataclass(frozen=True)
class Client:
    """One client's share of the data: for each of its providers, the indexes of that provider's examples."""

    id: int
    providers: dict[str, list[int]]

    @property
    def examples(self) -> list[int]:
        """The indexes of all its examples, provider by provider."""
        return [example for examples in self.providers.values() for example in examples]


@dataclass(frozen=True)
class ClientTask:
    """The input of a client's part of one round.

    Attributes:
        round: The number of the round, from 1.
        clients: K, how many clients were chosen for the round.
        weights: The round's model (d,) float32, as it arrived.
        learner: The model with the client's training examples.
        stream: The client's own randomness in this round.
        state: The client's state from round to round, such as dual variables. It is changed in place and never sent.
        auxiliary: The auxiliary vectors that came with the model: see `AuxiliaryVectors`.
    """

    client: Client
    round: int
    clients: int
    weights: Tensor
    learner: Learner
    stream: Stream
    state: State
    auxiliary: Tensor = field(default_factory=lambda: torch.empty(0))


@dataclass(frozen=True)
class ClientUpdate:
    """The result of a client's part of a round.

    Attributes:
        message: The vector (d,) float32 that is sent to the server, with its auxiliary vectors; the server sees nothing
            else.
        sampled: How many of the client's providers took part. Private: it never leaves with the message, and is stored
            for the organizers' annex only.
        loss: Mean training loss; only where nothing is private, None elsewhere.
    """

    message: Tensor
    sampled: int = field(repr=False)
    loss: float | None = None


@dataclass(frozen=True)
class Message:
    """An update as it reached the server.

    Attributes:
        client: The client that sent it; `SERVER` for a sum of several clients' updates.
        vector: The update (d,) float32, or the sum of updates where they were added on the way.
        contributors: How many updates the vector is the sum of.
    """

    client: int
    vector: Tensor
    contributors: int = 1


@dataclass(frozen=True)
class Aggregate:
    """The result of a round at the server.

    Attributes:
        total: uₜ, the sum (d,) of all messages and of the server's noise, if it adds any.
        weights: The model (d,) after the round; where noise protects `total`, a function of it and of released values.
    """

    total: Tensor
    weights: Tensor


class Accumulator(Protocol):
    """Receives the messages of one round one by one, and stores only what the method needs."""

    def add(self, message: Message) -> None:
        """Add a message with a vector (d,), in the order of arrival: float32 sums depend on it."""

    def result(self) -> Aggregate:
        """Return the outcome of the round; called once, after the last message."""


class Sum:
    """The accumulator of a method that needs no more than the sum of the messages.

    Args:
        weights: The model (d,) that the round started from.
        state: The server's state from round to round.
        aggregate: Computes the outcome of the round from `weights`, this sum and `state`.

    Attributes:
        total: The sum (d,) float32 of the messages added so far.
        contributors: How many updates are in it.
    """

    def __init__(
        self, weights: Tensor, state: State, aggregate: Callable[[Tensor, "Sum", State], Aggregate]
    ) -> None:
        self.total = torch.zeros_like(weights)
        self.contributors = 0
        self._weights = weights
        self._state = state
        self._aggregate = aggregate

    def add(self, message: Message) -> None:
        self.total += message.vector
        self.contributors += message.contributors

    def result(self) -> Aggregate:
        return self._aggregate(self._weights, self, self._state)


class Method(Protocol):
    """A training method: three steps of a round, of which the second runs at a client."""

    def choose_clients(self, clients: Sequence[int], stream: Stream) -> list[int]:
        """Return the clients that take part in a round, possibly none."""

    def client_update(self, task: ClientTask) -> ClientUpdate:
        """Run a client's part of a round, and return its update (d,)."""

    def accumulator(self, weights: Tensor, state: State) -> Accumulator:
        """Return a new accumulator for the messages of a round that starts from `weights` (d,), usually a `Sum`.

        Args:
            state: The server's state from round to round, changed in place.
        """


@runtime_checkable
class KnowsLayout(Protocol):
    """A method whose server needs to know which coordinates of the vector are which tensor."""

    def with_layout(self, shapes: Mapping[str, torch.Size]) -> Method:
        """Return the method for a vector that has tensors of these names and shapes, one after another."""


# The leg of a round in which the model travels; secure aggregation has others.
TRAIN = "train"


@dataclass(frozen=True)
class Request:
    """A request of the server to a client in one leg of a round of `clients` clients.

    `payload` is all that is sent: in the leg `train`, the round's model. `draws` is the key of the client's coins and
    noise in a replayable run, whose clients are on the server's machine. `run_token` is what the first values of
    adapters follow from, "" in a run without a token; None where they follow from the seed.
    """

    round: int
    client: int
    clients: int
    payload: bytes = field(repr=False)
    leg: str = TRAIN
    draws: bytes | None = field(default=None, repr=False)
    run_token: str | None = None


@dataclass(frozen=True)
class Reply:
    """A client's answer: `payload` is all that is sent, in the leg `train` its update; see also `ClientUpdate`."""

    client: int
    payload: bytes = field(repr=False)
    sampled: int = field(default=0, repr=False)
    loss: float | None = None


class Engine(Protocol):
    """Where a round's clients run.

    Attributes:
        apart: Whether clients run separately from the server, which then sees nothing of them but their messages.
        unsent: The clients of the last requests to which nothing was sent, because they could not be reached.
    """

    apart: bool
    unsent: list[int]

    @property
    def clients(self) -> Sequence[int]:
        """The ids of all clients."""

    @property
    def states(self) -> Mapping[int, ClientState]:
        """The state of each client from round to round, or the note that its node stores it."""

    def restore(self, states: Mapping[int, ClientState]) -> None:
        """Give clients their earlier state back, in a run that is resumed.

        Raises:
            ProblemError: (`E_CLIENTS_LOST`) The state is stored at nodes, and this engine has none.
        """

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """Send the requests, and yield the replies as they arrive. A client that was lost has no reply."""


# Called with the round, how many updates have arrived, and how many clients were chosen.
OnUpdate = Callable[[int, int, int], None]


def _ignore_update(_round: int, _arrived: int, _chosen: int) -> None:
    """Ignore an update; the default of `OnUpdate`."""


# Called with each message that is sent, and its payload.
OnMessage = Callable[[LogEntry, bytes], None]


def _ignore_message(_entry: LogEntry, _payload: bytes) -> None:
    """Ignore a message; the default of `OnMessage`."""


@dataclass(frozen=True)
class Channel:
    """The messages of one round, each noted in `log` as it is sent.

    Attributes:
        clients: The clients chosen for the round.
        on_update: Called for each update as it arrives, without its content.
        on_message: Called for each message as it is sent or arrives.
        draws: The keys of a replayable run; None elsewhere.
        run_token: See `Request`.
        log: The messages sent so far, in both directions.
        replies: The replies of the leg `train`, without their bytes.
    """

    engine: Engine
    round: int
    clients: Sequence[int]
    on_update: OnUpdate = _ignore_update
    on_message: OnMessage = _ignore_message
    draws: DrawKeys | None = None
    run_token: str | None = None
    log: list[LogEntry] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def ask(self, payloads: Mapping[int, bytes], leg: str = TRAIN) -> Iterator[Reply]:
        """Send each client its payload, and yield the replies as they arrive."""
        requests = [
            Request(
                self.round, client, len(self.clients), payload, leg, self._draws_of(client), self.run_token
            )
            for client, payload in payloads.items()
        ]
        down = [LogEntry(self.round, SERVER, ask.client, len(ask.payload)) for ask in requests]
        self.log.extend(down)
        for entry, request in zip(down, requests, strict=True):
            self.on_message(entry, request.payload)
        for reply in self.engine.ask(requests):
            self.log.append(LogEntry(self.round, reply.client, SERVER, len(reply.payload)))
            self.on_message(self.log[-1], reply.payload)
            if leg == TRAIN:
                self.replies.append(replace(reply, payload=b""))
                self.on_update(self.round, len(self.replies), len(self.clients))
            yield reply
            # As large as all weights: the next client trains without it in memory.
            del reply
        for entry in down:
            if entry.receiver in self.engine.unsent:
                self.log.remove(entry)

    def _draws_of(self, client: int) -> bytes | None:
        return self.draws.key(self.round, client) if self.draws else None


class Aggregation(Protocol):
    """How the updates of a round's clients reach the server: each by itself, or added up under masks."""

    def gather(self, channel: Channel, weights: Tensor) -> Iterator[Message]:
        """Send `weights` (d,) to the channel's clients, and yield the updates, or their sum, as the server learns them.

        Clients train while the messages are consumed.
        """

    def answer(self, request: Request, kept: LocalState, train: Callable[[Tensor], ClientUpdate]) -> Reply:
        """Return a client's reply; `train` is the method's part of it, from the round's model (d,)."""


@dataclass(frozen=True)
class Participant:
    """The clients' side of a run, wherever an engine runs it.

    Attributes:
        shares: The clients whose data is on this machine.
        learner: The model with their training examples.
        stream: The run's randomness.
        auxiliary: The auxiliary vectors that travel with the model.
        start_from: Called with the run token of a request that has one.
        in_round: Returns a context, in which the learner trains what a round of this number moves.
    """

    method: Method
    shares: Sequence[Client]
    learner: Learner
    aggregation: Aggregation
    stream: Stream
    auxiliary: AuxiliaryVectors = NO_AUXILIARY
    start_from: Callable[[str], None] | None = None
    in_round: Callable[[int], AbstractContextManager[object]] = nullcontext

    @property
    def clients(self) -> list[int]:
        """The ids of the clients."""
        return [client.id for client in self.shares]

    def answer(self, request: Request, kept: LocalState) -> Reply:
        """Return a client's reply; `kept` is the client's state, changed in place.

        Raises:
            ProblemError: The method or the aggregation protocol rejected the request; (`E_CONFIGURATION`) the method's
                update has another length than the vector that the clients were sent.
        """
        if self.start_from and request.run_token is not None:
            self.start_from(request.run_token)

        def train(received: Tensor) -> ClientUpdate:
            weights, auxiliary = received.tensor_split([self.auxiliary.model_size(len(received))])
            (client,) = (share for share in self.shares if share.id == request.client)
            task = ClientTask(
                client=client,
                round=request.round,
                clients=request.clients,
                weights=weights,
                learner=self.learner,
                stream=self.stream.at("round", request.round, "client", request.client),
                state=kept.tensors,
                auxiliary=auxiliary,
            )
            with drawing_from(request.draws), self.in_round(request.round):
                update = self.method.client_update(task)
            _check_length(update, received)
            return update

        return self.aggregation.answer(request, kept, train)


def _check_length(update: ClientUpdate, received: Tensor) -> None:
    """Reject an update that has another length than what the clients were sent."""
    if update.message.shape != received.shape:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            message="The method's update is not as long as the model, and the server couldn't read it.",
            where="client_update of the method, message",
            expected=f"{len(received)} numbers, one for each that is trained",
            found=f"a tensor of shape {tuple(update.message.shape)}",
            next_step="A method without a training record may send auxiliary vectors: see "
            "starter_kit/federation/auxiliary.py. docs/methods.md says what a record can't state.",
        )


@dataclass(frozen=True)
class Round:
    """A finished round.

    Attributes:
        number: From 1.
        clients: The clients whose messages arrived.
        messages: The messages in both directions.
        start: The model (d,) of the server before the round.
        sampled: For each client that took part, how many of its providers did. Private: see `ClientUpdate`.
        loss: Mean of the clients' training losses; None where no client reports one.
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
        """The bytes of all messages from the server."""
        return sum(message.size_bytes for message in self.messages if message.sender == SERVER)

    @property
    def bytes_up(self) -> int:
        """The bytes of all messages to the server."""
        return sum(message.size_bytes for message in self.messages if message.receiver == SERVER)


@dataclass
class Server:
    """The server's side of a run.

    Attributes:
        state: The method's state at the server from round to round.
        needs_all: Whether a round counts only if every chosen client has answered.
        draws: The keys of coins and noise in a replayable run; None where nobody can draw them again.
        run_token: See `Request`.
        turns: Which coordinates each round moves; None where that is all of them. The others keep their values.
    """

    method: Method
    engine: Engine
    aggregation: Aggregation
    stream: Stream
    state: State = field(default_factory=dict)
    needs_all: bool = False
    on_update: OnUpdate = _ignore_update
    on_message: OnMessage = _ignore_message
    draws: DrawKeys | None = None
    auxiliary: AuxiliaryVectors = NO_AUXILIARY
    run_token: str | None = None
    turns: Turns | None = None

    def round(self, number: int, weights: Tensor) -> Round:
        """Run round `number` from `weights` (d,), even where no client is chosen.

        Raises:
            ProblemError: (`E_CLIENTS_LOST`) Too few of the chosen clients answered; or a client or the protocol
                rejected something.
        """
        with drawing_from(self.draws.key(number, SERVER) if self.draws else None):
            return self._round(number, weights)

    def _round(self, number: int, weights: Tensor) -> Round:
        chosen = self.method.choose_clients(self.engine.clients, self.stream.at("round", number, "clients"))
        channel = Channel(
            self.engine, number, chosen, self.on_update, self.on_message, self.draws, self.run_token
        )
        accumulator = self.method.accumulator(weights, self.state)
        if chosen:
            # Each step of this loop requests one more update, which a client computes now.
            sent = self.auxiliary.appended(weights, self.state.get(AUXILIARY))
            for message in self.aggregation.gather(channel, sent):
                accumulator.add(message)
                # As large as all weights: the next client trains without it in memory.
                del message
            self._check_answers(channel)
        return _finished(channel, weights, self._moved(number, weights, accumulator.result()))

    def _moved(self, number: int, weights: Tensor, aggregate: Aggregate) -> Aggregate:
        """Return the outcome of a round in which the coordinates of `weights` (d,) whose turn it isn't are kept."""
        if self.turns is None:
            return aggregate
        moved = torch.from_numpy(self.turns.moved(number))
        return replace(aggregate, weights=torch.where(moved, aggregate.weights, weights))

    def _check_answers(self, channel: Channel) -> None:
        answered = {reply.client for reply in channel.replies}
        lost = [str(client) for client in channel.clients if client not in answered]
        if lost and (self.needs_all or not answered):
            raise ProblemError.of(
                ErrorCode.CLIENTS_LOST,
                where=f"round {channel.round}",
                expected="an answer from every client" if self.needs_all else "an answer from any client",
                found=f"none from client {', '.join(lost)}",
            )


def _finished(channel: Channel, weights: Tensor, aggregate: Aggregate) -> Round:
    """Return the round whose messages went through `channel`."""
    losses = [reply.loss for reply in channel.replies if reply.loss is not None]
    return Round(
        number=channel.round,
        clients=sorted(reply.client for reply in channel.replies),
        messages=channel.log,
        start=weights,
        aggregate=aggregate,
        sampled={reply.client: reply.sampled for reply in channel.replies},
        loss=sum(losses) / len(losses) if losses else None,
    )
