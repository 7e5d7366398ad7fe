"""Commitments to noised sums, and which of their blocks are shown."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.records.certificate import (
    BLOCK,
    MAX_BLOCKS,
    MAX_OPENINGS,
    Floats,
    blocks_of_a_round,
    drawn_blocks,
    drawn_openings,
    is_opening_of,
    open_blocks,
    root_of_pieces,
    vector_root,
)


def vector(numel: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal(numel).astype(np.float32)


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def test_the_root_is_that_of_the_documented_tree() -> None:
    u = vector(2 * BLOCK + 5)
    a, b, c = (sha(b"\0" + u[i : i + BLOCK].astype("<f4").tobytes()) for i in range(0, len(u), BLOCK))
    assert vector_root(u) == sha(b"\1" + sha(b"\1" + a + b) + c).hex()
    assert vector_root(u[:5]) == sha(b"\0" + u[:5].astype("<f4").tobytes()).hex()
    assert root_of_pieces([u[:BLOCK], u[BLOCK:]]) == vector_root(u)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40 * BLOCK), st.data())
def test_every_block_opens_at_its_own_place_only(numel: int, data: st.DataObject) -> None:
    u = vector(numel)
    blocks = -(-numel // BLOCK)
    index = data.draw(st.integers(0, blocks - 1))
    (opening,) = open_blocks(u, [index])
    root = vector_root(u)
    assert is_opening_of(opening, root, numel)
    assert np.array_equal(opening.values, u[index * BLOCK : (index + 1) * BLOCK])
    elsewhere = data.draw(st.integers(0, blocks))
    assert is_opening_of(replace(opening, block=elsewhere), root, numel) == (elsewhere == index)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 4 * BLOCK), st.integers(0, 31))
def test_a_changed_bit_opens_nothing(at: int, bit: int) -> None:
    u = vector(4 * BLOCK + 1)
    (opening,) = open_blocks(u, [at // BLOCK])
    changed = opening.values.copy()
    changed.view(np.uint32)[at % BLOCK] ^= np.uint32(1 << bit)
    assert not is_opening_of(replace(opening, values=changed), vector_root(u), len(u))


def test_a_path_too_short_or_too_long_or_of_another_length_of_vector_opens_nothing() -> None:
    u = vector(5 * BLOCK)
    (opening,) = open_blocks(u, [2])
    root = vector_root(u)
    assert not is_opening_of(replace(opening, path=opening.path[:-1]), root, len(u))
    assert not is_opening_of(replace(opening, path=[*opening.path, root]), root, len(u))
    assert not is_opening_of(opening, root, 9 * BLOCK)
    assert not is_opening_of(opening, root, 2 * BLOCK + 7)
    assert not is_opening_of(replace(opening, values=opening.values[:-1]), root, len(u))


def test_an_inner_node_is_no_leaf() -> None:
    u = vector(2 * BLOCK)
    (opening,) = open_blocks(u, [0])
    inner = np.frombuffer(sha(b"\0" + u[:BLOCK].tobytes()) + bytes.fromhex(opening.path[0]), np.float32)
    assert not is_opening_of(replace(opening, values=inner, path=[]), vector_root(u), len(inner))


@pytest.mark.parametrize(
    ("rounds", "blocks"), [(1, 64), (32, 64), (64, 32), (512, 4), (1024, 4), (2048, 2), (4096, 1)]
)
def test_more_rounds_open_fewer_blocks_each(rounds: int, blocks: int) -> None:
    assert blocks_of_a_round(rounds) == blocks
    assert rounds * blocks <= MAX_OPENINGS


def test_few_blocks_are_all_opened() -> None:
    assert drawn_openings("00" * 32, 2, 2 * BLOCK + 1) == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    assert drawn_openings("00" * 32, 0, 10) == []


@given(st.binary(min_size=32, max_size=32), st.integers(1, 4096), st.integers(1, 10**9))
def test_the_same_challenge_draws_the_same_blocks_of_all_rounds_and_no_more_than_allowed(
    challenge: bytes, rounds: int, numel: int
) -> None:
    drawn = drawn_openings(challenge.hex(), rounds, numel)
    assert drawn == drawn_openings(challenge.hex(), rounds, numel) == sorted(set(drawn))
    blocks = {block for _, block in drawn}
    assert drawn == [(number, block) for number in range(1, rounds + 1) for block in sorted(blocks)]
    assert len(blocks) == min(-(-numel // BLOCK), blocks_of_a_round(rounds)) <= MAX_BLOCKS
    assert blocks <= set(range(-(-numel // BLOCK)))


def test_openings_are_drawn_as_documented() -> None:
    challenge = bytes(range(32))
    numbers: dict[int, None] = {}
    for counter in range(640):
        digest = sha(b"blocks" + challenge + counter.to_bytes(8, "big"))
        numbers[int.from_bytes(digest, "big") % 200] = None
    drawn = drawn_openings(challenge.hex(), 50, 200 * BLOCK - 1)
    assert {block for _, block in drawn} == set(list(numbers)[: 2048 // 50])
    assert len(drawn) == 50 * (2048 // 50)


def test_every_block_is_as_likely_as_any_other() -> None:
    numel, trials = 100 * BLOCK, 500
    counts = np.zeros(100)
    for trial in range(trials):
        for _, block in drawn_openings(f"{trial:064x}", 1, numel):
            counts[block] += 1
    expected, variance = trials * 0.64, trials * 0.64 * 0.36
    assert np.abs(counts - expected).max() < 5 * variance**0.5


def test_who_tries_ten_thousand_records_knows_no_more_of_what_the_site_draws() -> None:
    """Half of all blocks lack their noise, and none of the eight that the record's own hash draws shows it."""
    rounds, numel = 256, 1000 * BLOCK
    bare = set(range(0, 1000, 2))

    def is_missed(challenge: bytes) -> bool:
        return not bare & set(drawn_blocks(challenge.hex(), rounds, numel))

    tried = [is_missed(sha(f"record {number}".encode())) for number in range(10_000)]
    assert 1 <= sum(tried) < 120  # 39 expected: whoever chooses the record gets what they want in a dry run
    drawn = [is_missed(sha(f"drawn by the site {number}".encode())) for number in range(10_000)]
    assert sum(drawn) < 120  # whatever the record is: 1 try of 256, and there is one


@pytest.mark.parametrize("numel", [1, BLOCK - 1, BLOCK, BLOCK + 1])
def test_short_vectors_have_roots_too(numel: int) -> None:
    (opening,) = open_blocks(vector(numel), [0])
    assert is_opening_of(opening, vector_root(vector(numel)), numel)
