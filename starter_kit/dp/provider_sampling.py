"""Which providers take part in a round, by coins or by fixed numbers, and what that is to accountants and records.

With coins, every client flips one with `client_rate` and every provider of a client that takes part its own with
`provider_rate`. At a client rate of 1 that is one Poisson sample of all providers (`global_poisson`). With fixed
numbers, clients are drawn without replacement, then providers at each of them; under add/remove adjacency the provider
that comes in displaces another, which costs twice the noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.scenario import Sampling
from evaluator.records import lines
from starter_kit.dp.keystream import Keystream
from starter_kit.dp.sampling import fixed_size_sample, poisson_sample

Sizes = Mapping[int, int]  # of each client, how many providers it has


class ProviderSampling(Protocol):
    """A way of choosing clients and their providers."""

    def clients(self, clients: Sequence[int], keystream: Keystream) -> list[int]:
        """Those that take part in a round."""

    def providers(self, providers: Sequence[str], keystream: Keystream) -> list[str]:
        """Those of one client that take part in a round."""

    def expected(self, sizes: Sizes) -> float:
        """How many providers take part in a round, on average."""

    def most_clients(self, sizes: Sizes) -> int:
        """How many clients may take part in a round."""

    def scenario(self, sizes: Sizes) -> dict[str, Any]:
        """The fields of an accountant's `Scenario` that tell this sampling."""

    def recorded(self, sizes: Sizes) -> lines.Sampling:
        """As the training record has it."""


@dataclass(frozen=True)
class PoissonSampling:
    """By coins."""

    provider_rate: float
    client_rate: float = 1.0

    def clients(self, clients: Sequence[int], keystream: Keystream) -> list[int]:
        return poisson_sample(clients, self.client_rate, keystream)

    def providers(self, providers: Sequence[str], keystream: Keystream) -> list[str]:
        return poisson_sample(providers, self.provider_rate, keystream)

    def expected(self, sizes: Sizes) -> float:
        return sum(sizes.values()) * self.client_rate * self.provider_rate

    def most_clients(self, sizes: Sizes) -> int:
        return len(sizes)

    def scenario(self, sizes: Sizes) -> dict[str, Any]:
        return {
            "sampling": Sampling.TWO_STAGE_POISSON,
            "client_rate": self.client_rate,
            "provider_rate": self.provider_rate,
        }

    def recorded(self, sizes: Sizes) -> lines.Sampling:
        if self.client_rate == 1:
            return lines.GlobalPoisson(provider_rate=self.provider_rate)
        return lines.TwoStagePoisson(client_rate=self.client_rate, provider_rate=self.provider_rate)


@dataclass(frozen=True)
class FixedSizeSampling:
    """By fixed numbers."""

    clients_per_round: int
    providers_per_client: int

    def clients(self, clients: Sequence[int], keystream: Keystream) -> list[int]:
        return fixed_size_sample(clients, self.clients_per_round, keystream)

    def providers(self, providers: Sequence[str], keystream: Keystream) -> list[str]:
        return fixed_size_sample(providers, self.providers_per_client, keystream)

    def expected(self, sizes: Sizes) -> float:
        return float(self.clients_per_round * self.providers_per_client)

    def most_clients(self, sizes: Sizes) -> int:
        return self.clients_per_round

    def scenario(self, sizes: Sizes) -> dict[str, Any]:
        return {
            "sampling": Sampling.FIXED_SIZE,
            "client_rate": self.clients_per_round / len(sizes),
            "provider_rate": self._provider_rate(sizes),
        }

    def recorded(self, sizes: Sizes) -> lines.Sampling:
        return lines.FixedSize(
            clients_per_round=self.clients_per_round, provider_rate=self._provider_rate(sizes)
        )

    def check(self, sizes: Sizes) -> None:
        """Raises `ProblemError` (`E_CONFIGURATION`) where there are fewer clients or providers than are to be drawn."""
        for name, wanted, there in (
            ("clients_per_round", self.clients_per_round, len(sizes)),
            ("providers_per_client", self.providers_per_client, min(sizes.values())),
        ):
            if wanted > there:
                raise ProblemError.of(
                    ErrorCode.CONFIGURATION, where=name, expected=f"from 1 to {there}", found=wanted
                )

    def _provider_rate(self, sizes: Sizes) -> float:
        """Chance of a provider of the client that has fewest."""
        return self.providers_per_client / min(sizes.values())
