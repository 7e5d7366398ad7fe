"""The inputs from which ε was recomputed: equal rounds by their rates and noise, as a page lists them.

They are in the training record, so whoever may read that may read them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from docvqa_site.calculator.presets import address_of
from docvqa_site.evaluation.intake.accounting import EVENTS
from evaluator.mechanisms.events import (
    Event,
    FixedSizeGaussian,
    Gaussian,
    Laplace,
    PoissonGaussian,
    RandomAllocationGaussian,
    TwoStage,
    merged,
)
from evaluator.mechanisms.noise import Placement
from evaluator.mechanisms.units import Adjacency

# A page shows so many groups of equal rounds; the training record has all.
MOST_GROUPS = 10
ALL = "all"
NEIGHBORS = {Adjacency.ADD_REMOVE: "add or remove one", Adjacency.REPLACE: "replace one"}

TRUSTED_SERVER = (
    "The server adds the noise and sees each round's sum without it, so ε doesn't hold against the server, which has "
    "to be trusted."
)
# Where clients add the noise, by what hides their updates.
OBSERVING_SERVER = {
    "none": "Clients add the noise before they send anything, so ε holds against the server, too.",
    "simulated": "Clients add the noise. ε holds against the server, too, if it sees each round's sum alone: nothing "
    "but trust hid the updates in this run.",
    "real": "Clients add the noise, and a protocol shows the server nothing but each round's sum, so ε holds against "
    "the server, too.",
}


@dataclass(frozen=True)
class EqualRounds:
    """Rounds that released the same: what an accountant knows of each.

    Attributes:
        address: The calculator with these rounds; empty where it can't express them.
    """

    event: Event
    address: str

    @property
    def client_rate(self) -> str:
        """The probability that a client takes part."""
        return _number(self.event.client_rate) if isinstance(self.event, TwoStage) else ALL

    @property
    def provider_rate(self) -> str:
        """The share of the providers that take part, of one client where clients are sampled."""
        match self._inner:
            case PoissonGaussian(sampling_rate=rate):
                return _number(rate)
            case FixedSizeGaussian(sampling_rate=rate):
                return f"{_number(rate)}, fixed size"
            case RandomAllocationGaussian(rounds_per_cycle=rounds):
                return f"once in {rounds} rounds"
        return ALL

    @property
    def noise(self) -> str:
        """The noise over the bound on one unit's contribution."""
        match self._inner:
            case Gaussian() | PoissonGaussian() | FixedSizeGaussian() | RandomAllocationGaussian() as event:
                return _number(event.effective_noise_multiplier)
            case Laplace(relative_scale=scale):
                return f"{_number(scale)} (Laplace)"
            case event:
                return f"{_number(event.as_laplace().relative_scale)} (Laplace)"

    @property
    def _inner(self) -> Any:
        return self.event.within if isinstance(self.event, TwoStage) else self.event


@dataclass(frozen=True)
class EpsilonInputs:
    """What ε of a run was computed from.

    Attributes:
        groups: The first groups of equal rounds.
        more: How many groups there are beside those.
        rounds: The number of rounds in all groups.
        unit: The privacy unit, and which data sets are neighbors.
        clip_norm: The clip norms of the rounds; empty for a run that was accounted before they were reported.
        server: Whether ε holds against the server, too; empty for a run that was accounted before this was reported.
    """

    groups: Sequence[EqualRounds]
    more: int
    rounds: int
    unit: str
    clip_norm: str
    server: str

    @property
    def has_all_clients(self) -> bool:
        """Whether every client takes part in every round."""
        return not self.more and all(group.client_rate == ALL for group in self.groups)

    @classmethod
    def of(cls, accounting: Mapping[str, Any], budget: float | None) -> Self | None:
        """Return the inputs in the result of an accounting; None where there are none that this version can read."""
        try:
            events = merged(EVENTS.validate_python(accounting.get("events") or []))
        except ValueError:
            return None
        if not events:
            return None
        delta = accounting["delta"]
        return cls(
            groups=[
                EqualRounds(event, address_of(event, budget=budget, delta=delta))
                for event in events[:MOST_GROUPS]
            ],
            more=len(events[MOST_GROUPS:]),
            rounds=sum(event.total_rounds for event in events),
            unit=f"{events[0].unit} ({NEIGHBORS[events[0].adjacency]})",
            clip_norm=" to ".join(dict.fromkeys(map(_number, accounting.get("clip_norms") or []))),
            server=_server(accounting.get("noise")),
        )


def _server(noise: Mapping[str, Any] | None) -> str:
    """Return in a sentence what ε says about the server; see `evaluator.mechanisms.noise`."""
    if noise is None:
        return ""
    if noise["placement"] == Placement.SERVER:
        return TRUSTED_SERVER
    return OBSERVING_SERVER[noise["secure_aggregation"]]


def _number(value: float) -> str:
    return f"{value:.6g}"
