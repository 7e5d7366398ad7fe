"""Commitments to noised sums, and which of their blocks are shown."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.records.certificate import (
    BLOCK,
    COMMON,
    FRESH,
    MAX_OPENINGS,
    MAX_ROUNDS,
    SHOWN_OF_FRESH,
    Floats,
    drawn_blocks,
    fresh_of_a_round,
    is_opening_of,
    missed,
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


@pytest.mark.parametrize(("rounds", "fresh"), [(1, 32), (200, 32), (300, 18), (MAX_ROUNDS, 2)])
def test_more_rounds_open_fewer_fresh_blocks_each_and_never_fewer_common_ones(
    rounds: int, fresh: int
) -> None:
    assert fresh_of_a_round(rounds) == fresh
    assert rounds * (COMMON + SHOWN_OF_FRESH * fresh) <= MAX_OPENINGS


def test_few_blocks_are_all_opened() -> None:
    drawn = drawn_blocks("00" * 32, 2, [2 * BLOCK + 1])
    assert drawn.updates == drawn.weights == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    assert drawn_blocks("00" * 32, 0, [10]).updates == []


@given(st.binary(min_size=32, max_size=32), st.integers(1, MAX_ROUNDS), st.integers(1, 10**9))
def test_the_same_challenge_draws_the_same_blocks_and_no_more_than_allowed(
    challenge: bytes, rounds: int, numel: int
) -> None:
    tensors = [numel - numel // 3, numel // 3]
    drawn, blocks = drawn_blocks(challenge.hex(), rounds, tensors), -(-numel // BLOCK)
    assert drawn == drawn_blocks(challenge.hex(), rounds, tensors)
    assert len(drawn.common) == min(blocks, COMMON)
    assert len(drawn.fresh) == rounds
    updates, weights = set(drawn.updates), set(drawn.weights)
    for number, fresh in enumerate(drawn.fresh, 1):
        assert all(0 <= block < blocks for block in fresh)
        assert len(fresh) <= FRESH
        assert {(number, block) for block in (*drawn.common, *fresh)} <= updates
        assert {(number, block) for block in fresh} <= weights
    assert len(drawn.updates) + len(drawn.weights) <= MAX_OPENINGS


def test_openings_are_drawn_as_documented() -> None:
    challenge = bytes(range(32))
    numbers: dict[int, None] = {}
    for counter in range(640):
        digest = sha(b"blocks" + challenge + counter.to_bytes(8, "big"))
        numbers[int.from_bytes(digest, "big") % 200] = None
    drawn = drawn_blocks(challenge.hex(), 50, [150 * BLOCK, 50 * BLOCK - 1])
    assert set(drawn.common) == set(list(numbers)[:COMMON])
    fresh = set()
    for draw in range(FRESH):
        digest = sha(b"fresh" + challenge + (7).to_bytes(8, "big") + draw.to_bytes(8, "big"))
        one, other = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:], "big")
        in_tensor = (other % (150 * BLOCK), 150 * BLOCK + other % (50 * BLOCK - 1))[one % 2] // BLOCK
        fresh.add(in_tensor if draw % 2 else one % 200)
    assert set(drawn.fresh[6]) == fresh


def test_a_tensor_of_one_block_is_seen_in_nearly_every_run_of_sixteen_rounds() -> None:
    """Layer norms hold much of what a model can, and are one block of hundreds of thousands."""
    tensors = [200_000 * BLOCK, BLOCK, 20_000 * BLOCK]
    seen = [
        any(200_000 in fresh for fresh in drawn_blocks(f"{trial:064x}", 16, tensors).fresh)
        for trial in range(100)
    ]
    assert sum(seen) == 100  # one of 3 tensors, in 16 × 16 draws


def test_what_is_missed_is_as_probable_as_stated() -> None:
    """4 of 382 blocks lie, in one round of 16 and in all."""
    lying, trials = {0, 100, 200, 381}, 4000
    one = every = 0
    for trial in range(trials):
        drawn = drawn_blocks(sha(f"trial {trial}".encode()).hex(), 16, [382 * BLOCK])
        if lying.isdisjoint(drawn.common):
            one += lying.isdisjoint(drawn.fresh[15])
            every += all(map(lying.isdisjoint, drawn.fresh))
    # All draws are from all blocks where there is one tensor, so that more is seen than stated.
    assert 0 < one / trials < missed(0.01, 382 * BLOCK, 16) < 0.45
    assert every / trials < missed(0.01, 382 * BLOCK, 16, lying=16) + 0.01 < 0.05


def test_a_lie_in_a_twentieth_of_the_blocks_is_hardly_ever_missed() -> None:
    assert max(missed(0.05, blocks * BLOCK, MAX_ROUNDS) for blocks in range(1, 3000)) < 0.04


def test_every_block_is_as_likely_as_any_other() -> None:
    numel, trials = 100 * BLOCK, 500
    counts = np.zeros(100)
    for trial in range(trials):
        counts[drawn_blocks(f"{trial:064x}", 1, [numel]).common] += 1
    expected, variance = trials * 0.64, trials * 0.64 * 0.36
    assert np.abs(counts - expected).max() < 5 * variance**0.5


def test_who_tries_ten_thousand_records_knows_no_more_of_what_the_site_draws() -> None:
    """A sixteenth of all blocks lacks its noise in one round, and none that the record's own hash draws shows it."""
    bare = set(range(0, 1000, 16))

    def is_missed(challenge: bytes) -> bool:
        drawn = drawn_blocks(challenge.hex(), MAX_ROUNDS, [1000 * BLOCK])
        return bare.isdisjoint(drawn.common) and bare.isdisjoint(drawn.fresh[0])

    tried = [is_missed(sha(f"record {number}".encode())) for number in range(500)]
    assert 1 <= sum(tried) < 30  # 7 expected: whoever chooses the record gets what they want in a dry run
    drawn = [is_missed(sha(f"drawn by the site {number}".encode())) for number in range(500)]
    assert sum(drawn) < 30  # whatever the record is: 1 try of 70, and there is one


@pytest.mark.parametrize("numel", [1, BLOCK - 1, BLOCK, BLOCK + 1])
def test_short_vectors_have_roots_too(numel: int) -> None:
    (opening,) = open_blocks(vector(numel), [0])
    assert is_opening_of(opening, vector_root(vector(numel)), numel)
