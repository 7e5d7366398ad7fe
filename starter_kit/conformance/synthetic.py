"""Synthetic clients, providers and a model, on which each provider's update is recognizable.

The loss is linear in the weights, and the gradient of a privacy unit is zero outside of a few coordinates of its own,
which are spread over all tensors. Sizes, names, dimension, tensors, coordinates and gradients are drawn for each
examination. One tensor is tied: the model uses it in two places.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Parameter

from evaluator.mechanisms.units import PrivacyUnit
from starter_kit.federation.rounds import Client
from starter_kit.learning.local_training import Learner, LocalTraining, State, Trained
from starter_kit.learning.plugins import Hook
from starter_kit.learning.tensors import TrainableTensors
from starter_kit.randomness import Stream

LETTERS = "abcdefghijklmnopqrstuvwxyz"
# How many examples a synthetic provider has at most.
LARGEST_PROVIDER = 200
# How many numbers of gradients are kept.
KEPT = 1 << 24


@dataclass(frozen=True)
class Federation:
    """Synthetic data.

    Attributes:
        clients: The clients, with their providers' examples.
        unit_of: The privacy unit (n,) of each example, by number.
        coordinates: The coordinates (m,) in which each unit's gradient isn't zero.
        gradients: The gradient (units, m) of each unit's loss in these; zero where it has no signal.
        size: d, the number of weights.
        shapes: The name and shape of each tensor. The first is tied.
    """

    clients: list[Client]
    unit_of: NDArray[np.int64]
    coordinates: NDArray[np.int64]
    gradients: Tensor = field(repr=False)
    size: int
    shapes: Mapping[str, tuple[int, ...]]

    @property
    def units(self) -> int:
        """The number of privacy units."""
        return len(self.coordinates)

    @property
    def background(self) -> NDArray[np.int64]:
        """The coordinates of no unit."""
        return np.setdiff1d(np.arange(self.size), self.coordinates)

    def scaled(self, factors: Tensor) -> "Federation":
        """Return the data with each unit's gradient times its factor (units,)."""
        return replace(self, gradients=self.gradients * factors[:, None])

    def without(self, units: set[int]) -> "Federation":
        """Return the neighboring data without the examples of some units; a provider without examples is removed."""
        clients = []
        for client in self.clients:
            kept = {
                name: [example for example in examples if int(self.unit_of[example]) not in units]
                for name, examples in client.providers.items()
            }
            clients.append(Client(client.id, {name: examples for name, examples in kept.items() if examples}))
        return replace(self, clients=clients)

    def of_lengths(self, lengths: Tensor, order: int) -> "Federation":
        """Return the data in which each unit's gradient has the norm of this order that `lengths` (units,) has."""
        norms = torch.linalg.vector_norm(self.gradients, ord=order, dim=1)
        return self.scaled((lengths / norms).to(self.gradients.dtype))

    def aligned(self) -> "Federation":
        """Return the data in which all units have the gradient of the first one."""
        first = slice(0, 1)
        return replace(
            self,
            coordinates=np.repeat(self.coordinates[first], self.units, axis=0),
            gradients=self.gradients[first].repeat(self.units, 1),
        )

    @property
    def pattern(self) -> NDArray[np.float64]:
        """The direction (d,) of the first unit's gradient, a unit vector."""
        vector = np.zeros(self.size)
        vector[self.coordinates[0]] = self.gradients[0].double().numpy()
        unit: NDArray[np.float64] = vector / np.linalg.norm(vector)
        return unit

    def learner(self, *, quick: bool = False) -> "SyntheticLearner":
        """Return the model with the examples; a quick one takes one step of gradient descent in place of training."""
        parameters = {name: Parameter(torch.zeros(shape)) for name, shape in self.shapes.items()}
        return (_QuickLearner if quick else SyntheticLearner)(self, TrainableTensors(parameters))


def make_federation(
    draw: random.Random,
    unit: PrivacyUnit,
    *,
    clients: int,
    units: int,
    coordinates: int,
    background: int,
) -> Federation:
    """Return synthetic data with about this number of `units`, with `coordinates` each, and the `background`."""
    sizes = _sizes(draw, unit, clients, units)
    members: list[Client] = []
    unit_of: list[int] = []
    names = _names(draw, sum(map(len, sizes)) + 8)
    ids = sorted(draw.sample(range(97), len(sizes)))
    for client, providers in zip(ids, sizes, strict=True):
        shares: dict[str, list[int]] = {}
        for owned in providers:
            shares[names.pop()] = list(range(len(unit_of), len(unit_of) + len(owned)))
            unit_of += owned
        members.append(Client(client, shares))
    count = max(unit_of) + 1
    size = count * coordinates + background
    generator = torch.Generator().manual_seed(draw.getrandbits(60))
    # Of similar size in each coordinate, so that every optimizer moves all of them.
    directions = (1 + torch.rand(count, coordinates, generator=generator)) * torch.randn(
        count, coordinates, generator=generator
    ).sign()
    places = torch.randperm(size, generator=generator)[: count * coordinates].reshape(count, coordinates)
    return Federation(
        clients=members,
        unit_of=np.array(unit_of),
        coordinates=places.numpy(),
        gradients=directions,
        size=size,
        shapes=_shapes(draw, size, names),
    )


class _LinearLoss:
    """The mean over examples of ⟨gradient, weights⟩, times `signal`."""

    def __init__(self, federation: Federation, tensors: TrainableTensors) -> None:
        self.signal = 1.0
        self._size = federation.size
        self._unit_of = torch.from_numpy(federation.unit_of)
        self._coordinates = torch.from_numpy(federation.coordinates)
        self._gradients = federation.gradients
        # A provider's examples are the same in every round.
        self._of_signal_1 = lru_cache(maxsize=KEPT // federation.size)(self._mean)
        self._tensors = tensors
        # How the gradient of the tied tensor is divided between the two places in which it is used.
        self._share = 0.3

    def __call__(self, examples: Sequence[int]) -> Tensor:
        tied, *others = [parameter.view(-1) for parameter in self._tensors.parameters.values()]
        gradient = self.gradient(examples)
        of_tied = gradient[: len(tied)]
        slopes = torch.cat([of_tied * self._share, of_tied * (1 - self._share), gradient[len(tied) :]])
        return torch.dot(torch.cat([tied, tied, *others]), slopes)

    def gradient(self, examples: Sequence[int]) -> Tensor:
        """Return the gradient (d,) of the mean loss."""
        return self._of_signal_1(tuple(examples)) * self.signal

    def _mean(self, examples: tuple[int, ...]) -> Tensor:
        units = self._unit_of[list(examples)]
        each = self._gradients[units] / len(examples)
        return torch.zeros(self._size).index_add_(0, self._coordinates[units].flatten(), each.flatten())


class SyntheticLearner(Learner):
    """A model with the examples of a federation."""

    def __init__(self, federation: Federation, tensors: TrainableTensors) -> None:
        self.losses = _LinearLoss(federation, tensors)
        super().__init__(tensors, self.losses)


class _QuickLearner(SyntheticLearner):
    """Training by one step of gradient descent with rate 1, without an optimizer: for many rounds of sampling."""

    def train(
        self,
        weights: Tensor,
        examples: Sequence[int],
        local: LocalTraining,
        stream: Stream,
        state: State | None = None,
        hook: Hook | None = None,
    ) -> Trained:
        if not examples:
            return Trained(torch.zeros_like(weights), None)
        return Trained(-self.losses.gradient(examples), 0.0)


def _sizes(draw: random.Random, unit: PrivacyUnit, clients: int, units: int) -> list[list[list[int]]]:
    """Return for each client and each of its providers the units of its examples."""
    match unit:
        case PrivacyUnit.CLIENT:
            return [[[one] * draw.randint(1, 3) for _ in range(draw.randint(1, 3))] for one in range(units)]
        case PrivacyUnit.RECORD:
            # Equally many at each client, since an event states the noise of the smallest one.
            numbers = iter(range(units))
            each = max(2, units // clients)
            return [[[next(numbers)] for _ in range(each)] for _ in range(units // each)]
    numbers = iter(range(units))
    shares = _shares(draw, units, clients)
    return [[[next(numbers)] * _provider_size(draw) for _ in range(share)] for share in shares]


def _provider_size(draw: random.Random) -> int:
    """Return a number of examples, log-uniform from 1 to `LARGEST_PROVIDER`: as unequal as real providers are."""
    return min(LARGEST_PROVIDER, int((LARGEST_PROVIDER + 1) ** draw.random()))


def _shares(draw: random.Random, total: int, parts: int) -> list[int]:
    """Return how `total` is divided into different parts of at least half of the average."""
    least = math.ceil(total / parts / 2)
    shares = [least] * parts
    for _ in range(total - least * parts):
        shares[draw.randrange(parts)] += 1
    return shares


def _names(draw: random.Random, count: int) -> list[str]:
    names: set[str] = set()
    while len(names) < count:
        names.add("".join(draw.choices(LETTERS, k=10)))
    return sorted(names, key=lambda _: draw.random())


def _shapes(draw: random.Random, size: int, names: list[str]) -> dict[str, tuple[int, ...]]:
    """Return tensors, vectors and matrices, of `size` numbers in all."""
    shapes: dict[str, tuple[int, ...]] = {}
    left = size
    for _ in range(draw.randint(2, 4)):
        part = draw.randint(size // 8, size // 5)
        width = draw.choice([1, 2, 4, 8])
        shape = (part,) if width == 1 else (part // width, width)
        shapes[names.pop()] = shape
        left -= math.prod(shape)
    return shapes | {names.pop(): (left,)}
