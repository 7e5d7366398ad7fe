"""Rounds in which the server receives the update of every client by itself."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.federation.client_state import LocalState
from starter_kit.federation.rounds import Channel, ClientUpdate, Message, Reply, Request
from starter_kit.federation.wire import Wire
from starter_kit.learning.party_state import put_back, taken

# Before the names of what a codec keeps at a client.
CODEC_STATE = "codec/"


@dataclass(frozen=True)
class PlainAggregation:
    """The server receives every update by itself, packed by `wire`."""

    wire: Wire

    def gather(self, channel: Channel, weights: Tensor) -> Iterator[Message]:
        """Send `weights` (d,) to the channel's clients, and yield the update (d,) of each as it arrives.

        Raises:
            ProblemError: (`E_CLIENTS_LOST`) A client answered with bytes that are not an update.
        """
        payload = self.wire.pack_model(weights)
        for reply in channel.ask(dict.fromkeys(channel.clients, payload)):
            try:
                update = self.wire.unpack_update(reply.payload)
            except ValueError as error:
                raise ProblemError.of(
                    ErrorCode.CLIENTS_LOST,
                    message="A client answered with something other than an update.",
                    where=f"round {channel.round}, client {reply.client}",
                    expected="an update of the trained parameters",
                    found=error,
                    next_step="See that its node has the same kit, settings and files as the server.",
                ) from error
            yield Message(reply.client, update)
            # As large as all weights: the next client trains without them in memory.
            del reply, update

    def answer(self, request: Request, kept: LocalState, train: Callable[[Tensor], ClientUpdate]) -> Reply:
        """Train from the model (d,) of the request, and reply with the packed update (d,).

        Raises:
            ValueError: The request doesn't contain a model of this size.
            ProblemError: (`E_CHECKPOINT_NOT_FINITE`) The codec is lossy, and the update is not finite.
        """
        # The codec's state is its own: a method sees what the method kept.
        of_codec = taken(kept.tensors, CODEC_STATE)
        update = train(self.wire.unpack_model(request.payload))
        payload = self.wire.pack_update(update.message, of_codec)
        put_back(kept.tensors, CODEC_STATE, of_codec)
        return Reply(request.client, payload, update.sampled, update.loss)
