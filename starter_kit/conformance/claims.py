"""What a plan claims of a round, in the terms in which it is tested."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.events import (
    AdmmLaplace,
    Event,
    FedAvgLaplace,
    FixedSizeGaussian,
    Gaussian,
    Laplace,
    PoissonGaussian,
    RandomAllocationGaussian,
    TwoStage,
)
from evaluator.mechanisms.units import Adjacency, PrivacyUnit
from starter_kit.settings.plan import Plan


class Participation(StrEnum):
    """How the units of a client that takes part are drawn; `all` where no amplification is claimed."""

    ALL = "all"
    POISSON = "poisson"
    FIXED = "fixed"
    ALLOCATED = "allocated"


@dataclass(frozen=True)
class Claims:
    """What a round releases.

    Attributes:
        unit: Whom the release protects.
        bound: The largest norm of one unit's contribution, in what is released.
        norm: The order of that norm.
        law: The distribution of the noise in each coordinate.
        scale: Its standard deviation, or the scale of Laplace noise.
        per_message: Whether each message that reaches the server is released with noise of its own; otherwise their sum
            is, as the round reports it.
        cumulative: Whether the noise is that of a client's model, the sum of its messages so far, rather than of each.
        client_rate: The chance of a client.
        participation: How units of such a client are drawn.
        unit_rate: The chance of such a unit; an upper bound where a fixed number is drawn.
        sums_only: Whether the server's step must be linear in what was released.
    """

    unit: PrivacyUnit
    bound: float
    norm: Literal[1, 2]
    law: Literal["gaussian", "laplace"]
    scale: float
    per_message: bool
    cumulative: bool
    client_rate: float
    participation: Participation
    unit_rate: float
    sums_only: bool

    @property
    def std(self) -> float:
        """The standard deviation of the noise in each coordinate."""
        return self.scale * (2**0.5 if self.law == "laplace" else 1.0)

    @property
    def draws_nobody(self) -> bool:
        """Whether every unit takes part in every round, so that nothing is drawn."""
        return self.participation is Participation.ALL and self.client_rate == 1


def claims_of(plan: Plan, clip_norm: float) -> Claims:
    """Return what `plan` claims of each round.

    Raises:
        ProblemError: (`E_CONFORMANCE_UNSUPPORTED`) It claims nothing, or a round releases what isn't covered here.
    """
    if plan.guarantee is None:
        raise unsupported("a method with a differential privacy guarantee", "a plan without one")
    events = plan.guarantee.released(1)
    if len(events) != 1:
        raise unsupported("one release in each round", f"{len(events)} events")
    client_rate, event = _inner(events[0])
    norm, bound, law, scale = _noise(event, clip_norm)
    participation, unit_rate = _participation(event)
    rule = plan.record_terms.server.rule if plan.record_terms else "sum"
    return Claims(
        unit=event.unit,
        bound=bound,
        norm=norm,
        law=law,
        scale=scale,
        per_message=plan.guarantee.seen_by_server,
        cumulative=isinstance(event, AdmmLaplace),
        client_rate=client_rate,
        participation=participation,
        unit_rate=unit_rate,
        sums_only=rule == "sum",
    )


def unsupported(expected: str, found: object) -> ProblemError:
    """Return the error for a method that the harness can't examine."""
    return ProblemError.of(
        ErrorCode.CONFORMANCE_UNSUPPORTED, where="the method's plan", expected=expected, found=found
    )


def _inner(event: Event) -> tuple[float, Event]:
    return (event.client_rate, event.within) if isinstance(event, TwoStage) else (1.0, event)


def _noise(
    event: Event, clip_norm: float
) -> tuple[Literal[1, 2], float, Literal["gaussian", "laplace"], float]:
    """Return the order of the norm, the bound in it, and the noise's law and scale."""
    match event:
        case Gaussian() | PoissonGaussian() | FixedSizeGaussian() | RandomAllocationGaussian():
            return 2, clip_norm, "gaussian", event.effective_noise_multiplier * clip_norm
        case FedAvgLaplace():
            return 1, event.clip_norm * event.learning_rate / event.examples, "laplace", event.scale
        case AdmmLaplace():
            return 1, event.clip_norm / (event.penalty * event.examples), "laplace", event.scale
        case Laplace():
            moved = 2 if event.adjacency is Adjacency.REPLACE else 1
            return 1, clip_norm, "laplace", event.relative_scale * moved * clip_norm
    raise unsupported("one mechanism within a two-stage release", event.type)


def _participation(event: Event) -> tuple[Participation, float]:
    match event:
        case PoissonGaussian():
            return Participation.POISSON, event.sampling_rate
        case FixedSizeGaussian():
            return Participation.FIXED, event.sampling_rate
        case RandomAllocationGaussian():
            return Participation.ALLOCATED, 1 / event.rounds_per_cycle
    return Participation.ALL, 1.0
