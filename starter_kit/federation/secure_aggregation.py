"""Rounds in which the server learns the sum of the clients' updates and no single one of them.

The protocol is `starter_kit.secure_aggregation`; this module sends its four legs as messages of a round. A client keeps
the secrets of a round, separate from its method's state, until it has answered the last leg.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import SERVER
from starter_kit.federation.client_state import LocalState
from starter_kit.federation.rounds import TRAIN, Channel, ClientUpdate, Message, Reply, Request
from starter_kit.federation.wire import Wire
from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.client import SecureClient
from starter_kit.secure_aggregation.fixed_point import OutOfBoundError, finest_grid
from starter_kit.secure_aggregation.server import SecureServer
from starter_kit.secure_aggregation.terms import Terms

# The legs around `train`.
KEYS, SHARES, UNMASK = "keys", "shares", "unmask"
# The share of a message's bytes that a training record leaves for framing.
FRAMING = 0.01


@dataclass(frozen=True)
class SecureAggregation:
    """The server receives the sum of all updates, which are added under masks.

    Attributes:
        bound: The largest absolute value of a coordinate of one client's update.
        tolerated_losses: How many of a round's clients may be lost; fewer than half of them.
    """

    wire: Wire
    bound: float
    tolerated_losses: int = 0

    def gather(self, channel: Channel, weights: Tensor) -> Iterator[Message]:
        """Send `weights` (d,) to the channel's clients, and yield one message, the sum (d,) of their updates.

        Raises:
            ProblemError: (`E_SECURE_AGGREGATION`) More clients were lost than are tolerated, or a message is not the
                protocol's next one.
        """
        invited, size = list(channel.clients), len(weights)
        with _rejecting(channel.round):
            server = SecureServer(self._terms(channel.round, invited), size)
            ids = struct.pack(f"<{len(invited)}I", *invited)
            _collect(server, channel, dict.fromkeys(invited, ids), KEYS)
            present = [client for client in invited if client not in server.missing]
            _collect(server, channel, dict.fromkeys(present, server.key_list()), SHARES)
            model = self.wire.pack_model(weights)
            routed = server.routed_shares()
            _collect(server, channel, {client: _pack(routed[client], model) for client in routed}, TRAIN)
            survivors = [client for client in routed if client not in server.missing]
            _collect(server, channel, dict.fromkeys(survivors, server.unmask_request()), UNMASK)
            total = finest_grid(self.bound, len(invited)).decode_sum(server.total())
        yield Message(SERVER, torch.from_numpy(total.astype(np.float32)), contributors=len(survivors))

    def answer(self, request: Request, kept: LocalState, train: Callable[[Tensor], ClientUpdate]) -> Reply:
        """Return a client's reply in one leg, in the leg `train` its masked update (d,).

        `kept.secrets` are updated in each leg and deleted after the last.

        Raises:
            ProblemError: (`E_SECURE_AGGREGATION`) The request is not the protocol's next one, or the update exceeds
                the bound.
        """
        # The secrets of a leg that fails are used up: no leg is answered twice.
        secrets, kept.secrets = kept.secrets, b""
        with _rejecting(request.round):
            client = self._client(request, secrets)
            reply = self._reply(client, request, train)
        if request.leg != UNMASK:
            kept.secrets = client.to_bytes()
        return reply

    def _client(self, request: Request, secrets: bytes) -> SecureClient:
        if request.leg == KEYS:
            invited = struct.unpack(f"<{len(request.payload) // 4}I", request.payload)
            return SecureClient(request.client, self._terms(request.round, invited))
        if not secrets:
            raise ProtocolError("the client has not sent its keys for this round")
        return SecureClient.from_bytes(secrets)

    def _reply(
        self, client: SecureClient, request: Request, train: Callable[[Tensor], ClientUpdate]
    ) -> Reply:
        if request.leg == KEYS:
            return Reply(request.client, client.advertise())
        if request.leg == SHARES:
            return Reply(request.client, client.share(request.payload))
        if request.leg == UNMASK:
            return Reply(request.client, client.unmask(request.payload))
        routed, model = _unpack(request.payload)
        update = train(self.wire.unpack_model(model))
        vector = finest_grid(self.bound, request.clients).encode(update.message.numpy())
        return Reply(request.client, client.mask(routed, vector), update.sampled, update.loss)

    def _terms(self, round_number: int, invited: Sequence[int]) -> Terms:
        """Return the terms of a round, whose sum is never the update of a single client."""
        threshold = len(invited) - self.tolerated_losses
        if threshold < 2:
            raise ProtocolError(f"a sum of {threshold} updates hides nothing")
        return Terms(round_number, tuple(sorted(invited)), threshold)


def _collect(server: SecureServer, channel: Channel, payloads: Mapping[int, bytes], leg: str) -> None:
    for reply in channel.ask(payloads, leg):
        server.receive(reply.payload)


def _pack(routed: bytes, model: bytes) -> bytes:
    return struct.pack("<Q", len(routed)) + routed + model


def _unpack(payload: bytes) -> tuple[bytes, bytes]:
    (length,) = struct.unpack_from("<Q", payload)
    return payload[8 : 8 + length], payload[8 + length :]


@contextmanager
def _rejecting(round_number: int) -> Iterator[None]:
    """Inside the block, report what the protocol rejects as a coded problem of the round."""
    try:
        yield
    except OutOfBoundError as error:
        raise ProblemError.of(
            ErrorCode.SECURE_AGGREGATION,
            where=f"round {round_number}",
            expected="updates within secure_aggregation.bound",
            found=str(error),
            next_step="Raise the bound, or lower the learning rate if training diverges.",
        ) from error
    except (ProtocolError, struct.error) as error:
        raise ProblemError.of(
            ErrorCode.SECURE_AGGREGATION,
            where=f"round {round_number}",
            expected="the protocol's next message",
            found=str(error),
        ) from error


def overhead_bytes(clients: int, size: int) -> int:
    """Return the bytes that the protocol adds to a model or an update in a round without losses.

    Of the two directions, the one with fewer bytes counts. Source: the table of messages in docs/secure-aggregation.md.

    Raises:
        ProblemError: (`E_CONFIGURATION`) With `size` parameters, the directions differ by more than the 1 % of a
            message's bytes that a training record allows for framing.
    """
    header = 24
    down = 4 * clients + (header + 68 * clients) + (8 + header + 98 * (clients - 1)) + (header + 4 * clients)
    up = (header + 64) + (header + 98 * (clients - 1)) + header + (header + 38 * clients)
    lean = min(down, up)
    if abs(down - up) >= FRAMING * (4 * size + lean):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="secure_aggregation",
            expected=f"more than {size} trained parameters with {clients} clients in a round, or no secure aggregation",
            found=f"{down} bytes of the protocol down, {up} up",
        )
    return lean
