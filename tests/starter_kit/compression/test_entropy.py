"""Entropy coding: what was coded comes back in nearly as few bytes as can be, and nothing else is read."""

import numpy as np
import pytest

from starter_kit.compression.entropy import decode, encode

DRAW = np.random.default_rng(3)
SKEWED = np.minimum(np.abs(DRAW.normal(0, 2, 9001)), 15).astype(np.uint8)


@pytest.mark.parametrize("count", [1, 2, 4096, 4097, 9001])
def test_symbols_come_back_in_little_more_than_their_entropy(count: int) -> None:
    symbols = SKEWED[:count]
    message = encode(symbols, 16)
    assert np.array_equal(decode(message, count, 16), symbols)
    shares = np.bincount(symbols) / count
    least = -count * float(shares @ np.log2(shares, where=shares > 0, out=np.zeros_like(shares))) / 8
    # The table and the state of each lane come on top.
    assert len(message) <= 1.01 * least + 16 + 4 * -(-count // 4096) + 2


def test_every_byte_is_a_symbol_and_one_that_always_comes_costs_nothing() -> None:
    symbols = DRAW.integers(0, 256, 5000).astype(np.uint8)
    assert np.array_equal(decode(encode(symbols, 256), 5000, 256), symbols)
    constant = np.full(5000, 2, np.uint8)
    message = encode(constant, 3)
    assert message == bytes([0, 0, 255]) + 2 * np.uint32(1 << 16).tobytes()
    assert np.array_equal(decode(message, 5000, 3), constant)


def test_a_message_that_no_encoder_writes_is_rejected() -> None:
    message = encode(SKEWED, 16)
    for wrong in (message[:10], message[:-1], message[:-2], message + b"\0\0", bytes(16) + message[16:]):
        with pytest.raises(ValueError, match="symbol"):
            decode(wrong, len(SKEWED), 16)
    swapped = message[:-4] + message[-2:] + message[-4:-2]
    with pytest.raises(ValueError, match="symbol"):
        decode(swapped, len(SKEWED), 16)
