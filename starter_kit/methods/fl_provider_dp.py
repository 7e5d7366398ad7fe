"""Federated learning with provider-level differential privacy: the baseline of track 2.

Guarantees that the sequence of released models is (ε, δ)-indistinguishable whether or not any one provider, with
all its documents, takes part (add/remove adjacency). ε is the accountant's for `rounds` Poisson-sampled Gaussian
mechanisms; with `client_rate` below 1, for two-stage rounds in which everybody sees which clients take part, because
a client's coin moves all its providers at once. The proof is in docs/proofs/fl-provider-dp.md. In each round

1. every provider of every participating client flips its own coin with `provider_rate`;
2. each sampled provider trains from the round's model with a fresh optimizer, on its own examples only;
3. its update, one vector over all trained tensors, is clipped to L2 norm `clip_norm`;
4. the clipped updates are summed, and Gaussian noise of standard deviation `noise_multiplier · clip_norm` is added,
   also where nobody was sampled: once by the trusted server (`server`), or by every client to its own message
   (`client_full`), which protects each message as well and costs √clients more noise in the sum;
5. the noisy sum is divided by a public constant, the expected number of sampled providers, and added to the model.

Assumes: idealised real arithmetic; with `server`, that clients trust the server with their un-noised sums.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import torch
from torch import Tensor

from starter_kit.dp.clipping import clip
from starter_kit.dp.keystream import Keystream
from starter_kit.dp.noise import gaussian_noise
from starter_kit.dp.sampling import poisson_sample
from starter_kit.learning import Learner, LocalTraining
from starter_kit.rounds import Aggregate, Client, ClientUpdate


class NoisePlacement(StrEnum):
    """Who adds the noise."""

    SERVER = "server"
    CLIENT_FULL = "client_full"


@dataclass(frozen=True)
class ProviderDP:
    """FL-PROVIDER-DP.

    Attributes:
        providers: Number of training providers of all clients, taken as public (see the proof).
        clip_norm: S, the L2 bound on one provider's update.
        noise_multiplier: σ, the noise's standard deviation in units of `clip_norm`.
        server_learning_rate: Factor on the averaged noisy update; post-processing.
        discarded: How many updates of each client were not finite. Private: for the client's eyes, never shown,
            logged or sent.
    """

    providers: int
    provider_rate: float
    clip_norm: float
    noise_multiplier: float
    local: LocalTraining
    client_rate: float = 1.0
    placement: NoisePlacement = NoisePlacement.SERVER
    server_learning_rate: float = 1.0
    keystream: Keystream = field(default_factory=Keystream, repr=False)
    discarded: Counter[int] = field(default_factory=Counter, repr=False)

    @property
    def expected_providers(self) -> float:
        """The constant that sums are divided by, never the realised number."""
        return self.providers * self.client_rate * self.provider_rate

    def noise_in_sum(self, clients: int) -> float:
        """Standard deviation of the noise in one coordinate of a round's sum over `clients` clients."""
        draws = clients if self.placement is NoisePlacement.CLIENT_FULL else 1
        return self.noise_multiplier * self.clip_norm * float(draws**0.5)

    def choose_clients(self, clients: Sequence[int]) -> list[int]:
        return poisson_sample(clients, self.client_rate, self.keystream)

    def client_update(self, client: Client, weights: Tensor, learner: Learner) -> ClientUpdate:
        total = torch.zeros_like(weights)
        sampled = poisson_sample(list(client.providers), self.provider_rate, self.keystream)
        for provider in sampled:
            update = clip(learner.update(weights, client.providers[provider], self.local), self.clip_norm)
            if update is None:
                self.discarded[client.id] += 1
            else:
                total += update
        if self.placement is NoisePlacement.CLIENT_FULL:
            total += self._noise(weights)
        return ClientUpdate(total, sampled=len(sampled))

    def aggregate(self, weights: Tensor, messages: Iterable[Tensor]) -> Aggregate:
        total = torch.zeros_like(weights)
        for message in messages:
            total += message
        if self.placement is NoisePlacement.SERVER:
            total += self._noise(weights)
        return Aggregate(total, weights + total * (self.server_learning_rate / self.expected_providers))

    def _noise(self, weights: Tensor) -> Tensor:
        return gaussian_noise(len(weights), self.noise_multiplier * self.clip_norm, self.keystream)
