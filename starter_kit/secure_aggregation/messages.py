"""The messages of the four legs as bytes: a header of 24 bytes and entries of a fixed size, all little-endian.

| leg | message | from, to | entries | bytes of an entry |
| --- | --- | --- | --- | --- |
| 1 | advertisement | client, server | 1 | 64: two public keys |
| 1 | key list | server, all | clients that advertised | 68: id and two public keys |
| 2 | shares | client, server | the others on the key list | 98: recipient, nonce, ciphertext and tag |
| 2 | routed shares | server, client | the others that sent shares | 98: sender, nonce, ciphertext and tag |
| 3 | masked vector | client, server | coordinates | 4: an integer modulo 2³² |
| 4 | unmask request | server, all | clients whose vectors arrived | 4: id |
| 4 | unmask answer | client, server | clients that sent shares, itself among them | 38: id, kind and share |

The header holds the protocol's mark and version, the kind of the message, the round, the client that it is from or
to, and the number of entries. Entries with ids come in ascending order of them, so that there is one way to write a
message. Readers check the number of entries against a limit, and the size against that number, before they read
entries; they raise `ProtocolError` for whatever isn't as described here.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.keys import PublicKeys
from starter_kit.secure_aggregation.masks import WORD, Words
from starter_kit.secure_aggregation.sealing import SEALED_BYTES
from starter_kit.secure_aggregation.sharing import SHARE_BYTES, share_from_bytes, share_to_bytes

MARK = b"PFSA"
VERSION = 1
EVERYBODY = 2**32 - 1

HEADER = struct.Struct("<4sHHQII")  # mark, version, kind, round, client, entries
_KEYS = struct.Struct("<32s32s")
_KEYS_OF = struct.Struct("<I32s32s")
_SEALED = struct.Struct(f"<I{SEALED_BYTES}s")
_ID = struct.Struct("<I")
_SHARE = struct.Struct(f"<IB{SHARE_BYTES}s")


class MessageKind(IntEnum):
    """The kinds of messages."""

    ADVERTISEMENT = 1
    KEY_LIST = 2
    SHARES = 3
    ROUTED_SHARES = 4
    MASKED_VECTOR = 5
    UNMASK_REQUEST = 6
    UNMASK_ANSWER = 7


class Secret(IntEnum):
    """A client's two secrets."""

    SELF_MASK_SEED = 1
    MASKING_KEY = 2


@dataclass(frozen=True)
class Revealed:
    """One client's share of one secret of another."""

    secret: Secret
    share: int


@dataclass(frozen=True)
class Envelope:
    """A message's kind, round and client; the client is `EVERYBODY` where the server sends the same to all."""

    kind: MessageKind
    round: int
    client: int


def envelope_of(message: bytes) -> Envelope:
    """Return what the header of `message` states."""
    if len(message) < HEADER.size:
        raise ProtocolError(f"a message has at least {HEADER.size} bytes, not {len(message)}")
    mark, version, kind, number, client, _ = HEADER.unpack_from(message)
    if mark != MARK or version != VERSION:
        raise ProtocolError(f"not a message of secure aggregation, version {VERSION}")
    try:
        return Envelope(MessageKind(kind), number, client)
    except ValueError:
        raise ProtocolError(f"no message is of kind {kind}") from None


def write_advertisement(round_number: int, client: int, keys: PublicKeys) -> bytes:
    """Return the message with a client's public keys."""
    return _write(
        Envelope(MessageKind.ADVERTISEMENT, round_number, client), [_KEYS.pack(keys.masking, keys.encryption)]
    )


def read_advertisement(message: bytes, expected: Envelope) -> PublicKeys:
    """Return the public keys of an advertisement."""
    body = _body(message, expected, _KEYS.size, 1, 1)
    return PublicKeys(*_KEYS.unpack(body))


def write_key_list(round_number: int, keys: Mapping[int, PublicKeys]) -> bytes:
    """Return the message with the public keys of all clients that advertised."""
    entries = (_KEYS_OF.pack(client, of.masking, of.encryption) for client, of in sorted(keys.items()))
    return _write(Envelope(MessageKind.KEY_LIST, round_number, EVERYBODY), entries)


def read_key_list(message: bytes, round_number: int, clients: int) -> dict[int, PublicKeys]:
    """Return the public keys of up to `clients` clients, by id."""
    entries = _entries(message, Envelope(MessageKind.KEY_LIST, round_number, EVERYBODY), _KEYS_OF, 1, clients)
    return {client: PublicKeys(masking, encryption) for client, masking, encryption in entries}


def write_sealed(envelope: Envelope, sealed: Mapping[int, bytes]) -> bytes:
    """Return a message of `SHARES` or `ROUTED_SHARES`: the sealed shares to, or from, each other client."""
    return _write(envelope, (_SEALED.pack(other, data) for other, data in sorted(sealed.items())))


def read_sealed(message: bytes, expected: Envelope, clients: int) -> dict[int, bytes]:
    """Return the sealed shares to, or from, up to `clients` other clients, by id."""
    return dict(_entries(message, expected, _SEALED, 0, clients))


def write_masked_vector(round_number: int, client: int, vector: Words) -> bytearray:
    """Return the message with `vector` (d,) as it is; `vector_in` returns the part to mask."""
    message = bytearray(HEADER.size + vector.size * WORD.itemsize)
    message[: HEADER.size] = _header(Envelope(MessageKind.MASKED_VECTOR, round_number, client), vector.size)
    vector_in(message)[:] = vector
    return message


def read_masked_vector(message: bytes, expected: Envelope, size: int) -> Words:
    """Return the masked vector (size,), which shares the message's memory."""
    _body(message, expected, WORD.itemsize, size, size)
    return vector_in(message)


def vector_in(message: bytes | bytearray) -> Words:
    """Return the vector (d,) of a masked vector's message; it shares the message's memory."""
    return np.frombuffer(message, WORD, offset=HEADER.size)


def write_unmask_request(round_number: int, survivors: Iterable[int]) -> bytes:
    """Return the message that lists the clients whose vectors arrived."""
    entries = (_ID.pack(client) for client in sorted(survivors))
    return _write(Envelope(MessageKind.UNMASK_REQUEST, round_number, EVERYBODY), entries)


def read_unmask_request(message: bytes, round_number: int, clients: int) -> tuple[int, ...]:
    """Return the ids of the clients, at most `clients`, whose vectors arrived."""
    expected = Envelope(MessageKind.UNMASK_REQUEST, round_number, EVERYBODY)
    return tuple(client for (client,) in _entries(message, expected, _ID, 1, clients))


def write_unmask_answer(round_number: int, client: int, revealed: Mapping[int, Revealed]) -> bytes:
    """Return the message with the shares that a client reveals."""
    entries = (_SHARE.pack(of, it.secret, share_to_bytes(it.share)) for of, it in sorted(revealed.items()))
    return _write(Envelope(MessageKind.UNMASK_ANSWER, round_number, client), entries)


def read_unmask_answer(message: bytes, expected: Envelope, clients: int) -> dict[int, Revealed]:
    """Return the revealed shares, by the client whose secrets they belong to; exactly `clients` of them."""
    entries = _entries(message, expected, _SHARE, clients, clients)
    return {of: Revealed(_secret(number), share_from_bytes(share)) for of, number, share in entries}


def _write(envelope: Envelope, entries: Iterable[bytes]) -> bytes:
    body = list(entries)
    return b"".join([_header(envelope, len(body)), *body])


def _header(envelope: Envelope, entries: int) -> bytes:
    return HEADER.pack(MARK, VERSION, envelope.kind, envelope.round, envelope.client, entries)


def _body(message: bytes, expected: Envelope, entry_bytes: int, fewest: int, most: int) -> memoryview:
    """The entries of `message`, which is of `expected` kind, round and client and has as many as it says."""
    found = envelope_of(message)
    for name, should, is_ in (
        ("kind", expected.kind.name, found.kind.name),
        ("round", expected.round, found.round),
        ("client", expected.client, found.client),
    ):
        if should != is_:
            raise ProtocolError(f"the message's {name} is {is_}, where {should} was expected")
    *_, entries = HEADER.unpack_from(message)
    if not fewest <= entries <= most:
        raise ProtocolError(f"{found.kind.name} with {entries} entries, not {fewest} to {most}")
    if len(message) != HEADER.size + entries * entry_bytes:
        raise ProtocolError(f"{found.kind.name} with {entries} entries can't have {len(message)} bytes")
    return memoryview(message)[HEADER.size :]


def _entries(
    message: bytes, expected: Envelope, entry: struct.Struct, fewest: int, most: int
) -> list[tuple[Any, ...]]:
    """The entries of `message`, each with an id first; see `_body`."""
    entries = list(entry.iter_unpack(_body(message, expected, entry.size, fewest, most)))
    ids = [id_ for id_, *_ in entries]
    if ids != sorted(set(ids)):
        raise ProtocolError("the clients' ids are not in ascending order, each once")
    return entries


def _secret(number: int) -> Secret:
    try:
        return Secret(number)
    except ValueError:
        raise ProtocolError(f"no secret has the number {number}") from None
