"""A scenario of the calculator: equal rounds of a mechanism."""

from dataclasses import dataclass, replace
from typing import Self

from evaluator.mechanisms.events import Event
from evaluator.mechanisms.mechanism import Mechanism, SamplingRule


@dataclass(frozen=True)
class Scenario:
    """Equal rounds of a mechanism, and the δ at which ε is computed."""

    mechanism: Mechanism
    rounds: int = 1
    delta: float = 1e-5

    @property
    def noise_multiplier(self) -> float:
        """σ, with the meaning that it has in a record."""
        return self.mechanism.noise.multiplier

    def with_setting(self, name: str, value: float) -> Self:
        """Return the scenario with another number of `rounds` or another `noise_multiplier`.

        Raises `ValueError` if the value is out of range.
        """
        if name == "rounds":
            return replace(self, rounds=int(value))
        return replace(self, mechanism=self.mechanism.with_noise_multiplier(value))

    def releases(self) -> dict[SamplingRule, list[Event]]:
        """Return what the rounds release under every amplification rule, the deciding one first.

        Raises `ValueError`, with the reason, if the scenario can't be accounted.
        """
        return self.mechanism.releases(self.rounds)
