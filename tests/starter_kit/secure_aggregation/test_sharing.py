"""Enough shares give the secret, fewer give nothing."""

import os
import random
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.sharing import (
    PRIME,
    SHARE_BYTES,
    interpolate,
    reconstruct,
    share_from_bytes,
    share_to_bytes,
    split,
)

ALL_ONES = b"\xff" * 32


def is_prime(number: int) -> bool:
    """Miller and Rabin's test with 40 random bases."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    rng = random.Random(0)
    for base in (rng.randrange(2, number - 1) for _ in range(40)):
        powers = [pow(base, odd << n, number) for n in range(twos)]
        if powers[0] != 1 and number - 1 not in powers:
            return False
    return True


def test_the_field_is_a_prime_field_and_holds_every_secret() -> None:
    assert is_prime(PRIME)
    assert 2**256 < PRIME < 2 ** (8 * SHARE_BYTES)
    assert not is_prime((2**127 - 1) * (2**89 - 1))


def test_a_line_by_hand() -> None:
    # 5 + 3x
    assert interpolate([(1, 8), (2, 11)], 0) == 5
    assert interpolate([(1, 8), (2, 11)], 10) == 35


@pytest.mark.parametrize("secret", [bytes(32), ALL_ONES, os.urandom(32)], ids=["zeros", "ones", "random"])
def test_any_shares_that_are_enough_give_the_secret(secret: bytes) -> None:
    shares = split(secret, 3, [0, 4, 5, 2**32 - 2, 17])
    for number in (3, 4, 5):
        for holders in combinations(shares, number):
            assert reconstruct({holder: shares[holder] for holder in holders}, 3) == secret


def test_fewer_shares_are_rejected() -> None:
    shares = split(ALL_ONES, 3, range(5))
    with pytest.raises(ProtocolError, match="2 shares are too few: a secret requires 3"):
        reconstruct({0: shares[0], 1: shares[1]}, 3)


def test_with_one_share_less_every_secret_is_possible() -> None:
    known = split(ALL_ONES, 3, range(2))
    points = [(holder + 1, share) for holder, share in known.items()]
    for other in (bytes(32), b"\x01" * 32, os.urandom(32)):
        fitting = interpolate([*points, (0, int.from_bytes(other, "big"))], 3)
        assert reconstruct({**known, 2: fitting}, 3) == other


@pytest.mark.parametrize("secret", [bytes(32), ALL_ONES], ids=["zeros", "ones"])
def test_one_share_less_is_uniform_whatever_the_secret(secret: bytes) -> None:
    pairs = [split(secret, 3, range(2)) for _ in range(4000)]
    joint = np.zeros((16, 16))
    for pair in pairs:
        joint[pair[0] * 16 // PRIME, pair[1] * 16 // PRIME] += 1
    assert stats.chisquare(joint.ravel()).pvalue > 1e-7


def test_sharing_twice_gives_other_shares() -> None:
    assert split(ALL_ONES, 2, [0])[0] != split(ALL_ONES, 2, [0])[0]


def test_a_false_share_is_noticed_where_there_are_more_than_enough() -> None:
    shares = split(os.urandom(32), 3, range(4))
    for holder in shares:
        with pytest.raises(ProtocolError, match="not all of one secret"):
            reconstruct({**shares, holder: (shares[holder] + 1) % PRIME}, 3)


def test_a_secret_that_comes_out_too_large_is_rejected() -> None:
    with pytest.raises(ProtocolError, match="not all of one secret"):
        reconstruct({0: 2**256}, 1)


def test_a_share_is_33_bytes_and_an_element_of_the_field() -> None:
    assert share_from_bytes(share_to_bytes(PRIME - 1)) == PRIME - 1
    with pytest.raises(ProtocolError, match="not an element"):
        share_from_bytes(PRIME.to_bytes(SHARE_BYTES, "big"))


def test_a_secret_of_another_size_is_rejected() -> None:
    with pytest.raises(ValueError, match="32 bytes, not 31"):
        split(bytes(31), 1, [0])
