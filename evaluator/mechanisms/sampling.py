"""Sampling: which clients, and which of their providers, take part in a round.

A settings file contains one of these values. The trainer draws by its laws, the training record stores it unchanged,
the checks compare the recorded rounds with its laws, and the accountant reads its rates. A new way of sampling is one
more class here, which also names the event that a round releases.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from evaluator.mechanisms.events import (
    FixedSizeGaussian,
    Gaussian,
    PoissonGaussian,
    RandomAllocationGaussian,
)
from evaluator.mechanisms.values import MIN_SAMPLING_RATE, Rate, RoundsPerCycle, SomeCount, Value

# The number of providers of each client.
Sizes = Mapping[int, int]


@dataclass(frozen=True)
class Exactly:
    """A number of members that is the same in every round, each choice of them as likely as any other."""

    count: int

    @property
    def mean(self) -> float:
        """The expected number."""
        return float(self.count)

    @property
    def most(self) -> int:
        """The largest number that can be drawn."""
        return self.count

    @property
    def least_with_one(self) -> int:
        """The smallest number that can be drawn, given that a certain member is."""
        return max(1, self.count)


@dataclass(frozen=True)
class Binomial:
    """An independent coin for each of `population` members, heads with probability `rate`."""

    population: int
    rate: float

    @property
    def mean(self) -> float:
        """The expected number."""
        return self.rate * self.population

    @property
    def most(self) -> int:
        """The largest number that can be drawn."""
        return self.population

    @property
    def least_with_one(self) -> int:
        """The smallest number that can be drawn, given that a certain member is."""
        return 1


@dataclass(frozen=True)
class OncePerCycle:
    """One round of every `rounds` for each of `population` members, drawn uniformly and independently.

    Over a whole cycle, from round 1 on, each member takes part exactly once.
    """

    population: int
    rounds: int

    @property
    def mean(self) -> float:
        """The expected number in a round."""
        return self.population / self.rounds

    @property
    def most(self) -> int:
        """The largest number that can be drawn for a round."""
        return self.population

    @property
    def least_with_one(self) -> int:
        """The smallest number that can be drawn for a round, given that a certain member is."""
        return 1

    def place(self, round_number: int) -> tuple[int, int]:
        """Return the cycle that a round (from 1) is in, and its place there, both from 0."""
        return divmod(round_number - 1, self.rounds)


Law = Exactly | Binomial | OncePerCycle


class _Coins(Value):
    """Independent coins of constant `rates`: of every client, then of every provider of one that takes part."""

    # Of so many rounds, `event` is the release.
    rounds_per_cycle: ClassVar[int] = 1

    def fitted(self, sizes: Sizes) -> Self:
        """Return the sampling as it is for clients of these `sizes`."""
        return self

    def clients(self, clients: int) -> Law:
        """Return the law of how many of `clients` clients take part in a round."""
        client_rate, _ = self.rates(clients)
        return Exactly(clients) if client_rate == 1 else Binomial(clients, client_rate)

    def providers(self, providers: int) -> Law:
        """Return the law of how many of a participating client's `providers` providers take part."""
        _, provider_rate = self.rates(1)
        return Exactly(providers) if provider_rate == 1 else Binomial(providers, provider_rate)

    def expected_providers(self, sizes: Sizes) -> float:
        """Return how many providers take part in a round on average."""
        client_rate, provider_rate = self.rates(len(sizes))
        return sum(sizes.values()) * client_rate * provider_rate

    def covers(self, providers: int) -> bool:
        """Return whether the rates bound the chances of a client's `providers` providers."""
        return True

    def rates(self, clients: int) -> tuple[float, float]:
        """Return the chance of a client, and of a provider whose client takes part."""
        raise NotImplementedError

    def event(self, rate: float, effective_noise_multiplier: float) -> Gaussian | PoissonGaussian:
        """Return one round in which every unit takes part by its own coin of probability `rate`."""
        if rate == 1:
            return Gaussian(effective_noise_multiplier=effective_noise_multiplier)
        return PoissonGaussian(sampling_rate=rate, effective_noise_multiplier=effective_noise_multiplier)


class Full(_Coins):
    """Every provider of every client takes part in every round."""

    type: Literal["full"] = "full"

    def rates(self, clients: int) -> tuple[float, float]:
        return 1.0, 1.0


class Poisson(_Coins):
    """Every client flips a coin; then every provider of a participating client flips its own coin.

    With a client rate of 1, all clients take part, and the providers form one Poisson sample.

    Attributes:
        client_rate: The client sampling rate: the probability that a client takes part.
        provider_rate: The provider sampling rate: the probability that a provider of a participating client
            takes part.
    """

    type: Literal["poisson"] = "poisson"
    client_rate: Rate = 1.0
    provider_rate: Rate

    def rates(self, clients: int) -> tuple[float, float]:
        return self.client_rate, self.provider_rate


class FixedSize(Value):
    """A fixed number of clients is drawn, then the same number of providers at each of them.

    The number of providers is a constant, which must not follow from how many a client has: if it grew with them, one
    provider more could bring in another's update as well, and nothing of the amplification would be left.

    Attributes:
        clients_per_round: The number of clients drawn.
        providers_per_client: The number of providers drawn at each of these clients.
        fewest_providers: A number of providers that every client has at least, which bounds a provider's chance; in
            settings null for the smallest client's own number.
    """

    rounds_per_cycle: ClassVar[int] = 1

    type: Literal["fixed_size"] = "fixed_size"
    clients_per_round: SomeCount
    providers_per_client: SomeCount
    fewest_providers: SomeCount | None = None

    @model_validator(mode="after")
    def _rate_is_in_range(self) -> Self:
        fewest = self.fewest_providers
        if fewest and not MIN_SAMPLING_RATE <= self.providers_per_client / fewest <= 1:
            raise ValueError(
                f"providers_per_client must be at most fewest_providers, and no less than {MIN_SAMPLING_RATE:g} of it"
            )
        return self

    def fitted(self, sizes: Sizes) -> Self:
        """Return the sampling with the smallest of `sizes` as `fewest_providers`, unless that is given.

        Raises:
            ValueError: There are fewer clients, or providers at a client, than are to be drawn.
        """
        smallest = min(sizes.values())
        fewest = smallest if self.fewest_providers is None else self.fewest_providers
        for name, wanted, most in (
            ("clients_per_round", self.clients_per_round, len(sizes)),
            ("providers_per_client", self.providers_per_client, smallest),
            ("fewest_providers", fewest, smallest),
        ):
            if not 1 <= wanted <= most:
                raise ValueError(f"sampling.{name} must be from 1 to {most}: {wanted}")
        return self.model_copy(update={"fewest_providers": fewest})

    def clients(self, clients: int) -> Law:
        """Return the law of how many of `clients` clients take part in a round."""
        return Exactly(self.clients_per_round)

    def providers(self, providers: int) -> Law:
        """Return the law of how many of a participating client's `providers` providers take part."""
        return Exactly(self.providers_per_client)

    def expected_providers(self, sizes: Sizes) -> float:
        """Return how many providers take part in a round on average."""
        return float(self.clients_per_round * self.providers_per_client)

    def covers(self, providers: int) -> bool:
        """Return whether the rates bound the chances of a client's `providers` providers."""
        return self.fewest_providers is not None and providers >= self.fewest_providers

    def rates(self, clients: int) -> tuple[float, float]:
        """Return the chance of a client, and of a provider whose client takes part.

        Raises:
            ValueError: `fewest_providers` is not known, or more clients are drawn than there are.
        """
        if self.fewest_providers is None:
            raise ValueError("sampling.fewest_providers must be given")
        if self.clients_per_round > clients:
            raise ValueError(
                f"sampling.clients_per_round must be at most {clients}: {self.clients_per_round}"
            )
        return self.clients_per_round / clients, self.providers_per_client / self.fewest_providers

    def event(self, rate: float, effective_noise_multiplier: float) -> FixedSizeGaussian:
        """Return one round in which a part `rate` of all units is drawn without replacement."""
        return FixedSizeGaussian(sampling_rate=rate, effective_noise_multiplier=effective_noise_multiplier)


class RandomAllocation(Value):
    """Every provider takes part in one round of every cycle, drawn uniformly when the cycle begins.

    All clients take part in every round. Over k cycles, each provider takes part exactly k times.

    Attributes:
        rounds_per_cycle: The number of rounds of a cycle; a cycle that isn't finished costs as much privacy as a
            whole one.
    """

    type: Literal["random_allocation"] = "random_allocation"
    rounds_per_cycle: RoundsPerCycle

    def fitted(self, sizes: Sizes) -> Self:
        """Return the sampling as it is for clients of these `sizes`."""
        return self

    def clients(self, clients: int) -> Law:
        """Return the law of how many of `clients` clients take part in a round."""
        return Exactly(clients)

    def providers(self, providers: int) -> Law:
        """Return the law of how many of a participating client's `providers` providers take part."""
        return OncePerCycle(providers, self.rounds_per_cycle)

    def expected_providers(self, sizes: Sizes) -> float:
        """Return how many providers take part in a round on average."""
        return sum(sizes.values()) / self.rounds_per_cycle

    def covers(self, providers: int) -> bool:
        """Return whether the rates bound the chances of a client's `providers` providers."""
        return True

    def rates(self, clients: int) -> tuple[float, float]:
        """Return the chance of a client, and of a provider whose client takes part."""
        return 1.0, 1 / self.rounds_per_cycle

    def event(self, rate: float, effective_noise_multiplier: float) -> RandomAllocationGaussian:
        """Return one cycle."""
        return RandomAllocationGaussian(
            rounds_per_cycle=self.rounds_per_cycle, effective_noise_multiplier=effective_noise_multiplier
        )


Sampling = Annotated[Full | Poisson | FixedSize | RandomAllocation, Field(discriminator="type")]
