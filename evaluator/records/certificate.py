"""The certificate of a run's vectors: which blocks of them are shown, and proof that they are those blocks.

A record commits to uₜ, the noised sum of every round, and to w₀ … w_T, the weights that the run starts from and those
after every round, each by the root of a Merkle tree over blocks of `BLOCK` coordinates. The challenge is a number that
the site draws at random when it has the record, once for each run token. So nobody knows which blocks are shown until
no root can change any more, and nobody can ask again with another record. They are the same blocks of every uₜ and wₜ.
What is shown is part of what the server released anyway; `noise_tests` asks whether the noise is in it,
`linkage_checks` whether it led to the weights.

In a dry run on one's own disk, the hash of the record's chain takes the challenge's place (Fiat and Shamir, 1986).
Whoever makes the record can then make another one until the blocks suit; against that there is the site's number.

A leaf is SHA-256(0x00 ‖ block), a block being little-endian float32; a node is SHA-256(0x01 ‖ left ‖ right), and a
last node without a partner moves up as it is (the tree of RFC 6962).
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    *_, top = _levels([leaf for piece in pieces for leaf in _leaves(piece)])
    return top[0].hex()


def open_blocks(vector: Floats, indexes: Sequence[int]) -> list[Opening]:
    """Return the blocks of `vector`, float32 (d,), at `indexes`, each with its path to `vector_root(vector)`."""
    levels = list(_levels(_leaves(vector)))
    return [
        Opening(index, vector[index * BLOCK : (index + 1) * BLOCK], list(_path(levels, index)))
        for index in indexes
    ]


def is_opening_of(opening: Opening, root: str, numel: int) -> bool:
    """Return whether `opening` shows a whole block of a vector (numel,) with this root."""
    count = block_count(numel)
    index, path = opening.block, iter(opening.path)
    if not 0 <= index < count or len(opening.values) != min(BLOCK, numel - index * BLOCK):
        return False
    node = _leaf(opening.values)
    while count > 1:
        if index ^ 1 < count:
            beside = bytes.fromhex(next(path, ""))
            node = _node(beside, node) if index % 2 else _node(node, beside)
        index, count = index // 2, (count + 1) // 2
    return node.hex() == root and next(path, None) is None


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


def _levels(nodes: list[bytes]) -> Iterator[list[bytes]]:
    """Yield the tree from its leaves to its root."""
    yield nodes
    while len(nodes) > 1:
        pairs = zip(nodes[::2], nodes[1::2], strict=False)
        nodes = [_node(left, right) for left, right in pairs] + (nodes[-1:] if len(nodes) % 2 else [])
        yield nodes


def _path(levels: Sequence[list[bytes]], index: int) -> Iterator[str]:
    for level in levels[:-1]:
        if index ^ 1 < len(level):
            yield level[index ^ 1].hex()
        index //= 2


def _leaf(values: Floats) -> bytes:
    return hashlib.sha256(b"\0" + values.astype("<f4").tobytes()).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()
