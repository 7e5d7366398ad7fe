"""Masks are AES-CTR keystream, cancel in pairs, and hide."""

import itertools

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from starter_kit.secure_aggregation.masks import CHUNK, Mask, Words, add_masks, pairwise_sign
from starter_kit.secure_aggregation.messages import vector_in
from tests.starter_kit.secure_aggregation.whole_round import Round

KEY = bytes(range(32))


def looks_uniform(words: Words) -> bool:
    """Whether a chi-square test lets the bytes pass as uniform, each of the four places of a word on its own."""
    by_place = np.ascontiguousarray(words).view(np.uint8).reshape(-1, 4)
    counts = [np.bincount(by_place[:, place], minlength=256) for place in range(4)]
    return all(1e-7 < stats.chisquare(count).pvalue < 1 - 1e-7 for count in counts)


def mask_of(key: bytes, size: int) -> Words:
    words = np.zeros(size, np.uint32)
    add_masks(words, [Mask(key, 1)])
    return words


def test_a_mask_is_the_encryption_of_a_counter_from_zero_across_chunks() -> None:
    blocks = CHUNK // 4 + 2
    counter = b"".join(n.to_bytes(16, "big") for n in range(blocks))
    # Counter mode by hand is what the masks are compared with.
    expected = Cipher(algorithms.AES256(KEY), modes.ECB()).encryptor().update(counter)
    assert np.array_equal(mask_of(KEY, 4 * blocks - 3), np.frombuffer(expected, "<u4")[: 4 * blocks - 3])


def test_a_mask_added_and_taken_away_leaves_the_vector() -> None:
    vector = np.arange(1000, dtype=np.uint32)
    add_masks(vector, [Mask(KEY, 1), Mask(bytes(32), -1)])
    assert not np.array_equal(vector, np.arange(1000))
    add_masks(vector, [Mask(KEY, 1).reversed(), Mask(bytes(32), -1).reversed()])
    assert np.array_equal(vector, np.arange(1000))


def test_pairwise_masks_of_all_clients_cancel() -> None:
    total = np.zeros(100, np.uint32)
    for one, other in itertools.combinations([4, 9, 0, 7], 2):
        key = bytes([one + other]) * 32
        add_masks(total, [Mask(key, pairwise_sign(one, other))])
        assert total.any()
        add_masks(total, [Mask(key, pairwise_sign(other, one))])
        assert not total.any()


def test_the_key_of_a_mask_is_not_shown() -> None:
    assert repr(KEY) not in repr(Mask(KEY, 1))


def masked_zeros(size: int, clients: int = 3) -> Words:
    """The masked vector of the first of some clients, as the server gets it; its own vector is zero."""
    played = Round({id_: np.zeros(size, np.uint32) for id_ in range(clients)})
    played.until_masked()
    return vector_in(played.masked[0])


@pytest.mark.parametrize("clients", [1, 2, 5])
def test_a_masked_vector_of_zeros_is_uniform(clients: int) -> None:
    assert looks_uniform(masked_zeros(100_000, clients))


def test_the_test_of_uniformity_notices_a_mask_on_all_but_one_bit() -> None:
    assert not looks_uniform(mask_of(KEY, 100_000) & np.uint32(0xFFFF7FFF))


def test_the_same_vector_looks_entirely_different_in_another_run() -> None:
    first, second = masked_zeros(100_000), masked_zeros(100_000)
    assert np.count_nonzero(first == second) <= 2
    assert looks_uniform(first - second)
