"""The certificate of a run's vectors: which blocks of them are shown, and proof that they are those blocks.

A record commits to uₜ, the noised sum of every round, and to w₀ … w_T, the weights that the run starts from and those
after every round, each by the root of a Merkle tree over blocks of `BLOCK` coordinates. The challenge is a number that
the site draws at random when it has the record, once for each run token. So nobody knows which blocks are shown until
no root can change any more, and nobody can ask again with another record. What is shown is part of what the server
released anyway; `noise_tests` asks whether the noise is in it, `linkage_checks` whether it led to the weights.

Two kinds of blocks are shown. The common ones, up to `COMMON`, are the same in every uₜ: they follow the sums from
the first round to the checkpoint. The fresh ones, up to `FRESH` in a round, are drawn again for every round, half of
them from all blocks and half from tensors that are drawn first, so that small tensors are seen as well; they are shown
of uₜ and of the weights before and after it. A lie in a share s of all blocks is missed with a probability of
(1 − s)ⁿ where n blocks are shown: `missed` has the numbers.

In a dry run on one's own disk, the hash of the record's chain takes the challenge's place (Fiat and Shamir, 1986).
Whoever makes the record can then make another one until the blocks suit; against that there is the site's number.

A leaf is SHA-256(0x00 ‖ block), a block being little-endian float32; `merkle` has the tree.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from evaluator.records.merkle import LEAF_PREFIX, Tree, leads_to_root

# The coordinates of a block; the last block of a vector may be shorter.
BLOCK = 1024
# The most blocks of each kind in a round.
COMMON, FRESH = 64, 32
# A record has at most so many rounds: `COMMON` blocks of each and some fresh ones fit into an annex of 256 MiB.
MAX_ROUNDS = 512
# Vectors of which a fresh block is shown: the noised sum, and the weights before and after it.
SHOWN_OF_FRESH = 3
# So many zeros are hashed at once: whole blocks.
ZEROS_AT_ONCE = 1024 * BLOCK
# The most openings of an annex in all.
MAX_OPENINGS = MAX_ROUNDS * (COMMON + 2 * SHOWN_OF_FRESH)

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


def root_of_zeros(numel: int) -> str:
    """Return the root of a vector (numel,) of zeros."""
    return root_of_pieces(
        np.zeros(min(ZEROS_AT_ONCE, numel - start), np.float32) for start in range(0, numel, ZEROS_AT_ONCE)
    )


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


@dataclass(frozen=True)
class DrawnBlocks:
    """The blocks that a challenge asks for.

    Attributes:
        common: Those of every noised sum, in order.
        fresh: For each round, those of its noised sum and of the weights before and after it, in order.
    """

    common: Sequence[int]
    fresh: Sequence[Sequence[int]]

    @property
    def updates(self) -> list[tuple[int, int]]:
        """The (round, block) of all noised sums to be opened, in order."""
        return [
            (number, block)
            for number, blocks in enumerate(self.fresh, 1)
            for block in sorted({*self.common, *blocks})
        ]

    @property
    def weights(self) -> list[tuple[int, int]]:
        """The (round, block) of the weights after a round to be opened, in order; the first weights need no opening."""
        rounds = len(self.fresh)
        shown = {
            (after, block)
            for number, blocks in enumerate(self.fresh, 1)
            for block in blocks
            for after in (number - 1, number)
        }
        return sorted(place for place in shown if 0 < place[0] <= rounds)


def drawn_blocks(challenge: str, rounds: int, tensors: Sequence[int]) -> DrawnBlocks:
    """Return the blocks to be opened.

    Args:
        challenge: 32 bytes in hexadecimal.
        rounds: Number of rounds; they count from 1.
        tensors: The coordinates of each tensor, in the order of the vector.
    """
    seed, count = bytes.fromhex(challenge), block_count(sum(tensors))
    ends = list(accumulate(tensors))
    most = fresh_of_a_round(rounds)
    fresh = [_fresh(seed, number, most, count, ends) for number in range(1, rounds + 1)]
    return DrawnBlocks(_drawn(b"blocks" + seed, count, COMMON), fresh)


def fresh_of_a_round(rounds: int) -> int:
    """Return how many fresh blocks are opened in each round of a run of `rounds` rounds, if a vector has as many."""
    return min(FRESH, (MAX_OPENINGS // max(1, rounds) - COMMON) // SHOWN_OF_FRESH)


def _fresh(seed: bytes, number: int, most: int, count: int, ends: Sequence[int]) -> list[int]:
    """Return up to `most` blocks of one round, sorted; of as many as there are, all."""
    if count <= most:
        return list(range(count))
    drawn = set()
    for draw in range(most):
        digest = hashlib.sha256(
            b"fresh" + seed + number.to_bytes(8, "big") + draw.to_bytes(8, "big")
        ).digest()
        one, other = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:], "big")
        if draw % 2:
            tensor = one % len(ends)
            begin = ends[tensor - 1] if tensor else 0
            drawn.add(min((begin + other % max(1, ends[tensor] - begin)) // BLOCK, count - 1))
        else:
            drawn.add(one % count)
    return sorted(drawn)


def missed(share: float, numel: int, rounds: int, lying: int = 1) -> float:
    """Return at most how probable it is that no block is shown of a share of all, in which `lying` rounds lie.

    The common blocks count, which are drawn without replacement, and of the fresh ones those drawn from all blocks.
    """
    blocks, fresh = block_count(numel), fresh_of_a_round(rounds)
    hidden = math.ceil(share * blocks)
    shown = min(COMMON, blocks)
    if blocks <= fresh or shown > blocks - hidden:
        return 0.0
    common = math.prod((blocks - hidden - drawn) / (blocks - drawn) for drawn in range(shown))
    return float(common * (1 - hidden / blocks) ** (lying * ((fresh + 1) // 2)))


def would_have_passed(numel: int, rounds: int) -> str:
    """Return what an outcome says of the blocks that nobody saw."""
    probability = missed(0.01, numel, rounds)
    if not probability:
        return "every block is opened"
    return f"false values in 1% of one round's blocks would have passed with a probability of {100 * probability:.0f}%"


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
