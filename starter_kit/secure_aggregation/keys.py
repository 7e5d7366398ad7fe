"""Keys: two X25519 pairs for each client and round, and what is derived from them with HKDF-SHA256.

Every derived key is for one purpose, one round, one pair of clients and one list of public keys. The hash of that list
is HKDF's salt: clients that were shown different lists, or different thresholds, arrive at different keys, and the
shares that they send each other can't be opened.
"""

import hashlib
import os
import struct
from dataclasses import dataclass
from enum import IntEnum

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.terms import Terms

PROTOCOL = b"pfl-docvqa secure aggregation 1"
KEY_BYTES = 32

_INFO = struct.Struct(f"<{len(PROTOCOL)}sBQII")  # protocol, purpose, round, two client ids


class Purpose(IntEnum):
    """The purposes of derived keys."""

    SELF_MASK = 1
    PAIRWISE_MASK = 2
    SHARE_ENCRYPTION = 3


@dataclass(frozen=True)
class PublicKeys:
    """A client's public keys of one round, each of 32 bytes.

    Attributes:
        masking: The key of the pairwise masks. Its private key is secret-shared.
        encryption: The key under which shares are sent. Its private key never leaves the client.
    """

    masking: bytes
    encryption: bytes


@dataclass(frozen=True)
class KeySchedule:
    """Derives the keys of one round from the `transcript_of` what its clients have in common."""

    round: int
    transcript: bytes

    def self_mask(self, seed: bytes, client: int) -> bytes:
        """Return the key of the mask that `client` adds on its own."""
        return self._derive(seed, Purpose.SELF_MASK, client, client)

    def pairwise_mask(self, private: bytes, public: bytes, one: int, other: int) -> bytes:
        """Return the key of the mask of a pair, in either order, from one's private and the other's public key."""
        return self._derive(agree(private, public), Purpose.PAIRWISE_MASK, min(one, other), max(one, other))

    def share_encryption(self, private: bytes, public: bytes, sender: int, recipient: int) -> bytes:
        """Return the key for what `sender` sends `recipient`, which differs from the key for the way back."""
        return self._derive(agree(private, public), Purpose.SHARE_ENCRYPTION, sender, recipient)

    def _derive(self, secret: bytes, purpose: Purpose, one: int, other: int) -> bytes:
        info = _INFO.pack(PROTOCOL, purpose, self.round, one, other)
        return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=self.transcript, info=info).derive(secret)


def transcript_of(key_list: bytes, terms: Terms) -> bytes:
    """Return a hash of what all clients of a round must have received alike: the public keys, and the threshold."""
    return hashlib.sha256(struct.pack("<QI", terms.round, terms.threshold) + key_list).digest()


def fresh_secret() -> bytes:
    """Return 32 bytes from the operating system's entropy: an X25519 private key, or a seed."""
    return os.urandom(KEY_BYTES)


def public_key_of(private: bytes) -> bytes:
    """Return the X25519 public key of a private one, 32 bytes each."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agree(private: bytes, public: bytes) -> bytes:
    """Return the X25519 secret of two parties (RFC 7748), from one's private and the other's public key.

    Raises:
        ProtocolError: `public` is one of the few keys that give the same secret with everybody.
    """
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(
            X25519PublicKey.from_public_bytes(public)
        )
    except ValueError as error:
        raise ProtocolError("a public key gives no secret") from error
