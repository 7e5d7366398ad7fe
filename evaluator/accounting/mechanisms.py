"""Mechanisms as data.

A `PoissonGaussian` states what a round guarantees nothing beyond: each provider takes part by its own independent
coin, contributes at most the clip norm in L2, and Gaussian noise of σ times the clip norm covers the sum, fresh in
every round and also when nobody takes part. Neighbouring datasets differ by adding or removing one provider;
accountants here know no other adjacency, so that none can be confused.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

# Outside of these the accountants' arithmetic is slow or loses its digits, and no training run is there: a provider
# seen at a noise multiplier of 0.1 has an ε near 100 from that one round.
MIN_SAMPLING_RATE = 1e-9
MIN_NOISE_MULTIPLIER = 0.1
MAX_NOISE_MULTIPLIER = 1e4


@dataclass(frozen=True)
class PoissonGaussian:
    """`rounds` rounds of the Poisson-sampled Gaussian mechanism under add/remove adjacency.

    Attributes:
        sampling_rate: q, at most 1; public.
        noise_multiplier: σ, the noise's standard deviation over the clip norm; public.

    Raises:
        ValueError: A value is out of range.
    """

    sampling_rate: float
    noise_multiplier: float
    rounds: int = 1

    def __post_init__(self) -> None:
        if not MIN_SAMPLING_RATE <= self.sampling_rate <= 1:
            raise ValueError(
                f"the sampling rate must be from {MIN_SAMPLING_RATE:g} to 1: {self.sampling_rate}"
            )
        if not MIN_NOISE_MULTIPLIER <= self.noise_multiplier <= MAX_NOISE_MULTIPLIER:
            raise ValueError(
                f"the noise multiplier must be from {MIN_NOISE_MULTIPLIER} to {MAX_NOISE_MULTIPLIER:g}: "
                f"{self.noise_multiplier}"
            )
        if self.rounds < 1:
            raise ValueError(f"the number of rounds must be at least 1: {self.rounds}")


def grouped(mechanisms: Iterable[PoissonGaussian]) -> list[PoissonGaussian]:
    """The same composition with equal mechanisms merged: ε depends on neither their order nor their grouping."""
    rounds: Counter[tuple[float, float]] = Counter()
    for mechanism in mechanisms:
        rounds[mechanism.sampling_rate, mechanism.noise_multiplier] += mechanism.rounds
    return [PoissonGaussian(q, sigma, count) for (q, sigma), count in rounds.items()]


def check_delta(delta: float) -> None:
    """Raise ValueError unless δ is a probability strictly between 0 and 1."""
    if not 0 < delta < 1:
        raise ValueError(f"δ must be in (0, 1): {delta}")
