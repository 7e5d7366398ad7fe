"""Uniform random numbers that nobody can reproduce: AES-256 in counter mode under a key from the OS.

The key is drawn from the operating system when a `Keystream` is made and is never stored, shown or settable:
noise that can be regenerated from a known seed protects nobody. A keystream never uses a counter twice, and no
two keystreams share a key.

The one exception is a run with the setting `replayable`: inside `drawing_from`, every keystream of the thread continues
one stream under a key that its caller keeps secret (`evaluator.records.round_keys`), so that whoever has the key can
draw the same numbers again. A key is for one party's part of one round, begun once; the caller never gives it twice,
except to replay that round.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

KEY_BYTES = 32
NONCE_BYTES = 16

_replayable: ContextVar[CipherContext | None] = ContextVar("replayable", default=None)


@contextmanager
def drawing_from(key: bytes | None) -> Iterator[None]:
    """Inside the block, draw from the stream of `key`, `KEY_BYTES` long; with None, nothing is different.

    A block inside another one has a stream of its own, and afterwards the outer one's goes on.
    """
    if key is None:
        yield
        return
    # A key is of one stream, so the counter may start at zero.
    token = _replayable.set(_stream(key, bytes(NONCE_BYTES)))
    try:
        yield
    finally:
        _replayable.reset(token)


class Keystream:
    """A stream of random numbers under a fresh key; see `drawing_from` for the exception. Not safe between threads."""

    def __init__(self) -> None:
        self._encryptor = _stream(os.urandom(KEY_BYTES), os.urandom(NONCE_BYTES))

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return uniform 64-bit words (count,)."""
        replayable = _replayable.get()
        encryptor = self._encryptor if replayable is None else replayable
        # Little-endian on every machine, so that a replay draws the same numbers.
        return np.frombuffer(encryptor.update(bytes(8 * count)), dtype="<u8")

    def uniforms(self, count: int) -> NDArray[np.float64]:
        """Return float64 numbers (count,) uniform on the multiples of 2⁻⁵³ in (0, 1].

        None of them is 0, so that a logarithm is finite.
        """
        return ((self.words(count) >> np.uint64(11)) + np.uint64(1)).astype(np.float64) * 2.0**-53


def _stream(key: bytes, nonce: bytes) -> CipherContext:
    return Cipher(algorithms.AES(key), modes.CTR(nonce)).encryptor()
