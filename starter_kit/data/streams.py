"""Reproducible random streams for data. Never used for privacy noise, which takes the system's entropy."""

import random


def stream(seed: int, *name: object) -> random.Random:
    """A random stream of its own for `name`, so that one part's draws never move another's."""
    return random.Random("/".join(map(str, (seed, *name))))  # noqa: S311 - data, not a secret
