"""Federated learning with provider-level differential privacy: the baseline of track 2.

Guarantees that the sequence of released models is (ε, δ)-indistinguishable whether or not any one provider, with
all its documents, takes part (add/remove adjacency). ε is the accountant's for `rounds` sampled Gaussian mechanisms;
where clients are sampled too, for rounds in which everybody sees which clients take part, because a client's coin moves
all its providers at once. The proof is in docs/proofs/fl-provider-dp.md. In each round

1. clients and their providers are sampled, by default with a coin for every provider (`dp.provider_sampling`);
2. each sampled provider trains from the round's model with a fresh optimizer, on its own examples only;
3. its update, one vector over all trained tensors, is clipped to L2 norm `clip_norm`;
4. the clipped updates are summed, and Gaussian noise is added as `placement` says (`starter_kit.dp.gaussian_sum`), also
   where nobody was sampled;
5. the noisy sum is divided by a public constant, the expected number of sampled providers, and added to the model.

Assumes: idealised real arithmetic; with `server`, that clients trust the server with their un-noised sums.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from evaluator.mechanisms.events import Event, Unit
from evaluator.mechanisms.placement import ReleaseView
from evaluator.mechanisms.scenario import Scenario
from evaluator.records.lines import Noise, ServerStep
from starter_kit.dp.gaussian_sum import GaussianSum, NoisePlacement
from starter_kit.dp.guarantee import (
    Guarantee,
    RecordTerms,
    accounting_problems,
    noise_multiplier_for,
    rounds_within,
)
from starter_kit.dp.noise import LARGEST_DRAW
from starter_kit.dp.provider_sampling import FixedSizeSampling, PoissonSampling, ProviderSampling, Sizes
from starter_kit.federation.rounds import Aggregate, Client, ClientTask, ClientUpdate, Sum
from starter_kit.learning.local_training import LocalTraining, State
from starter_kit.randomness import Stream
from starter_kit.settings.run_settings import RecordedSettings

RELEASE_VIEW: dict[NoisePlacement, ReleaseView] = {
    NoisePlacement.SERVER: "aggregate",
    NoisePlacement.CLIENT_FULL: "per_client",
    NoisePlacement.CLIENT_SHARE: "aggregate",
}


@dataclass(frozen=True)
class ProviderDP:
    """FL-PROVIDER-DP.

    Attributes:
        noise: Bounds an update and covers the sum.
        divisor: The expected number of sampled providers, a public constant: never the realized number.
        server_learning_rate: Factor on the averaged noisy update; post-processing.
        discarded: How many updates of each client were not finite. Private: for the client's eyes, never shown,
            logged or sent.
    """

    sampling: ProviderSampling
    noise: GaussianSum
    divisor: float
    local: LocalTraining
    server_learning_rate: float = 1.0
    discarded: Counter[int] = field(default_factory=Counter, repr=False)

    def choose_clients(self, clients: Sequence[int], stream: Stream) -> list[int]:
        return self.sampling.clients(clients, self.noise.keystream)

    def client_update(self, task: ClientTask) -> ClientUpdate:
        total = torch.zeros_like(task.weights)
        sampled = self.sampling.providers(list(task.client.providers), self.noise.keystream)
        for change in self.provider_updates(task, {name: task.client.providers[name] for name in sampled}):
            clipped = self.noise.clip(change)
            if clipped is None:
                self.discarded[task.client.id] += 1
            else:
                total += clipped
        return ClientUpdate(self.noise.noised_by_client(total, task.clients), sampled=len(sampled))

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        """The update (d,) of each of `providers`, before it is clipped."""
        return task.learner.provider_changes(task.weights, providers, self.local, task.stream)

    def accumulator(self, weights: Tensor, state: State) -> Sum:
        return Sum(weights, state, self.aggregate)

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        """The outcome of a round from `weights` (d,), with the server's noise on the sum, if it adds any."""
        total = self.noise.noised_by_server(received.total)
        return Aggregate(total, weights + total * (self.server_learning_rate / self.divisor))


class Settings(RecordedSettings):
    """Of FL-PROVIDER-DP: either the rates or the fixed numbers of the sampling are given.

    Attributes:
        provider_rate, client_rate: Chance of a provider whose client takes part, and of a client.
        clients_per_round, providers_per_client: How many are drawn, in place of the rates.
        placement: Who draws the noise.
        server_learning_rate: Factor on the averaged noisy update.
        max_weight_noise: The most noise, as a standard deviation, that the whole run may leave in a weight; the server
            learning rate is lowered to keep to it. It follows from public numbers, so it costs no privacy.
    """

    provider_rate: float | None = Field(default=None, gt=0, le=1)
    client_rate: float = Field(default=1.0, gt=0, le=1)
    clients_per_round: int | None = Field(default=None, ge=1)
    providers_per_client: int | None = Field(default=None, ge=1)
    placement: NoisePlacement = NoisePlacement.SERVER
    server_learning_rate: float = Field(default=1.0, gt=0)
    max_weight_noise: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_kind_of_sampling(self) -> Self:
        given = [number is not None for number in (self.clients_per_round, self.providers_per_client)]
        if (self.provider_rate is None) != all(given) or any(given) != all(given):
            raise ValueError(
                "give provider_rate, or both of clients_per_round and providers_per_client; set the others to null"
            )
        if any(given) and self.client_rate != 1:
            raise ValueError("client_rate goes with provider_rate; with fixed numbers, leave it at 1")
        return self

    @model_validator(mode="after")
    def _nothing_is_rounded_before_the_noise(self) -> Self:
        if self.codec != "float32" and self.placement is NoisePlacement.SERVER:
            raise ValueError(
                f"codec {self.codec} with placement server would round sums that have no noise yet, and the bound on a "
                "provider's update doesn't cover that; use placement client_full"
            )
        return self

    @model_validator(mode="after")
    def _shares_are_all_there_and_hidden(self) -> Self:
        if (self.placement is NoisePlacement.CLIENT_SHARE) != (self.secure_aggregation is not None):
            raise ValueError(
                "placement client_share and secure_aggregation go together: a share of the noise protects a sum, not "
                "the update that it is added to"
            )
        if self.secure_aggregation and self.client_rate != 1:
            raise ValueError(
                "with secure_aggregation leave client_rate at 1, for each client draws its share of the noise"
            )
        if self.secure_aggregation and self.secure_aggregation.tolerated_losses:
            raise ValueError(
                "leave secure_aggregation.tolerated_losses at 0: the noise needs every client's share"
            )
        return self

    def largest_coordinate(self, clients: Sequence[Client]) -> float:
        noise = self._noise(sizes_of(clients))
        largest = max(len(client.providers) for client in clients) * self.clip_norm
        return largest + LARGEST_DRAW * noise.noise_multiplier * noise.clip_norm

    def clients_in_a_round(self, clients: Sequence[Client]) -> int:
        sizes = sizes_of(clients)
        return self._sampling(sizes).most_clients(sizes)

    def build(self, clients: Sequence[Client]) -> ProviderDP:
        sizes = sizes_of(clients)
        sampling, noise = self._sampling(sizes), self._noise(sizes)
        divisor, rate = sampling.expected(sizes), self.server_learning_rate
        if self.max_weight_noise is not None:
            per_round = noise.std_in_sum(sampling.most_clients(sizes)) * rate / divisor
            rate /= max(1.0, per_round * math.sqrt(self.rounds) / self.max_weight_noise)
        return ProviderDP(sampling, noise, divisor, self.local, rate)

    def guarantee(self, clients: Sequence[Client]) -> Guarantee:
        sizes, method = sizes_of(clients), self.build(clients)
        sigma = method.noise.noise_multiplier
        with accounting_problems():
            scenario = self._scenario(sizes).with_changes(noise_multiplier=sigma)

        def released(rounds: int) -> list[Event]:
            return scenario.with_changes(rounds=rounds).events(self.sampling_rule)

        rounds = self.rounds
        if self.target_epsilon is not None and self.noise_multiplier is not None:
            rounds = rounds_within(self.target_epsilon, self.delta, released, at_most=self.rounds)
        with accounting_problems():
            record = RecordTerms(
                sampling=method.sampling.recorded(sizes),
                noise=Noise(
                    multiplier=sigma,
                    placement=self.placement.value,
                    release_view=RELEASE_VIEW[self.placement],
                ),
                clip_norm=self.clip_norm,
                normalizer=method.divisor,
                server=ServerStep(rule="sum", learning_rate=method.server_learning_rate),
            )
        return Guarantee(
            unit=Unit.PROVIDER,
            delta=self.delta,
            released=released,
            rounds=rounds,
            seen_by_server=self.placement is not NoisePlacement.SERVER,
            budget=self.target_epsilon,
            record=record,
        )

    def _sampling(self, sizes: Sizes) -> ProviderSampling:
        if self.provider_rate is not None:
            return PoissonSampling(self.provider_rate, self.client_rate)
        sampling = FixedSizeSampling(self.clients_per_round or 0, self.providers_per_client or 0)
        sampling.check(sizes)
        return sampling

    def _noise(self, sizes: Sizes) -> GaussianSum:
        """σ as it is given, or the smallest that keeps to the target."""
        sigma = self.noise_multiplier
        if sigma is None:
            sigma = noise_multiplier_for(self._scenario(sizes), self.target_epsilon or 0, self.sampling_rule)
        return GaussianSum(self.clip_norm, sigma, self.placement)

    def _scenario(self, sizes: Sizes) -> Scenario:
        """Of all planned rounds, but for the noise multiplier."""
        sampling = self._sampling(sizes).scenario(sizes)
        with accounting_problems():
            return Scenario(
                **sampling,
                rounds=self.rounds,
                delta=self.delta,
                clients=len(sizes),
                placement=self.placement.value,
                release_view=RELEASE_VIEW[self.placement],
            )


def sizes_of(clients: Sequence[Client]) -> Sizes:
    """How many providers each client has."""
    return {client.id: len(client.providers) for client in clients}
