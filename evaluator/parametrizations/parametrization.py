"""What a parametrization is: the parts of an adapter, their first values, and the change that they make of a weight.

A linear layer with weight W (out, in) becomes W + scale·U·D, with D (rank, in) and U (out, rank) computed from small
matrices, the parts. Those that are trained make up the weight vector of a run, and leave a client. The others keep
their first values, which anybody can compute: from the run token or the seed, from the name of the tensor, and from the
base weights. So nobody chooses first values, which could otherwise be taken from private data. Machines may compute
them differently only by float32 rounding.

Starter kit and evaluator compute with the same functions: the kit in float32 while it trains, and both in float64 on
the CPU where parts are merged into a weight.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Side = Literal["rank", "out", "in"]
# Of a matrix: rows and columns.
Shape = tuple[int, int]


@dataclass(frozen=True)
class NewAdapter:
    """An adapter before the first round.

    Attributes:
        layer: The name of its layer, whose weight is `<layer>.weight`.
        start: What first values follow from: the run token, or `seed N` where nothing is private.
        rank: Its rank.
        shape: The shape of the weight (out, in).
        weight: Returns the base weight.
    """

    layer: str
    start: str
    rank: int
    shape: Shape
    weight: Callable[[], Floats]


@dataclass(frozen=True)
class NewPart:
    """A matrix of an adapter before the first round, by its name and its shape."""

    adapter: NewAdapter
    name: str
    shape: Shape


@dataclass(frozen=True)
class Part:
    """A matrix of an adapter.

    Attributes:
        letter: What distinguishes it in its name, `<layer>.lora_<letter>.weight`.
        sides: What its rows and its columns are.
        first_values: Returns its values before the first round.
        is_trained: Whether it is trained and sent; else it keeps its first values.
    """

    letter: str
    sides: tuple[Side, Side]
    first_values: Callable[[NewPart], Floats]
    is_trained: bool = True

    @property
    def suffix(self) -> str:
        """The end of its name."""
        return f".lora_{self.letter}.weight"

    def shape(self, rank: int, weight: tuple[int, ...]) -> Shape:
        """Return its shape in an adapter of a weight of the given shape (out, in)."""
        lengths = {"rank": rank, "out": weight[0], "in": weight[1]}
        return lengths[self.sides[0]], lengths[self.sides[1]]


@dataclass(frozen=True)
class Parametrization:
    """What is trained in place of a weight.

    Attributes:
        name: In settings, records and transcripts.
        parts: The matrices of an adapter.
        factors: Returns (D, U) from the parts by their letters: arrays, or tensors, which may be stacked.
        scale: Returns the factor on U·D for the settings alpha and rank.
        turns: The letters of the parts that rounds 1, 2, … train, in turn; empty where every round trains all parts.
        peft: What PEFT's settings of an adapter say besides.
    """

    name: str
    parts: tuple[Part, ...]
    factors: Callable[[Mapping[str, Any]], tuple[Any, Any]]
    scale: Callable[[float, int], float]
    turns: tuple[str, ...] = ()
    peft: Mapping[str, object] = field(default_factory=dict)

    @property
    def trained(self) -> list[Part]:
        """The parts that are trained."""
        return [part for part in self.parts if part.is_trained]

    def layers(self, names: Iterable[str]) -> list[str]:
        """Return the layers of which all trained parts are among the `names` of tensors, in the order of the first."""
        known, (first, *others) = dict.fromkeys(names), self.trained
        layers = [name.removesuffix(first.suffix) for name in known if name.endswith(first.suffix)]
        return [layer for layer in layers if all(layer + part.suffix in known for part in others)]

    def part_of(self, name: str) -> Part | None:
        """Return the part that a tensor is, by its name; None for a tensor of the model."""
        return next((part for part in self.parts if name.endswith(part.suffix)), None)

    def first_values(self, adapter: NewAdapter) -> dict[str, Floats]:
        """Return the values of all parts before the first round, by their letters."""
        return {
            part.letter: part.first_values(
                NewPart(adapter, adapter.layer + part.suffix, part.shape(adapter.rank, adapter.shape))
            )
            for part in self.parts
        }


def added(scale: float, down: Doubles, up: Doubles) -> Doubles:
    """Return what an adapter adds to a weight: scale·U·D (out, in), or rows of it for rows of U."""
    product: Doubles = scale * (up @ down)
    return product


def doubles(parts: Mapping[str, NDArray[np.floating]]) -> dict[str, Doubles]:
    """Return the parts in float64, in which they are merged."""
    return {letter: values.astype(np.float64) for letter, values in parts.items()}
