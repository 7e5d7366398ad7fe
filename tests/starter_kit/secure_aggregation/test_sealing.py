"""Shares travel under a key and come out unchanged or not at all."""

import pytest

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.sealing import SEALED_BYTES, SharePair, seal, unseal
from starter_kit.secure_aggregation.sharing import PRIME

KEY = bytes(range(32))
SHARES = SharePair(seed=5, key=PRIME - 1)


def test_sealed_shares_come_out_as_they_went_in() -> None:
    assert unseal(KEY, seal(KEY, SHARES)) == SHARES


def test_sealing_twice_looks_different_throughout() -> None:
    first, second = seal(KEY, SHARES), seal(KEY, SHARES)
    assert len(first) == len(second) == SEALED_BYTES
    assert sum(a == b for a, b in zip(first, second, strict=True)) < 10


def test_another_key_does_not_open_them() -> None:
    with pytest.raises(ProtocolError, match="the shares don't open"):
        unseal(bytes(32), seal(KEY, SHARES))


def test_a_sealed_number_outside_the_field_is_rejected() -> None:
    with pytest.raises(ProtocolError, match="not an element"):
        unseal(KEY, seal(KEY, SharePair(seed=PRIME, key=0)))
