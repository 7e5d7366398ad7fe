"""Entropy coding of small whole numbers: asymmetric numeral systems (rANS; Duda 2013, arXiv:1311.2540).

A symbol of frequency f out of 4096 takes log₂(4096/f) bits. The symbols are dealt out to lanes of 4096, which are coded
at once as arrays; the first lane has the symbols 0, L, 2L and so on of L lanes. The message is

    for each symbol of the alphabet its weight, 1 byte; then the state of each lane, uint32; then words of 16 bits, in
    the order in which the decoder reads them; little-endian.

All arithmetic is on whole numbers, so every machine decodes the same symbols. A decoder has used up the message when
each lane is back in the state in which the encoder began.
"""

import numpy as np
from numpy.typing import NDArray

LANE = 4096
BITS = 12
LEAST = 1 << 16
MAX_WEIGHT = 255

Symbols = NDArray[np.uint8]
Whole = NDArray[np.uint64]


def encode(symbols: Symbols, alphabet: int) -> bytes:
    """Return the message for `symbols` (n,), each below `alphabet`, which is at most 256."""
    weights = _weights(np.bincount(symbols, minlength=alphabet))
    frequencies = _frequencies(weights)
    begins = _begins(frequencies)
    lanes = _lanes(len(symbols))
    states = np.full(lanes, LEAST, np.uint64)
    words: list[NDArray[np.uint64]] = []
    for start in range(lanes * ((len(symbols) - 1) // lanes), -1, -lanes) if lanes else ():
        part = symbols[start : start + lanes]
        state, frequency = states[: len(part)], frequencies[part]
        full = state >= frequency << np.uint64(32 - BITS)
        words.append(state[full] & np.uint64(LEAST - 1))
        state[full] >>= np.uint64(16)
        state[:] = (state // frequency << np.uint64(BITS)) + state % frequency + begins[part]
    sent = np.concatenate(words[::-1]) if words else np.empty(0, np.uint64)
    return weights.tobytes() + states.astype("<u4").tobytes() + sent.astype("<u2").tobytes()


def decode(message: bytes, count: int, alphabet: int) -> Symbols:
    """Return the symbols (count,) of a message.

    Raises:
        ValueError: No encoder writes such a message for so many symbols of this alphabet.
    """
    lanes = _lanes(count)
    head = alphabet + 4 * lanes
    if len(message) < head or (len(message) - head) % 2:
        raise ValueError(
            f"{count} symbols take at least {head} bytes and whole words, not {len(message)} bytes"
        )
    frequencies = _frequencies(np.frombuffer(message, np.uint8, alphabet))
    begins = _begins(frequencies)
    symbol_of = np.repeat(np.arange(alphabet, dtype=np.uint8), frequencies.astype(np.int64))
    states = np.frombuffer(message, "<u4", lanes, alphabet).astype(np.uint64)
    words = np.frombuffer(message, "<u2", offset=head).astype(np.uint64)
    symbols, read = np.empty(count, np.uint8), 0
    for start in range(0, count, lanes or 1):
        part = symbols[start : start + lanes]
        state = states[: len(part)]
        slot = state & np.uint64((1 << BITS) - 1)
        part[:] = symbol_of[slot]
        state[:] = frequencies[part] * (state >> np.uint64(BITS)) + slot - begins[part]
        empty = state < LEAST
        needed = int(empty.sum())
        if read + needed > len(words):
            raise ValueError("a coded message ends before its last symbol")
        state[empty] = state[empty] << np.uint64(16) | words[read : read + needed]
        read += needed
    if read < len(words) or (states != LEAST).any():
        raise ValueError("a coded message has more than its symbols")
    return symbols


def _lanes(count: int) -> int:
    return -(-count // LANE)


def _weights(counts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return for each symbol how often it occurs, the most frequent one 255 times; at least 1 for one that does."""
    most = max(int(counts.max(initial=0)), 1)
    return np.maximum((counts * MAX_WEIGHT + most // 2) // most, counts > 0).astype(np.uint8)


def _frequencies(weights: NDArray[np.uint8]) -> Whole:
    """Return frequencies that add up to 4096, and are positive where a weight is."""
    total = int(weights.sum(dtype=np.int64))
    if not total:
        raise ValueError("a coded message gives no symbol a weight")
    spare = (1 << BITS) - np.count_nonzero(weights)
    frequencies = (weights > 0) + weights.astype(np.int64) * spare // total
    frequencies[int(weights.argmax())] += (1 << BITS) - int(frequencies.sum())
    return frequencies.astype(np.uint64)


def _begins(frequencies: Whole) -> Whole:
    return np.cumsum(frequencies) - frequencies
