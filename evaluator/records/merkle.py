"""Merkle trees over hashes: a root commits to all leaves, and a path shows that one leaf is among them.

A node is SHA-256(0x01 ‖ left ‖ right), and a last node without a partner moves up as it is (the tree of RFC 6962). A
leaf is a hash that its user makes, of something that begins with 0x00, so that no leaf is a node as well.
"""

import hashlib
from collections.abc import Iterator, Sequence

LEAF_PREFIX = b"\0"


class Tree:
    """The tree over `leaves`, 32 bytes each; there is at least one."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self._levels = [list(leaves)]
        while len(nodes := self._levels[-1]) > 1:
            pairs = zip(nodes[::2], nodes[1::2], strict=False)
            above = [_node(left, right) for left, right in pairs]
            self._levels.append(above + (nodes[-1:] if len(nodes) % 2 else []))

    @property
    def root(self) -> str:
        """The root, in hexadecimal."""
        return self._levels[-1][0].hex()

    def path(self, index: int) -> list[str]:
        """Return the nodes beside those on the way from the leaf at `index` to the root, in hexadecimal."""
        return list(self._beside(index))

    def _beside(self, index: int) -> Iterator[str]:
        for level in self._levels[:-1]:
            if index ^ 1 < len(level):
                yield level[index ^ 1].hex()
            index //= 2


def leads_to_root(leaf: bytes, index: int, path: Sequence[str], *, root: str, count: int) -> bool:
    """Return whether `path` leads from the leaf at `index` of a tree over `count` leaves to `root`."""
    if not 0 <= index < count:
        return False
    node, nodes = leaf, iter(path)
    while count > 1:
        if index ^ 1 < count:
            beside = bytes.fromhex(next(nodes, ""))
            node = _node(beside, node) if index % 2 else _node(node, beside)
        index, count = index // 2, (count + 1) // 2
    return node.hex() == root and next(nodes, None) is None


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()
