"""Federations of given clients and learners, for tests; `Toy` is the kit's own."""

from collections.abc import Iterable, Sequence

from torch import Tensor

from starter_kit.compression.codecs import codec
from starter_kit.federation.local_engine import LocalEngine
from starter_kit.federation.plain_aggregation import PlainAggregation
from starter_kit.federation.rounds import Aggregate, Client, Message, Method, Participant, Server
from starter_kit.federation.wire import Wire
from starter_kit.learning.local_training import Learner
from starter_kit.randomness import Stream
from starter_kit.scaffolding.toy import DIMENSION, Toy, run_rounds

__all__ = ["DIMENSION", "STREAM", "Toy", "aggregated", "run_rounds", "server", "wire_from"]

STREAM = Stream(7)  # that of `Toy.server` as well


def wire_from(start: Tensor, codec_name: str = "float32") -> Wire:
    return Wire(codec(codec_name), start)


def server(
    method: Method, clients: Sequence[Client], learner: Learner, start: Tensor, *, codec_name: str = "float32"
) -> Server:
    """A whole federation in this process."""
    aggregation = PlainAggregation(wire_from(start, codec_name))
    participant = Participant(method, clients, learner, aggregation, STREAM)
    return Server(method, LocalEngine(participant), aggregation, STREAM)


def aggregated(method: Method, weights: Tensor, messages: Iterable[Message]) -> Aggregate:
    """What the server makes of these messages in a round from `weights` (d,), with an empty state."""
    accumulator = method.accumulator(weights, {})
    for message in messages:
        accumulator.add(message)
    return accumulator.result()
