"""Turns: which coordinates of a weight vector a round moves, where the parts of adapters are trained in turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evaluator.parametrizations.parametrization import Doubles, Parametrization


@dataclass(frozen=True)
class Turns:
    """The turns of a weight vector's tensors.

    Attributes:
        of_tensors: For each tensor, in the order of the vector, its turn, from 0; None for one that every round moves.
        numels: How many coordinates each tensor has.
        count: How many turns there are.
    """

    of_tensors: Sequence[int | None]
    numels: Sequence[int]
    count: int

    def trains(self, tensor: int, number: int) -> bool:
        """Return whether round `number`, from 1, moves a tensor, given by its place."""
        turn = self.of_tensors[tensor]
        return turn is None or turn == (number - 1) % self.count

    def moved(self, number: int, begin: int = 0, end: int | None = None) -> NDArray[np.bool_]:
        """Return which of the coordinates from `begin` to `end` round `number` moves."""
        numel = int(self._ends[-1])
        places = np.arange(begin, numel if end is None else min(end, numel))
        flags = np.array([self.trains(tensor, number) for tensor in range(len(self.numels))])
        return np.asarray(flags[np.searchsorted(self._ends, places, side="right")])

    def schedules(self, rounds: int) -> Doubles:
        """Return 1 for the rounds that move tensors of a turn and 0 for the others, for each turn (n, rounds)."""
        turns = np.arange(rounds) % max(1, self.count)
        kinds = dict.fromkeys(self.of_tensors)
        return np.array([np.ones(rounds) if turn is None else turns == turn for turn in kinds], np.float64)

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum(self.numels)


def turns_of(parametrization: Parametrization, names: Sequence[str], numels: Sequence[int]) -> Turns | None:
    """Return the turns of the tensors of a weight vector, by their names; None where every round moves all of them."""
    if not parametrization.turns:
        return None
    parts = [parametrization.part_of(name) for name in names]
    order = parametrization.turns
    return Turns([order.index(part.letter) if part else None for part in parts], numels, len(order))
