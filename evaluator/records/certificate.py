"""The certificate of a run's vectors: which blocks of them are shown, and proof that they are those blocks.

A record commits to uₜ, the noised sum of every round, and to w₀ … w_T, the weights that the run starts from and those
after every round, each by the root of a Merkle tree over blocks of `BLOCK` coordinates. The challenge is a number that
the site draws at random when it has the record, once for each run token. So nobody knows which blocks are shown until
no root can change any more, and nobody can ask again with another record. They are the same blocks of every uₜ and wₜ.
What is shown is part of what the server released anyway; `noise_tests` asks whether the noise is in it,
`linkage_checks` whether it led to the weights.

In a dry run on one's own disk, the hash of the record's chain takes the challenge's place (Fiat and Shamir, 1986).
Whoever makes the record can then make another one until the blocks suit; against that there is the site's number.

A leaf is SHA-256(0x00 ‖ block), a block being little-endian float32; `merkle` has the tree.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.records.merkle import LEAF_PREFIX, Tree, leads_to_root

# The coordinates of a block; the last block of a vector may be shorter.
BLOCK = 1024
# How many blocks are opened of each vector: about `OPENINGS` in all rounds together, at most `MAX_BLOCKS` in a round,
# and at least `FEWEST_BLOCKS` in a round unless that would be more than `MAX_OPENINGS` in all.
OPENINGS = 2048
MAX_BLOCKS = 64
FEWEST_BLOCKS = 4
MAX_OPENINGS = 4096
# In every round at least one block is opened.
MAX_ROUNDS = MAX_OPENINGS

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Opening:
    """A block that is shown.

    Attributes:
        block: Its index, from 0.
        values: Its coordinates, float32 (at most `BLOCK`,).
        path: Hashes of the nodes beside those on the way from the leaf to the root, in hexadecimal.
    """

    block: int
    values: Floats
    path: list[str]


def vector_root(vector: Floats) -> str:
    """Return the root over all blocks of `vector`, float32 (d,) with d of at least 1, in hexadecimal."""
    return root_of_pieces([vector])


def root_of_pieces(pieces: Iterable[Floats]) -> str:
    """Return the root of a vector that comes in pieces, each of whole blocks but for the last one."""
    return Tree([leaf for piece in pieces for leaf in _leaves(piece)]).root


def open_blocks(vector: Floats, indexes: Sequence[int]) -> list[Opening]:
    """Return the blocks of `vector`, float32 (d,), at `indexes`, each with its path to `vector_root(vector)`."""
    tree = Tree(_leaves(vector))
    return [
        Opening(index, vector[index * BLOCK : (index + 1) * BLOCK], tree.path(index)) for index in indexes
    ]


def is_opening_of(opening: Opening, root: str, numel: int) -> bool:
    """Return whether `opening` shows a whole block of a vector (numel,) with this root."""
    count, index = block_count(numel), opening.block
    if not 0 <= index < count or len(opening.values) != min(BLOCK, numel - index * BLOCK):
        return False
    return leads_to_root(_leaf(opening.values), index, opening.path, root=root, count=count)


def block_count(numel: int) -> int:
    """Return the number of blocks of a vector (numel,)."""
    return -(-numel // BLOCK)


def drawn_openings(challenge: str, rounds: int, numel: int) -> list[tuple[int, int]]:
    """Return the (round, block) pairs to be opened, in order: the same blocks in every round, without replacement.

    Args:
        challenge: 32 bytes in hexadecimal.
        rounds: Number of rounds; they count from 1.
        numel: d, the length of each vector.
    """
    blocks = drawn_blocks(challenge, rounds, numel)
    return [(number, block) for number in range(1, rounds + 1) for block in blocks]


def drawn_blocks(challenge: str, rounds: int, numel: int) -> list[int]:
    """Return the blocks to be opened in every round, in order: see `drawn_openings`."""
    seed = b"blocks" + bytes.fromhex(challenge)
    return _drawn(seed, block_count(numel), blocks_of_a_round(rounds))


def blocks_of_a_round(rounds: int) -> int:
    """Return how many blocks are opened in each round of a run of `rounds` rounds, if a vector has as many."""
    if not rounds:
        return MAX_BLOCKS
    few = min(FEWEST_BLOCKS, MAX_OPENINGS // rounds)
    return max(1, few, min(MAX_BLOCKS, OPENINGS // rounds))


def _drawn(seed: bytes, population: int, most: int) -> list[int]:
    """Return up to `most` different numbers below `population`, sorted, each from a hash of the seed and a counter."""
    if population <= most:
        return list(range(population))
    drawn: set[int] = set()
    counter = 0
    while len(drawn) < most:
        digest = hashlib.sha256(seed + counter.to_bytes(8, "big")).digest()
        drawn.add(int.from_bytes(digest, "big") % population)
        counter += 1
    return sorted(drawn)


def _leaves(vector: Floats) -> list[bytes]:
    # As a plain array, since slicing a map of a file is slow.
    values = np.asarray(vector)
    return [_leaf(values[begin : begin + BLOCK]) for begin in range(0, len(values), BLOCK)]


def _leaf(values: Floats) -> bytes:
    return hashlib.sha256(LEAF_PREFIX + values.astype("<f4").tobytes()).digest()
