"""Rounds whose every state of the model can be looked at: as the clients receive it, train it and send it."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from torch import Tensor

from evaluator.messages.progress import ignore_progress
from starter_kit.federation.client_state import LocalState
from starter_kit.federation.local_engine import LocalEngine
from starter_kit.federation.rounds import Aggregation, Channel, ClientUpdate, Message, Reply, Request, Server
from starter_kit.runs.setup import RunSetup
from tests.studies.reproduction.ablations.rows import Stage


@dataclass(frozen=True)
class Reached:
    """A stage of a round.

    Attributes:
        models: The model (d,) of each client that takes part; the server's alone after aggregation.
        bytes_total: What was sent until then, in both directions.
    """

    round: int
    stage: Stage
    models: list[Tensor]
    bytes_total: int


@dataclass(frozen=True)
class WatchedAggregation:
    """An aggregation protocol, of which nothing is changed, with the models of one round.

    Attributes:
        models: By stage, in the order of the clients. After its upload, a client's model is the one that the server
            would have from this client's update alone: the mean of these is the model after aggregation.
    """

    inner: Aggregation
    models: dict[Stage, list[Tensor]] = field(default_factory=lambda: defaultdict(list))

    def gather(self, channel: Channel, weights: Tensor) -> Iterator[Message]:
        """Yield the updates (d,) that `inner` yields, added to `weights` (d,) as models."""
        for message in self.inner.gather(channel, weights):
            self.models[Stage.UPLOAD].append(weights + message.vector)
            yield message

    def answer(self, request: Request, kept: LocalState, train: Callable[[Tensor], ClientUpdate]) -> Reply:
        """Return the reply of `inner`, whose model (d,) is seen before and after `train`."""

        def watched(received: Tensor) -> ClientUpdate:
            update = train(received)
            self.models[Stage.DOWNLOAD].append(received)
            self.models[Stage.FINETUNING].append(received + update.message)
            return update

        return self.inner.answer(request, kept, watched)


def staged_rounds(setup: RunSetup) -> Iterator[Reached]:
    """Train a run in which nothing is private, and yield the stages of all its rounds.

    Args:
        setup: Of this run alone: its aggregation is replaced.
    """
    watched = WatchedAggregation(setup.aggregation)
    setup.aggregation = watched
    engine = LocalEngine(setup.participant(ignore_progress))
    server = Server(setup.method, engine, watched, setup.stream)
    weights, sent = setup.model.start, 0
    for number in range(1, setup.rounds + 1):
        watched.models.clear()
        finished = server.round(number, weights)
        weights = finished.weights
        watched.models[Stage.AGGREGATION].append(weights)
        for stage in Stage:
            if stage in (Stage.DOWNLOAD, Stage.UPLOAD):
                sent += finished.bytes_down if stage is Stage.DOWNLOAD else finished.bytes_up
            yield Reached(number, stage, watched.models[stage], sent)
