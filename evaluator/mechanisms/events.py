"""Privacy events: what a training run released, as data.

An event describes what one round released, whom that protects (`unit`), which data sets are neighbors (`adjacency`) and
how many such rounds there were (`rounds`). A composition is a sequence of events, in any order; the composition of
several releases has the events of all of them. Accountants bound compositions, and reject those that they have no proof
for.

An effective noise multiplier is relative to the L2 bound on one unit's contribution. It describes the noise that an
adversary sees, whoever drew it: see `noise`.
"""

import math
from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluator.mechanisms.units import Adjacency, PrivacyUnit
from evaluator.mechanisms.values import (
    MAX_NOISE_MULTIPLIER,
    MAX_ROUNDS,
    MIN_NOISE_MULTIPLIER,
    Rate,
    RoundsPerCycle,
)

# Gaussian noise over the clip norm, or Laplace noise over the sensitivity, in the range that the accountants handle.
RelativeNoise = Annotated[float, Field(ge=MIN_NOISE_MULTIPLIER, le=MAX_NOISE_MULTIPLIER, allow_inf_nan=False)]
PositiveFinite = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Release(BaseModel):
    """The base of all events; equal `rounds` of the same mechanism are one event."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: PrivacyUnit = PrivacyUnit.PROVIDER
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    rounds: int = Field(default=1, ge=1, le=MAX_ROUNDS)

    @property
    def total_rounds(self) -> int:
        """How many rounds of training there were."""
        return self.rounds

    def repeated(self, rounds: int) -> Self:
        """Return the event for this number of rounds. Raises ValueError where it is out of range."""
        return type(self).model_validate({**dict(self), "rounds": rounds})

    def for_neighbors(self, unit: PrivacyUnit, adjacency: Adjacency) -> Self:
        """Return the same release for this privacy unit and these neighbors."""
        return self.model_copy(update={"unit": unit, "adjacency": adjacency})


class Gaussian(Release):
    """Everyone takes part; N(0, (σS)²) covers the sum of contributions of L2 norm at most S."""

    type: Literal["gaussian"] = "gaussian"
    effective_noise_multiplier: RelativeNoise


class PoissonGaussian(Release):
    """Each unit takes part by its own independent coin of probability `sampling_rate`; else as `Gaussian`.

    The noise is fresh in every round and there also when nobody takes part.
    """

    type: Literal["poisson_gaussian"] = "poisson_gaussian"
    sampling_rate: Rate
    effective_noise_multiplier: RelativeNoise


class FixedSizeGaussian(Release):
    """A fixed number of units is drawn without replacement; `sampling_rate` is that number over all units.

    Under add/remove a unit that comes in displaces another, so that the sum moves by up to twice the clip norm.
    """

    type: Literal["fixed_size_gaussian"] = "fixed_size_gaussian"
    sampling_rate: Rate
    effective_noise_multiplier: RelativeNoise


class RandomAllocationGaussian(Release):
    """A cycle of rounds, in one of which each unit takes part, drawn uniformly and independently; else as `Gaussian`.

    `rounds` counts cycles. The draw of one cycle says nothing about that of another.

    Attributes:
        rounds_per_cycle: B, among which a unit draws one.
    """

    type: Literal["random_allocation_gaussian"] = "random_allocation_gaussian"
    rounds_per_cycle: RoundsPerCycle
    effective_noise_multiplier: RelativeNoise

    @property
    def total_rounds(self) -> int:
        """How many rounds of training there were, those that an unfinished cycle lacks included."""
        return self.rounds * self.rounds_per_cycle

    def for_neighbors(self, unit: PrivacyUnit, adjacency: Adjacency) -> Self:
        """Return the same release for this privacy unit and these neighbors.

        Raises:
            UnsupportedError: One unit is replaced by another.
        """
        if adjacency is Adjacency.REPLACE:
            raise UnsupportedError("no bound is known here for random allocation under replacement")
        return super().for_neighbors(unit, adjacency)


class Laplace(Release):
    """Laplace noise of `relative_scale` times the L1 sensitivity under `adjacency`: ε of a round is its inverse."""

    type: Literal["laplace"] = "laplace"
    relative_scale: RelativeNoise


class FedAvgLaplace(Release):
    """Output perturbation of a client's FedAvg iterate z = w − η·mean ∇f, gradients clipped in L1.

    Removing or replacing one of the client's I_p records moves z by at most 2Cη/I_p in L1; for removal
    (1/(I_p−1) − 1/I_p)(I_p−1)C + C/I_p is the same number. The privacy unit is the record, not the provider.

    Attributes:
        clip_norm: C, the L1 bound on one record's gradient.
        learning_rate: η.
        examples: I_p of the smallest client, at least 2.
        scale: The scale of the Laplace noise in each coordinate.
    """

    type: Literal["fedavg_laplace"] = "fedavg_laplace"
    unit: Literal[PrivacyUnit.RECORD] = PrivacyUnit.RECORD
    clip_norm: PositiveFinite
    learning_rate: PositiveFinite
    examples: int = Field(ge=2)
    scale: PositiveFinite

    @property
    def sensitivity(self) -> float:
        """The L1 sensitivity of the released iterate."""
        return self.sensitivity_of(self.clip_norm, self.learning_rate, self.examples)

    @staticmethod
    def sensitivity_of(clip_norm: float, learning_rate: float, examples: int) -> float:
        """Return the L1 sensitivity of the iterate of a client with this number of records."""
        return 2 * clip_norm * learning_rate / examples

    def as_laplace(self) -> Laplace:
        return _as_laplace(self, self.scale / self.sensitivity)


class AdmmLaplace(Release):
    """Output perturbation of an inexact ADMM iterate z = w + (λ − Σ∇f/I)/ρ, gradients clipped in L1.

    Replacing one record moves z by at most 2C/(ρI) in L1, removing one by at most C/(ρI): I, the number of records of
    all clients, is a constant of the objective.

    Attributes:
        clip_norm: C, the L1 bound on one record's gradient.
        penalty: ρ, the smallest in use.
        examples: I, of all clients.
        scale: The scale of the Laplace noise in each coordinate.
    """

    type: Literal["admm_laplace"] = "admm_laplace"
    unit: Literal[PrivacyUnit.RECORD] = PrivacyUnit.RECORD
    clip_norm: PositiveFinite
    penalty: PositiveFinite
    examples: int = Field(ge=1)
    scale: PositiveFinite

    @property
    def sensitivity(self) -> float:
        """The L1 sensitivity of the released iterate under the event's adjacency."""
        return self.sensitivity_of(self.clip_norm, self.penalty, self.examples, self.adjacency)

    @staticmethod
    def sensitivity_of(clip_norm: float, penalty: float, examples: int, adjacency: Adjacency) -> float:
        """Return the L1 sensitivity of an iterate, for this number of records of all clients."""
        records = 2 if adjacency is Adjacency.REPLACE else 1
        return records * clip_norm / (penalty * examples)

    def as_laplace(self) -> Laplace:
        return _as_laplace(self, self.scale / self.sensitivity)


SingleStage = (
    Gaussian
    | PoissonGaussian
    | FixedSizeGaussian
    | RandomAllocationGaussian
    | Laplace
    | FedAvgLaplace
    | AdmmLaplace
)


class TwoStage(Release):
    """A client takes part with probability `client_rate`, visibly; `within` is what its units then go through.

    The units of one client come and go together. An adversary who recognizes from the others' contributions, or reads
    in the log, that the client took part faces only the inner mechanism. So each round is, with probability
    `client_rate`, the inner mechanism and otherwise no release at all, and the adversary sees which.
    """

    type: Literal["two_stage"] = "two_stage"
    client_rate: Rate
    within: Annotated[Gaussian | PoissonGaussian | FixedSizeGaussian | Laplace, Field(discriminator="type")]

    @model_validator(mode="after")
    def _agrees_with_inner(self) -> Self:
        inner = self.within
        if (inner.unit, inner.adjacency) != (self.unit, self.adjacency) or inner.rounds != 1:
            raise ValueError("the inner mechanism has the same unit and adjacency, and one round")
        return self


Event = Annotated[SingleStage | TwoStage, Field(discriminator="type")]


class UnsupportedError(ValueError):
    """An accountant has no proof for this mechanism under this adjacency; the text is the reason."""


def merged(events: Iterable[Event]) -> list[Event]:
    """Return the same composition with equal mechanisms merged: ε depends on neither their order nor their grouping.

    Raises:
        ValueError: The events protect different privacy units, or are meant for different neighbors.
    """
    counts: dict[Event, int] = {}
    for event in events:
        once = event.model_copy(update={"rounds": 1})
        counts[once] = counts.get(once, 0) + event.rounds
    kinds = sorted({f"{event.unit}, {event.adjacency}" for event in counts})
    if len(kinds) > 1:
        raise ValueError(f"a composition has one privacy unit and one adjacency, not {' and '.join(kinds)}")
    return [once.model_copy(update={"rounds": rounds}) for once, rounds in counts.items()]


def check_delta(delta: float) -> None:
    """Raise ValueError unless δ is a probability strictly between 0 and 1."""
    if not 0 < delta < 1:
        raise ValueError(f"δ must be in (0, 1): {delta}")


def check_epsilon(epsilon: float) -> None:
    """Raise ValueError unless ε is positive and finite."""
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise ValueError(f"ε must be positive and finite: {epsilon}")


def _as_laplace(event: FedAvgLaplace | AdmmLaplace, relative_scale: float) -> Laplace:
    return Laplace(
        unit=event.unit, adjacency=event.adjacency, rounds=event.rounds, relative_scale=relative_scale
    )
