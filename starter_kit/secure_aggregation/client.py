"""A client of secure aggregation: one call for each leg, from the server's message to the answer.

Assumes that the public keys are the other clients' own, which nothing here can verify (docs/secure-aggregation.md).
"""

from collections.abc import Sequence

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.keys import (
    KeySchedule,
    PublicKeys,
    fresh_secret,
    public_key_of,
    transcript_of,
)
from starter_kit.secure_aggregation.masks import Mask, Words, add_masks, pairwise_sign
from starter_kit.secure_aggregation.messages import (
    Envelope,
    MessageKind,
    Revealed,
    Secret,
    read_key_list,
    read_sealed,
    read_unmask_request,
    vector_in,
    write_advertisement,
    write_masked_vector,
    write_sealed,
    write_unmask_answer,
)
from starter_kit.secure_aggregation.protocol_state import Leg, ProtocolState
from starter_kit.secure_aggregation.sealing import SharePair, seal, unseal
from starter_kit.secure_aggregation.sharing import split
from starter_kit.secure_aggregation.terms import Terms


class SecureClient:
    """One client in one round. Its keys are drawn from the operating system when it is made.

    A call that is rejected leaves the client unchanged. One that is answered can't be repeated: a second vector
    under the same masks would reveal the difference of the two. Only `unmask` may be called again, with the same
    request.

    Args:
        client_id: Its id, one of the clients of `terms`.
        terms: The same for everybody.
    """

    def __init__(self, client_id: int, terms: Terms) -> None:
        if client_id not in terms.clients:
            raise ProtocolError(f"client {client_id} is not among those of round {terms.round}")
        self._state = ProtocolState(
            client=client_id,
            terms=terms,
            masking_private=fresh_secret(),
            encryption_private=fresh_secret(),
            self_mask_seed=fresh_secret(),
        )

    def to_bytes(self) -> bytes:
        """Return the whole state, for a client whose next message is handled by another process.

        It holds all secrets of the round: keep it where only the client can read it, and delete it after the round.
        Save it before the answer is sent, and never restore an older one: a client that forgot what it has sent can
        be made to send what must not be sent as well.
        """
        return self._state.to_bytes()

    @classmethod
    def from_bytes(cls, state: bytes) -> "SecureClient":
        """Return the client that `to_bytes` was called on. Raises `ProtocolError` for anything else."""
        client = cls.__new__(cls)
        client._state = ProtocolState.from_bytes(state)
        return client

    def advertise(self) -> bytes:
        """Leg 1: return the client's two public keys."""
        self._must_be_at(Leg.ADVERTISE)
        message = write_advertisement(self._state.terms.round, self._state.client, self._public_keys())
        self._advance()
        return message

    def share(self, all_keys: bytes) -> bytes:
        """Leg 2: return shares of the two secrets for every other client on the server's list of keys.

        Raises:
            ProtocolError: Fewer clients than the threshold are on the list, one that was not invited, a key twice, or
                not this client with its own keys.
        """
        self._must_be_at(Leg.SHARE)
        terms, client, private = self._state.terms, self._state.client, self._state.encryption_private
        keys = self._keys_in(all_keys)
        seeds = split(self._state.self_mask_seed, terms.threshold, keys)
        private_keys = split(self._state.masking_private, terms.threshold, keys)
        pairs = {holder: SharePair(seeds[holder], private_keys[holder]) for holder in keys}
        own = pairs.pop(client)
        schedule = self._schedule(all_keys)
        sealed = {
            other: seal(schedule.share_encryption(private, keys[other].encryption, client, other), pair)
            for other, pair in pairs.items()
        }
        self._advance(key_list=all_keys, held={client: own})
        return write_sealed(Envelope(MessageKind.SHARES, terms.round, client), sealed)

    def mask(self, routed_shares: bytes, vector: Words) -> bytes:
        """Leg 3: return `vector` (d,) of uint32 under a mask of its own and one for each client that sent it shares.

        Raises:
            ProtocolError: Fewer clients than the threshold have sent shares, or shares don't open.
        """
        self._must_be_at(Leg.MASK)
        if vector.ndim != 1 or vector.dtype != "uint32" or not 0 < vector.size < 2**32:
            raise ProtocolError(f"a vector is one-dimensional, of uint32, not {vector.dtype}{vector.shape}")
        terms, client = self._state.terms, self._state.client
        held = self._state.held | self._opened(routed_shares)
        if len(held) < terms.threshold:
            raise ProtocolError(f"only {len(held)} clients have sent shares; {terms.threshold} are required")
        message = write_masked_vector(terms.round, client, vector)
        add_masks(vector_in(message), self._masks([other for other in held if other != client]))
        self._advance(held=held)
        return bytes(message)

    def unmask(self, request: bytes) -> bytes:
        """Leg 4: return, for each client that the vector is masked with, a share that removes its part of the mask.

        That is the share of the seed of its own mask where its vector arrived, and of its masking key where it was
        lost. Once answered, only the same request is answered again: both shares of one client are never revealed.

        Raises:
            ProtocolError: Fewer vectors than the threshold arrived, not this client's, one of a client that sent no
                shares, or other vectors than an earlier request listed.
        """
        self._must_be_at(Leg.UNMASK)
        terms, held = self._state.terms, self._state.held
        survivors = read_unmask_request(request, terms.round, len(held))
        if self._state.survivors not in (None, survivors):
            raise ProtocolError("shares were already revealed for other survivors")
        if len(survivors) < terms.threshold:
            raise ProtocolError(f"only {len(survivors)} vectors arrived; a sum has {terms.threshold} or more")
        if not set(survivors) <= held.keys():
            raise ProtocolError("the request lists a client with which this one shares no mask")
        if self._state.client not in survivors:
            raise ProtocolError("the request lists this client's own vector as lost")
        self._advance(survivors=survivors)
        return write_unmask_answer(
            terms.round,
            self._state.client,
            {
                other: Revealed(Secret.SELF_MASK_SEED, pair.seed)
                if other in survivors
                else Revealed(Secret.MASKING_KEY, pair.key)
                for other, pair in held.items()
            },
        )

    def _must_be_at(self, leg: Leg) -> None:
        if self._state.leg is not leg:
            raise ProtocolError(f"the client's next step is {self._state.leg.name}, not {leg.name}")

    def _advance(self, **changes: object) -> None:
        # The last leg is its own successor: the same request may come twice.
        leg = Leg(min(self._state.leg + 1, Leg.UNMASK))
        self._state = self._state.model_copy(update={**changes, "leg": leg})

    def _public_keys(self) -> PublicKeys:
        return PublicKeys(
            public_key_of(self._state.masking_private), public_key_of(self._state.encryption_private)
        )

    def _keys_in(self, key_list: bytes) -> dict[int, PublicKeys]:
        terms = self._state.terms
        keys = read_key_list(key_list, terms.round, len(terms.clients))
        if len(keys) < terms.threshold:
            raise ProtocolError(f"only {len(keys)} clients have sent keys; {terms.threshold} are required")
        if not keys.keys() <= set(terms.clients):
            raise ProtocolError("the list of keys has a client that was not invited")
        if keys.get(self._state.client) != self._public_keys():
            raise ProtocolError("the list of keys lacks this client's own")
        if len({key for of in keys.values() for key in (of.masking, of.encryption)}) != 2 * len(keys):
            raise ProtocolError("a public key is on the list twice")
        return keys

    def _schedule(self, key_list: bytes) -> KeySchedule:
        return KeySchedule(self._state.terms.round, transcript_of(key_list, self._state.terms))

    def _opened(self, routed_shares: bytes) -> dict[int, SharePair]:
        """The shares that other clients sent to this one."""
        client, private = self._state.client, self._state.encryption_private
        keys = self._keys_in(self._state.key_list)
        schedule = self._schedule(self._state.key_list)
        addressed = Envelope(MessageKind.ROUTED_SHARES, self._state.terms.round, client)
        sealed = read_sealed(routed_shares, addressed, len(keys) - 1)
        if not sealed.keys() <= keys.keys() - {client}:
            raise ProtocolError("shares of a client that is not on the list of keys")
        return {
            other: unseal(schedule.share_encryption(private, keys[other].encryption, other, client), data)
            for other, data in sealed.items()
        }

    def _masks(self, others: Sequence[int]) -> list[Mask]:
        keys = self._keys_in(self._state.key_list)
        schedule = self._schedule(self._state.key_list)
        client, private = self._state.client, self._state.masking_private
        return [
            Mask(schedule.self_mask(self._state.self_mask_seed, client), 1),
            *(
                Mask(
                    schedule.pairwise_mask(private, keys[other].masking, client, other),
                    pairwise_sign(client, other),
                )
                for other in others
            ),
        ]
