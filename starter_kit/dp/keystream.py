"""Uniform random numbers that nobody can reproduce: AES-256 in counter mode under a key from the OS.

The key is drawn from the operating system when a `Keystream` is made and is never stored, shown or settable:
noise that can be regenerated from a known seed protects nobody. A keystream never uses a counter twice, and no
two keystreams share a key.
"""

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

KEY_BYTES = 32
NONCE_BYTES = 16


class Keystream:
    """A stream of random numbers under a fresh key. Not safe to share between threads."""

    def __init__(self) -> None:
        cipher = Cipher(algorithms.AES(os.urandom(KEY_BYTES)), modes.CTR(os.urandom(NONCE_BYTES)))
        self._encryptor = cipher.encryptor()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return uniform 64-bit words (count,)."""
        return np.frombuffer(self._encryptor.update(bytes(8 * count)), dtype=np.uint64)

    def uniforms(self, count: int) -> NDArray[np.float64]:
        """Return float64 numbers (count,) uniform on the multiples of 2⁻⁵³ in (0, 1].

        None of them is 0, so that a logarithm is finite.
        """
        return ((self.words(count) >> np.uint64(11)) + np.uint64(1)).astype(np.float64) * 2.0**-53
