"""Reproducible randomness: streams that follow from a seed and a name.

Generated data, batch orders, dropout, the initial values of adapters and, where nothing is private, the choice of
clients come from here, so that the same settings give the same run on the same CPU, whichever engine runs it and
however often it was interrupted. What privacy depends on, sampling and noise, never does: see
`starter_kit.dp.keystream`.
"""

import hashlib
import random
from dataclasses import dataclass

# Smaller seeds can be guessed.
SECRET_SEED = 2**64


@dataclass(frozen=True)
class Stream:
    """A node in the tree of a run's random streams. Two streams of different names are independent."""

    seed: int
    names: tuple[str | int, ...] = ()

    def at(self, *names: str | int) -> "Stream":
        """Return the stream of this name below this one. No two sequences of names give the same stream."""
        return Stream(self.seed, (*self.names, *names))

    @property
    def number(self) -> int:
        """The seed of a generator, 63 bits."""
        text = "\x1f".join(repr(part) for part in (self.seed, *self.names))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1

    def random(self) -> random.Random:
        """Return a fresh generator at the stream's beginning."""
        return random.Random(self.number)  # noqa: S311  (nothing secret comes from it)


def data_stream(seed: int, *name: object) -> random.Random:
    """Return a separate generator for the part of a data set called `name`, so that no part shifts another's draws.

    A generator's numbers give away what it was made from. From `SECRET_SEED` on, that is a hash, so that published
    parts of a data set don't give away its seed, and with it the other parts.
    """
    text = "/".join(map(str, (seed, *name)))
    start = text if abs(seed) < SECRET_SEED else hashlib.sha256(text.encode()).digest()
    return random.Random(start)  # noqa: S311  (of a secret seed, see above)
