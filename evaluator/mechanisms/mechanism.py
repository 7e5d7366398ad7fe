"""The sampled Gaussian mechanism of one round, and what rounds of it release.

The site's calculator, `pfl privacy`, the trainers and the workers all build a `Mechanism` and take its events, so that
all of them arrive at the same ε. A trainer makes one from its settings and writes its parts into the run line of the
training record; a worker makes one for each kind of round in a record.
"""

import math
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from evaluator.mechanisms.events import Event, TwoStage, UnsupportedError
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.sampling import Sampling
from evaluator.mechanisms.units import Adjacency, PrivacyUnit
from evaluator.mechanisms.values import MAX_NOISE_MULTIPLIER, MIN_NOISE_MULTIPLIER, Value


class SamplingRule(StrEnum):
    """The amplification rule: how two stages of sampling, clients and then providers, are accounted.

    `product` takes C·p, the competition's published rate, as every provider's own sampling rate, which is not sound at
    provider level. `two_stage` assumes an observer who knows which clients take part in each round.
    """

    PRODUCT = "product"
    TWO_STAGE = "two_stage"


class Mechanism(Value):
    """One round of provider-level differential privacy.

    Attributes:
        clients: N, how many clients there are.
    """

    sampling: Sampling
    noise: Noise
    clients: Annotated[int, Field(ge=1, lt=2**31)]
    unit: Annotated[PrivacyUnit, Field(strict=False)] = PrivacyUnit.PROVIDER
    adjacency: Annotated[Adjacency, Field(strict=False)] = Adjacency.ADD_REMOVE

    @model_validator(mode="after")
    def _clients_can_be_drawn(self) -> Self:
        self.sampling.rates(self.clients)
        return self

    def with_noise_multiplier(self, multiplier: float) -> Self:
        """Return the mechanism with another σ. Raises ValueError where it is out of range."""
        noise = Noise.model_validate(self.noise.model_dump() | {"multiplier": multiplier})
        return self.model_copy(update={"noise": noise})

    def effective_noise_multiplier(self) -> float:
        """Return z, of the noise that hides one provider from anyone who sees this release.

        Raises:
            UnsupportedError: The noise doesn't cover the release.
        """
        contributors = self.sampling.clients(self.clients).least_with_one
        return self.noise.effective_multiplier(contributors=contributors, clients=self.clients)

    def events(self, rule: SamplingRule, rounds: int = 1) -> list[Event]:
        """Return the events that a number of rounds release, as the amplification rule `rule` accounts them.

        Raises:
            UnsupportedError: The noise doesn't cover the release, or is out of the accountants' range.
            ValueError: The number of rounds is out of range.
        """
        return [self.event(rule, self.effective_noise_multiplier(), rounds)]

    def releases(self, rounds: int = 1) -> dict[SamplingRule, list[Event]]:
        """Return `events` under every amplification rule, the deciding one first."""
        return {rule: self.events(rule, rounds) for rule in (SamplingRule.TWO_STAGE, SamplingRule.PRODUCT)}

    def event(self, rule: SamplingRule, effective_noise_multiplier: float, rounds: int) -> Event:
        """Return the event of rounds of this sampling with the given noise multiplier, whatever `noise` is.

        Args:
            effective_noise_multiplier: What an observer faces.

        Raises:
            UnsupportedError: The noise is out of the accountants' range.
            ValueError: The number of rounds is out of range.
        """
        if self.unit is not PrivacyUnit.PROVIDER:
            raise UnsupportedError("only providers are clipped, sampled and covered one by one")
        if not MIN_NOISE_MULTIPLIER <= effective_noise_multiplier <= MAX_NOISE_MULTIPLIER:
            raise UnsupportedError(
                f"the effective noise multiplier must be from {MIN_NOISE_MULTIPLIER:g} to "
                f"{MAX_NOISE_MULTIPLIER:g}: {effective_noise_multiplier:.4g}"
            )
        client_rate, provider_rate = self.sampling.rates(self.clients)
        one_stage = rule is SamplingRule.PRODUCT or client_rate == 1
        rate = client_rate * provider_rate if one_stage else provider_rate
        event = self.sampling.event(rate, effective_noise_multiplier).for_neighbors(self.unit, self.adjacency)
        if one_stage:
            return event.repeated(math.ceil(rounds / self.sampling.rounds_per_cycle))
        return TwoStage(
            unit=self.unit, adjacency=self.adjacency, rounds=rounds, client_rate=client_rate, within=event
        )
