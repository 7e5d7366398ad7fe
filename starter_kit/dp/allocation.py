"""Random allocation: in which round of a cycle each provider takes part.

Guarantee: every member draws one round of a cycle uniformly, independently of all other members and cycles, and takes
part in that round only. The draws are made from the keystream when the cycle begins, and kept by the client until it
ends: they are private, and never leave the client.
"""

from collections.abc import MutableMapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.sampling import OncePerCycle
from starter_kit.dp.keystream import Keystream

T = TypeVar("T")

# The name under which a client keeps the place in the cycle (n,) that each of its members drew.
ALLOCATION = "allocation"


def allocated(
    law: OncePerCycle,
    population: Sequence[T],
    round_number: int,
    keystream: Keystream,
    state: MutableMapping[str, Tensor],
) -> list[T]:
    """Return the members of `population` that drew this round of its cycle, in the population's order.

    Args:
        round_number: The number of the round, from 1.
        state: The client's state from round to round. It is changed in the first round of a cycle; a round that begins
            again there draws again, since nothing of the first attempt was released.

    Raises:
        ProblemError: (`E_CLIENTS_LOST`) The state has no draws of these members, in the middle of a cycle.
    """
    _, place = law.place(round_number)
    if place == 0:
        state[ALLOCATION] = torch.from_numpy(_places(len(population), law.rounds, keystream))
    drawn = state.get(ALLOCATION)
    if drawn is None or len(drawn) != len(population):
        raise ProblemError.of(
            ErrorCode.CLIENTS_LOST,
            where=f"round {round_number}, the state of a client",
            expected="the rounds that its providers drew when the cycle began",
            found="none",
            next_step="Start the run again: a second draw within a cycle would cost privacy that isn't accounted.",
        )
    return [member for member, own in zip(population, drawn.tolist(), strict=True) if own == place]


def _places(count: int, rounds: int, keystream: Keystream) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return uniform places (count,) from 0 to `rounds` − 1."""
    # Uniforms are in (0, 1]; of 2⁵³ of them, each place gets as many as any other, but for one.
    return np.ceil(keystream.uniforms(count) * rounds).astype(np.int64) - 1
