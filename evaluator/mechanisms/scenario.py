"""A training run as one thinks of it before it is run, and what it would come to.

The site's calculator, `pfl privacy` and the workers ask here, so that all of them say the same. A `Scenario` has the
settings of a record's run line, the same in every round; the workers make one for each kind of round in a record.
"""

import math
from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from evaluator.mechanisms.events import (
    MAX_NOISE_MULTIPLIER,
    MAX_ROUNDS,
    MIN_NOISE_MULTIPLIER,
    Adjacency,
    Event,
    FixedSizeGaussian,
    Gaussian,
    PoissonGaussian,
    Positive,
    Rate,
    TwoStage,
    Unit,
    UnsupportedError,
)
from evaluator.mechanisms.placement import Placement, ReleaseView, effective_noise_multiplier


class SamplingRule(StrEnum):
    """How two stages of sampling, clients and then providers, are accounted.

    `product` takes C·p, the competition's published rate, as every provider's own sampling rate, which is not sound at
    provider level. `two_stage` accounts each round as seen by someone who knows which clients take part.
    """

    PRODUCT = "product"
    TWO_STAGE = "two_stage"


class Sampling(StrEnum):
    """Who takes part in a round; the words of the training record."""

    TWO_STAGE_POISSON = "two_stage_poisson"
    GLOBAL_POISSON = "global_poisson"
    FIXED_SIZE = "fixed_size"
    FULL = "full"

    @property
    def samples_clients(self) -> bool:
        return self in {Sampling.TWO_STAGE_POISSON, Sampling.FIXED_SIZE}

    @property
    def samples_providers(self) -> bool:
        return self is not Sampling.FULL


class Scenario(BaseModel):
    """Equal rounds of a differentially private training.

    Attributes:
        client_rate: Chance of a client, or the part of them that is drawn; ignored where all clients take part.
        provider_rate: Of a provider whose client takes part; ignored where all providers take part.
        noise_multiplier: σ as the record has it: see `evaluator.records.lines.Noise`.
        clients: N, that there are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sampling: Sampling = Sampling.TWO_STAGE_POISSON
    client_rate: Rate = 1.0
    provider_rate: Rate = 1.0
    noise_multiplier: Positive = 1.0
    rounds: Annotated[int, Field(ge=1, le=MAX_ROUNDS)] = 1
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-5
    unit: Unit = Unit.PROVIDER
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    clients: Annotated[int, Field(ge=1)] = 10
    placement: Placement = "server"
    release_view: ReleaseView = "aggregate"
    colluding_clients: Annotated[int, Field(ge=0)] = 0

    def with_changes(self, **changes: float) -> Self:
        """The scenario with other numbers; raises ValueError where one is out of range."""
        return type(self).model_validate(self.model_dump() | changes)

    def effective_noise_multiplier(self) -> float:
        """z, of the noise that hides one provider from who sees this release.

        Raises:
            UnsupportedError: The noise doesn't cover what is seen.
        """
        return effective_noise_multiplier(
            self.noise_multiplier,
            placement=self.placement,
            release_view=self.release_view,
            contributors=self._sure_contributors(),
            clients=self.clients,
            colluding=self.colluding_clients,
        )

    def events(self, rule: SamplingRule) -> list[Event]:
        """What the run releases, as `rule` accounts it.

        Raises:
            UnsupportedError: The noise doesn't cover what is seen, or is out of the accountants' range.
        """
        return [self._event(rule, self.effective_noise_multiplier())]

    def releases(self) -> dict[SamplingRule, list[Event]]:
        """`events` under every rule, the deciding one first."""
        return {rule: self.events(rule) for rule in (SamplingRule.TWO_STAGE, SamplingRule.PRODUCT)}

    def noise_multiplier_for(self, epsilon: float, rule: SamplingRule) -> float:
        """The smallest σ, to one in 10⁴, whose ε under `rule` doesn't exceed `epsilon`; `noise_multiplier` is ignored.

        Raises:
            ValueError: No noise is enough.
            UnsupportedError: The noise doesn't cover what is seen.
        """
        from evaluator.accounting import calibration  # loads the accountants, of which a form has no need

        # Every placement scales the noise by a constant, so that z can be sought in the accountants' whole range.
        scale = self.with_changes(noise_multiplier=1).effective_noise_multiplier()
        effective = calibration.noise_multiplier(epsilon, self.delta, lambda z: [self._event(rule, z)])
        return effective / scale

    def _event(self, rule: SamplingRule, effective: float) -> Event:
        if self.unit is not Unit.PROVIDER:
            raise UnsupportedError("only providers are clipped, sampled and covered one by one")
        if not MIN_NOISE_MULTIPLIER <= effective <= MAX_NOISE_MULTIPLIER:
            raise UnsupportedError(
                f"the effective noise multiplier must be from {MIN_NOISE_MULTIPLIER:g} to "
                f"{MAX_NOISE_MULTIPLIER:g}: {effective:.4g}"
            )
        client_rate = self.client_rate if self.sampling.samples_clients else 1
        provider_rate = self.provider_rate if self.sampling.samples_providers else 1
        if rule is SamplingRule.PRODUCT or client_rate == 1:
            return self._mechanism(client_rate * provider_rate, effective, self.rounds)
        return TwoStage(
            unit=self.unit,
            adjacency=self.adjacency,
            rounds=self.rounds,
            client_rate=client_rate,
            within=self._mechanism(provider_rate, effective, 1),
        )

    def _mechanism(
        self, rate: float, noise: float, rounds: int
    ) -> Gaussian | PoissonGaussian | FixedSizeGaussian:
        unit, adjacency = self.unit, self.adjacency
        if self.sampling is Sampling.FIXED_SIZE:
            return FixedSizeGaussian(
                unit=unit, adjacency=adjacency, rounds=rounds, sampling_rate=rate, noise_multiplier=noise
            )
        if rate == 1:
            return Gaussian(unit=unit, adjacency=adjacency, rounds=rounds, noise_multiplier=noise)
        return PoissonGaussian(
            unit=unit, adjacency=adjacency, rounds=rounds, sampling_rate=rate, noise_multiplier=noise
        )

    def _sure_contributors(self) -> int:
        """Clients that surely draw noise in a round in which a provider's own client takes part."""
        if self.sampling is Sampling.FIXED_SIZE:
            return max(1, math.floor(self.client_rate * self.clients + 1e-9))
        coins = self.sampling is Sampling.TWO_STAGE_POISSON and self.client_rate < 1
        return 1 if coins else self.clients
