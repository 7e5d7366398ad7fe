"""The certificate of a round's noise: which parts of the noised sums are shown, and proof that they are those parts.

In every round the record commits to uₜ, the sum over clients with its noise, by the root of a Merkle tree over blocks
of `BLOCK` coordinates. The challenge is the hash of the record's chain after the last round. So which blocks of which
rounds are shown follows from all the roots, and is known only when no root can change any more (Fiat and Shamir,
1986). What is shown is part of what the server released anyway; `noise_tests` asks whether the noise is in it.

A leaf is SHA-256(0x00 ‖ block), a block being little-endian float32; a node is SHA-256(0x01 ‖ left ‖ right), and a
last node without a partner moves up as it is (the tree of RFC 6962).
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The coordinates of a block; the last block of a vector may be shorter.
BLOCK = 1024
MAX_ROUNDS = 32
# The most blocks that are opened of each drawn round; they are the same in all of them.
MAX_BLOCKS = 64
MAX_OPENINGS = MAX_ROUNDS * MAX_BLOCKS

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


def update_root(u: Floats) -> str:
    """Return the root over all blocks of `u`, float32 (d,) with d of at least 1, in hexadecimal."""
    *_, top = _levels(_leaves(u))
    return top[0].hex()


def open_blocks(u: Floats, indexes: Sequence[int]) -> list[Opening]:
    """Return the blocks of `u`, float32 (d,), at `indexes`, each with its path to `update_root(u)`."""
    levels = list(_levels(_leaves(u)))
    return [
        Opening(index, u[index * BLOCK : (index + 1) * BLOCK], list(_path(levels, index)))
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
    """Return the (round, block) pairs to be opened, in order: the same blocks in each drawn round, without replacement.

    Args:
        challenge: Hash of the record's chain after the last round, in hexadecimal.
        rounds: Number of rounds; they count from 1.
        numel: d, the length of each noised sum.
    """
    seed = bytes.fromhex(challenge)
    blocks = _drawn(b"blocks" + seed, block_count(numel), MAX_BLOCKS)
    return [(index + 1, block) for index in _drawn(b"rounds" + seed, rounds, MAX_ROUNDS) for block in blocks]


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


def _leaves(u: Floats) -> list[bytes]:
    return [_leaf(u[begin : begin + BLOCK]) for begin in range(0, len(u), BLOCK)]


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
