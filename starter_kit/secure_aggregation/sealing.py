"""Encryption of the shares that clients send each other through the server: AES-256-GCM.

The key is for one direction of one pair of clients in one round, and seals one message; the nonce is random all the
same. Sender, recipient and round are in the key (see `keys`), so that a message which was changed, sent to somebody
else, sent back or kept from another round doesn't open.
"""

import os
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.sharing import SHARE_BYTES, share_from_bytes, share_to_bytes

NONCE_BYTES = 12
TAG_BYTES = 16
SEALED_BYTES = NONCE_BYTES + 2 * SHARE_BYTES + TAG_BYTES


@dataclass(frozen=True)
class SharePair:
    """One holder's shares of one client's two secrets: of which it may reveal one, never both.

    Attributes:
        seed: The share of the seed of the client's own mask.
        key: The share of the client's private masking key.
    """

    seed: int = field(repr=False)
    key: int = field(repr=False)


def seal(key: bytes, shares: SharePair) -> bytes:
    """Return `shares` encrypted under `key`, `SEALED_BYTES` long."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, share_to_bytes(shares.seed) + share_to_bytes(shares.key), None)


def unseal(key: bytes, sealed: bytes) -> SharePair:
    """Return the shares that were sealed. Raises `ProtocolError` if they were sealed with another key, or changed."""
    try:
        opened = AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None)
    except InvalidTag as error:
        raise ProtocolError(
            "the shares don't open: changed, or for another client, round or list of keys"
        ) from error
    return SharePair(share_from_bytes(opened[:SHARE_BYTES]), share_from_bytes(opened[SHARE_BYTES:]))
