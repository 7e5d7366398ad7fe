"""Rounds of a method on synthetic data, by the code that runs a training, and what an observer sees of them."""

import contextlib
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import SERVER
from starter_kit.compression.codecs import codec
from starter_kit.compression.plugin_codecs import CodecPlugin
from starter_kit.conformance.claims import Claims, claims_of, unsupported
from starter_kit.conformance.statistics import Array
from starter_kit.conformance.synthetic import Federation, SyntheticLearner
from starter_kit.federation.auxiliary import NO_AUXILIARY
from starter_kit.federation.client_state import LocalState
from starter_kit.federation.local_engine import LocalEngine
from starter_kit.federation.plain_aggregation import PlainAggregation
from starter_kit.federation.rounds import (
    Aggregation,
    Channel,
    Client,
    ClientUpdate,
    Message,
    Participant,
    Reply,
    Request,
    Round,
    Server,
)
from starter_kit.federation.secure_aggregation import SecureAggregation
from starter_kit.federation.wire import Wire
from starter_kit.randomness import Stream
from starter_kit.settings.plan import Plan
from starter_kit.settings.run_settings import PrivateSettings, RunSettings

# No honest release on these data is anywhere near.
LARGEST_VALUE = 1e15


@dataclass(frozen=True)
class _Observed:
    """An aggregation whose messages are copied as they reach the server."""

    inner: Aggregation
    messages: list[Message] = field(default_factory=list)

    def gather(self, channel: Channel, weights: Tensor) -> Iterator[Message]:
        for message in self.inner.gather(channel, weights):
            self.messages.append(Message(message.client, message.vector.clone(), message.contributors))
            yield message

    def answer(self, request: Request, kept: LocalState, train: Callable[[Tensor], ClientUpdate]) -> Reply:
        return self.inner.answer(request, kept, train)


@dataclass(frozen=True)
class Observation:
    """What an observer sees of a round.

    Attributes:
        clients: The clients that took part.
        releases: What the noise must cover, by its sender: each message's vector (d,), or the sum's under None.
        total: The sum (d,) that the round reports.
        step: The change (d,) of the model.
        sizes: The bytes of each message to the server.
        has_loss: Whether a client reported a loss.
    """

    clients: list[int]
    releases: dict[int | None, Array]
    total: Array
    step: Array
    sizes: list[int]
    has_loss: bool


class Start(StrEnum):
    """Where each of several rounds begins: after the one before, from weights of zero, or as the first round."""

    CONTINUED = "continued"
    ZERO_WEIGHTS = "zero_weights"
    STATELESS = "stateless"


@dataclass(frozen=True)
class Asked:
    """How rounds are run.

    Attributes:
        start: Where each of them begins.
        finite: Whether values that are not finite end the examination.
        silent: The first round (from 0) in which all gradients are zero, and the first one in which they no longer are.
    """

    start: Start = Start.CONTINUED
    finite: bool = True
    silent: tuple[int, int] = (0, 0)

    @property
    def silent_rounds(self) -> range:
        """The rounds without any signal."""
        return range(*self.silent)


class Session:
    """A run of a method on synthetic data, from weights of zero.

    Attributes:
        plan: The method's plan for the synthetic clients.
        claims: What it claims of a round.
        printed: What was printed during the rounds.

    Raises:
        ProblemError: The settings don't fit, or their method can't be examined.
    """

    def __init__(
        self,
        settings: RunSettings,
        federation: Federation,
        learner: SyntheticLearner | None = None,
        *,
        plain: bool = False,
    ) -> None:
        if not isinstance(settings, PrivateSettings):
            raise unsupported("settings of a private method, derived from PrivateSettings", settings.method)
        self.federation = federation
        self.plan = settings.plan(federation.clients)
        if self.plan.auxiliary != NO_AUXILIARY:
            raise unsupported("messages as long as the model", "a method that sends more")
        self.claims: Claims = claims_of(self.plan, settings.clip_norm)
        self.printed = io.StringIO()
        self._weights = torch.zeros(federation.size)
        self._observed = _Observed(_aggregation(settings, self.plan, self._weights, plain=plain))
        stream = Stream(settings.seed)
        self._learner = learner or federation.learner()
        self._stream = stream
        self._server = self._new_server()
        self._number = 0

    @property
    def clients(self) -> Sequence[Client]:
        """The clients, as the method's plan has them."""
        return self.plan.clients

    @property
    def text(self) -> str:
        """What was printed during the rounds."""
        return self.printed.getvalue()

    def _new_server(self) -> Server:
        """Return a server and participants that keep nothing of earlier rounds."""
        participant = Participant(
            self.plan.method, self.plan.clients, self._learner, self._observed, self._stream
        )
        return Server(
            self.plan.method, LocalEngine(participant), self._observed, self._stream, needs_all=True
        )

    def rounds(self, count: int, asked: Asked = Asked()) -> list[Observation]:
        """Run the next rounds.

        Raises:
            ProblemError: (`E_CONFORMANCE_VALUES`) A release is not finite, or far too large.
        """
        observations = []
        for index in range(count):
            self._learner.losses.signal = 0.0 if index in asked.silent_rounds else 1.0
            observations.append(self._round(asked))
        return observations

    def _round(self, asked: Asked) -> Observation:
        if asked.start is Start.STATELESS:
            self._server, self._number = self._new_server(), 0
        self._number += 1
        self._observed.messages.clear()
        start = self._weights if asked.start is Start.CONTINUED else torch.zeros_like(self._weights)
        with contextlib.redirect_stdout(self.printed), contextlib.redirect_stderr(self.printed):
            finished = self._server.round(self._number, start.clone())
        self._weights = finished.weights
        observation = _observation(finished, start, self._observed.messages, self.claims)
        if asked.finite:
            check_finite(observation, self._number)
        return observation


@dataclass(frozen=True)
class Releases:
    """The releases of one sender over the rounds: a client's messages, or the sums.

    Attributes:
        sender: The client; None for sums.
        rounds: The index (n,) of the round of each.
        rows: The releases (n, d).
        units: The units that may contribute to them.
    """

    sender: int | None
    rounds: list[int]
    rows: Array
    units: list[int]


class ObservedRun(Protocol):
    """What is needed of a session to read its observations."""

    federation: Federation

    @property
    def claims(self) -> Claims:
        """What the method claims of a round."""

    @property
    def clients(self) -> Sequence[Client]:
        """The clients, as the method's plan has them."""


def releases_of(
    session: ObservedRun, observations: Sequence[Observation], *, stateless: bool = False
) -> list[Releases]:
    """Return the releases of each sender, with the noise of each row its own.

    Args:
        stateless: Whether each round was run as the first one, so that no message continues an earlier one.
    """
    result = []
    senders = sorted({sender for seen in observations for sender in seen.releases}, key=str)
    for sender in senders:
        rounds = [index for index, seen in enumerate(observations) if sender in seen.releases]
        rows = np.stack([observations[index].releases[sender] for index in rounds])
        if session.claims.cumulative and not stateless:
            rows = np.cumsum(rows, axis=0)
        result.append(Releases(sender, rounds, rows, units_of(session, sender)))
    return result


def units_of(session: ObservedRun, sender: int | None = None) -> list[int]:
    """Return the units with data at a client, or at any."""
    clients = [client for client in session.clients if sender is None or client.id == sender]
    return sorted({int(session.federation.unit_of[e]) for client in clients for e in client.examples})


def _aggregation(settings: RunSettings, plan: Plan, start: Tensor, *, plain: bool) -> Aggregation:
    known = settings.codec if isinstance(settings.codec, CodecPlugin) else codec(settings.codec)
    wire = Wire(known, start)
    secure = settings.secure_aggregation
    if secure is None or plain:
        return PlainAggregation(wire)
    bound = plan.coordinate_bound if plan.coordinate_bound is not None else secure.bound
    if bound is None:
        raise unsupported("secure_aggregation.bound", None)
    return SecureAggregation(wire, bound, secure.tolerated_losses)


def _observation(finished: Round, start: Tensor, messages: Sequence[Message], claims: Claims) -> Observation:
    total = _array(finished.aggregate.total)
    releases: dict[int | None, Array] = {None: total}
    if claims.per_message:
        # A sum of several clients' updates is a release of all of them.
        releases = {None if m.client == SERVER else m.client: _array(m.vector) for m in messages}
    return Observation(
        clients=finished.clients,
        releases=releases,
        total=total,
        step=_array(finished.weights) - _array(start),
        sizes=[entry.size_bytes for entry in finished.messages],
        has_loss=finished.loss is not None,
    )


def _array(vector: Tensor) -> Array:
    return vector.detach().double().numpy()


def check_finite(observation: Observation, number: int) -> None:
    """Raise `ProblemError` (`E_CONFORMANCE_VALUES`) if a release is not finite, or far too large."""
    for vector in (*observation.releases.values(), observation.total):
        largest = float(np.abs(vector).max(initial=0.0))
        if not (math.isfinite(largest) and largest < LARGEST_VALUE):
            raise ProblemError.of(
                ErrorCode.CONFORMANCE_VALUES,
                where=f"round {number} on synthetic data",
                expected=f"numbers below {LARGEST_VALUE:g}",
                found=largest,
            )
