"""Poisson sampling: in every round each provider flips its own coin, independently of all others.

This is the sampler that the accountant assumes. The size of a sample is random, may be zero, and is never released:
sums over a sample are divided by its expected size, which is a constant.
"""

from collections.abc import Sequence
from typing import TypeVar

from starter_kit.dp.keystream import Keystream

T = TypeVar("T")


def poisson_sample(population: Sequence[T], rate: float, keystream: Keystream) -> list[T]:
    """The members of `population` whose coins, each heads with probability `rate`, came up heads.

    Raises:
        ValueError: `rate` is not in (0, 1].
    """
    if not 0 < rate <= 1:
        raise ValueError(f"a sampling rate lies in (0, 1], not {rate}")
    coins = keystream.uniforms(len(population)) <= rate
    return [member for member, heads in zip(population, coins, strict=True) if heads]
