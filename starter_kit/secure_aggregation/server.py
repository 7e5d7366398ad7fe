"""The server of secure aggregation: it receives the clients' messages leg by leg and ends with the sum.

It learns the sum of the vectors that arrived, who was lost when, and the masking keys of clients lost between legs 2
and 3. A vector that comes too late is still under its client's own mask.
"""

import numpy as np

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.keys import KeySchedule, PublicKeys, public_key_of, transcript_of
from starter_kit.secure_aggregation.masks import WORD, Mask, Words, add_masks, pairwise_sign
from starter_kit.secure_aggregation.messages import (
    Envelope,
    MessageKind,
    Revealed,
    Secret,
    envelope_of,
    read_advertisement,
    read_masked_vector,
    read_sealed,
    read_unmask_answer,
    write_key_list,
    write_sealed,
    write_unmask_request,
)
from starter_kit.secure_aggregation.sharing import reconstruct
from starter_kit.secure_aggregation.terms import Terms

# What the server collects after the messages of each kind.
NEXT = {
    MessageKind.ADVERTISEMENT: MessageKind.SHARES,
    MessageKind.SHARES: MessageKind.MASKED_VECTOR,
    MessageKind.MASKED_VECTOR: MessageKind.UNMASK_ANSWER,
    MessageKind.UNMASK_ANSWER: None,
}


class SecureServer:
    """The server of one round.

    In each leg, hand every client's message to `receive`; then end the leg with `key_list`, `routed_shares`,
    `unmask_request` and `total`, in this order, when all clients have answered or their time is over. Whoever hasn't
    answered by then is lost. A leg with fewer answers than the threshold can't be ended; it stays open.

    Args:
        terms: As the clients'.
        size: Coordinates of a vector.
    """

    def __init__(self, terms: Terms, size: int) -> None:
        self._terms = terms
        if not 0 < size < 2**32:
            raise ProtocolError(f"a vector has from 1 to {2**32 - 1} coordinates, not {size}")
        self._size = size
        self._collected: MessageKind | None = MessageKind.ADVERTISEMENT
        self._received: set[int] = set()
        self._expected = set(self._terms.clients)
        self._keys: dict[int, PublicKeys] = {}
        self._transcript = b""
        self._sealed: dict[int, dict[int, bytes]] = {}
        self._sum = np.zeros(size, WORD)
        self._survivors: set[int] = set()
        self._answers: dict[int, dict[int, Revealed]] = {}

    @property
    def missing(self) -> list[int]:
        """Return the clients whose message of this leg has not arrived."""
        return sorted(self._expected - self._received)

    def receive(self, message: bytes) -> int:
        """Accept a client's message of this leg; return the client's id.

        Raises:
            ProtocolError: It is of another leg or round, of a client that isn't part of this leg or has answered
                already, or not as its leg requires. The server continues as if it had not arrived.
        """
        found = envelope_of(message)
        if found.kind is not self._collected:
            raise ProtocolError(
                f"{found.kind.name} arrived while the server collects {_name(self._collected)}"
            )
        if found.round != self._terms.round:
            raise ProtocolError(f"a message of round {found.round} arrived in round {self._terms.round}")
        if found.client not in self._expected:
            raise ProtocolError(f"client {found.client} is not expected to send {found.kind.name}")
        if found.client in self._received:
            raise ProtocolError(f"client {found.client} has sent its {found.kind.name} already")
        match found.kind:
            case MessageKind.ADVERTISEMENT:
                self._keys[found.client] = read_advertisement(message, found)
            case MessageKind.SHARES:
                self._sealed[found.client] = self._read_shares(message, found)
            case MessageKind.MASKED_VECTOR:
                self._sum += read_masked_vector(message, found, self._size)
            case _:
                self._answers[found.client] = self._read_answer(message, found)
        self._received.add(found.client)
        return found.client

    def key_list(self) -> bytes:
        """End leg 1: return the message to all clients that advertised, with the public keys of all of them."""
        self._end(MessageKind.ADVERTISEMENT)
        message = write_key_list(self._terms.round, self._keys)
        self._transcript = transcript_of(message, self._terms)
        return message

    def routed_shares(self) -> dict[int, bytes]:
        """End leg 2: return, for each client that sent shares, the message with those that the others sent it."""
        self._end(MessageKind.SHARES)
        return {
            recipient: write_sealed(
                Envelope(MessageKind.ROUTED_SHARES, self._terms.round, recipient),
                {sender: sealed[recipient] for sender, sealed in self._sealed.items() if sender != recipient},
            )
            for recipient in self._sealed
        }

    def unmask_request(self) -> bytes:
        """End leg 3: return the message to all clients whose vectors arrived, which lists them."""
        self._end(MessageKind.MASKED_VECTOR)
        self._survivors = set(self._expected)
        return write_unmask_request(self._terms.round, self._survivors)

    def total(self) -> Words:
        """End leg 4: return the sum (size,) modulo 2³² of the vectors that arrived.

        Raises:
            ProtocolError: Fewer clients than the threshold answered, or a share is false. Nothing is released then.
        """
        self._check_can_end(MessageKind.UNMASK_ANSWER)
        masks = self._masks_left()
        self._end(MessageKind.UNMASK_ANSWER)
        add_masks(self._sum, [mask.reversed() for mask in masks])
        return self._sum

    def _check_can_end(self, kind: MessageKind) -> None:
        if self._collected is not kind:
            raise ProtocolError(f"the server collects {_name(self._collected)}, not {kind.name}")
        if len(self._received) < self._terms.threshold:
            raise ProtocolError(
                f"{len(self._received)} clients have sent {kind.name}; {self._terms.threshold} are required"
            )

    def _end(self, kind: MessageKind) -> None:
        self._check_can_end(kind)
        self._collected = NEXT[kind]
        self._expected, self._received = self._received, set()

    def _read_shares(self, message: bytes, found: Envelope) -> dict[int, bytes]:
        sealed = read_sealed(message, found, len(self._keys) - 1)
        if sealed.keys() != self._keys.keys() - {found.client}:
            raise ProtocolError(
                f"client {found.client} did not send shares for all others on the list of keys"
            )
        return sealed

    def _read_answer(self, message: bytes, found: Envelope) -> dict[int, Revealed]:
        revealed = read_unmask_answer(message, found, len(self._sealed))
        requested = {
            client: Secret.SELF_MASK_SEED if client in self._survivors else Secret.MASKING_KEY
            for client in self._sealed
        }
        if {client: it.secret for client, it in revealed.items()} != requested:
            raise ProtocolError(f"client {found.client} did not reveal the requested shares")
        return revealed

    def _masks_left(self) -> list[Mask]:
        """The masks that are in the sum: survivors' own, and those of survivors with clients that were lost."""
        schedule = KeySchedule(self._terms.round, self._transcript)
        masks = [Mask(schedule.self_mask(self._secret_of(client), client), 1) for client in self._survivors]
        for lost in self._sealed.keys() - self._survivors:
            private = self._secret_of(lost)
            if public_key_of(private) != self._keys[lost].masking:
                raise ProtocolError(f"the shares give another masking key than client {lost} advertised")
            masks += [
                Mask(
                    schedule.pairwise_mask(private, self._keys[client].masking, client, lost),
                    pairwise_sign(client, lost),
                )
                for client in self._survivors
            ]
        return masks

    def _secret_of(self, client: int) -> bytes:
        """The secret of `client` whose shares were revealed."""
        shares = {holder: revealed[client].share for holder, revealed in self._answers.items()}
        return reconstruct(shares, self._terms.threshold)


def _name(collected: MessageKind | None) -> str:
    return collected.name if collected else "nothing"
