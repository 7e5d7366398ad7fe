"""Ed25519 keys and signatures (RFC 8032): which team a training record comes from.

A key is a PEM file (PKCS #8, not encrypted) that only its owner can read. What is signed is the hash of a record's
whole chain behind the name of the format, so that no signature made for another purpose passes for one of a record.
"""

import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.lines import SCHEMA

# Points of small order on the curve, by their y: for such a key anybody can sign.
PRIME = 2**255 - 19
_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
SMALL_ORDER = {0, 1, PRIME - 1, _ORDER_8, PRIME - _ORDER_8}

DOMAIN = f"{SCHEMA} signature\n".encode()
MAX_KEY_FILE_BYTES = 16 * 1024


def create_key(path: Path) -> Ed25519PrivateKey:
    """Create a key, and write it to the new file `path`, whose folder is made where it is missing.

    Raises:
        ProblemError: (`E_SIGNING_KEY`) The file exists, and is never overwritten, or it can't be written.
    """
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
    except FileExistsError as error:
        raise ProblemError.of(
            ErrorCode.SIGNING_KEY,
            message="There is a key already, which is never overwritten.",
            where=str(path),
            expected="a new file",
            found="an existing one",
            next_step="Use it: `pfl key show` prints its public key. For another key, name another file.",
        ) from error
    except OSError as error:
        raise _unusable(path, "a new file", error.strerror) from error
    return key


def load_key(path: Path) -> Ed25519PrivateKey:
    """Load the key in `path`.

    Raises:
        ProblemError: (`E_SIGNING_KEY`) The file can't be read, or isn't an unencrypted Ed25519 key.
    """
    try:
        with path.open("rb") as file:
            pem = file.read(MAX_KEY_FILE_BYTES)
    except OSError as error:
        raise _unusable(path, "a key file", error.strerror) from error
    try:
        # A TypeError, where the key is encrypted.
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _unusable(path, "an unencrypted Ed25519 key in PEM", "something else") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _unusable(path, "an Ed25519 key", "another kind of key")
    return key


def public_key_of(key: Ed25519PrivateKey) -> str:
    """Return the public half, in hexadecimal."""
    return key.public_key().public_bytes_raw().hex()


def is_public_key(public_key: str) -> bool:
    """Return whether the text is an Ed25519 public key in hexadecimal for which only one party can sign."""
    try:
        raw = bytes.fromhex(public_key)
        Ed25519PublicKey.from_public_bytes(raw)
    except ValueError:
        return False
    y = int.from_bytes(raw, "little") & (2**255 - 1)
    return y < PRIME and y not in SMALL_ORDER


def sign(key: Ed25519PrivateKey, head: str) -> str:
    """Return the signature, in hexadecimal, of a record whose chain ends in `head`."""
    return key.sign(DOMAIN + bytes.fromhex(head)).hex()


def verifies(public_key: str, head: str, signature: str) -> bool:
    """Return whether `signature` is that of `public_key` for a chain that ends in `head`; all in hexadecimal."""
    if not is_public_key(public_key):
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(signature), DOMAIN + bytes.fromhex(head))
    except InvalidSignature:
        return False
    return True


def _unusable(path: Path, expected: str, found: str | None) -> ProblemError:
    return ProblemError.of(
        ErrorCode.SIGNING_KEY, where=str(path), expected=expected, found=found or "an error"
    )
