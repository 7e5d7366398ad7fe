"""Sampling of a round's clients and providers, by the distributions that the accountants assume.

All draws use the operating system's entropy.

The size of a Poisson sample is random, may be zero, and is never released: sums over a sample are divided by its
expected size, which is a constant.
"""

from collections.abc import MutableMapping, Sequence
from typing import TypeVar

import numpy as np
from torch import Tensor

from evaluator.mechanisms.sampling import Binomial, Exactly, Law, OncePerCycle
from starter_kit.dp.allocation import allocated
from starter_kit.dp.keystream import Keystream

T = TypeVar("T")


def draw(
    law: Law,
    population: Sequence[T],
    keystream: Keystream,
    *,
    round_number: int = 1,
    state: MutableMapping[str, Tensor] | None = None,
) -> list[T]:
    """Return the members of `population` that take part in a round, drawn by `law`, in the population's order.

    Args:
        round_number: The number of the round, from 1.
        state: What the client keeps from round to round; needed by the law of random allocation alone.

    Raises:
        ValueError: The law requires more members than there are, has a rate outside (0, 1], or needs a state.
        ProblemError: (`E_CLIENTS_LOST`) The state lacks what an earlier round drew.
    """
    match law:
        case Exactly(count):
            return fixed_size_sample(population, count, keystream)
        case Binomial(rate=rate):
            return poisson_sample(population, rate, keystream)
        case OncePerCycle():
            if state is None:
                raise ValueError("random allocation needs the client's state")
            return allocated(law, population, round_number, keystream, state)


def poisson_sample(population: Sequence[T], rate: float, keystream: Keystream) -> list[T]:
    """Return the members of `population` whose independent coins, each heads with probability `rate`, came up heads.

    Raises:
        ValueError: `rate` is not in (0, 1].
    """
    if not 0 < rate <= 1:
        raise ValueError(f"a sampling rate lies in (0, 1], not {rate}")
    coins = keystream.uniforms(len(population)) <= rate
    return [member for member, heads in zip(population, coins, strict=True) if heads]


def fixed_size_sample(population: Sequence[T], size: int, keystream: Keystream) -> list[T]:
    """Return `size` different members of `population`, in the population's order.

    Each choice of that size is as likely as any other.

    Raises:
        ValueError: The population has fewer than `size` members.
    """
    if not 0 <= size <= len(population):
        raise ValueError(f"{size} of {len(population)} can't be drawn")
    chosen = np.argsort(keystream.uniforms(len(population)), kind="stable")[:size]
    return [population[index] for index in sorted(chosen)]
