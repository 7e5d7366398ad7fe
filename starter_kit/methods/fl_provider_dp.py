"""Federated learning with provider-level differential privacy: the baseline of track 2.

Guarantees that the sequence of released models is (ε, δ)-indistinguishable whether or not any one provider, with
all its documents, takes part (add/remove adjacency). The accountant computes ε for `rounds` sampled Gaussian
mechanisms. Where clients are sampled too, it assumes that everybody sees which clients take part, because a client's
coin decides for all its providers at once. The proof is in docs/proofs/fl-provider-dp.md. In each round

1. clients and their providers are sampled as the settings say (`evaluator.mechanisms.sampling`);
2. each sampled provider trains from the round's model with a fresh optimizer, on its own examples only;
3. its update, one vector over all trained tensors, is clipped to L2 norm `clip_norm`;
4. the clipped updates are summed, and Gaussian noise is added as `placement` says (`starter_kit.dp.gaussian_sum`), even
   where nobody was sampled;
5. the noisy sum is divided by a public constant, the expected number of sampled providers, and added to the model.

Assumes ideal real arithmetic and, with `server`, that clients trust the server with sums that have no noise yet.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from evaluator.accounting.calibration import noise_multiplier_for
from evaluator.mechanisms.events import Event
from evaluator.mechanisms.mechanism import Mechanism
from evaluator.mechanisms.noise import Noise, Placement
from evaluator.mechanisms.sampling import Exactly, RandomAllocation, Sampling, Sizes
from evaluator.records.server_steps import ServerStep, SumStep
from starter_kit.dp.gaussian_sum import GaussianSum
from starter_kit.dp.guarantee import Guarantee, accounting_problems, rounds_within
from starter_kit.dp.noise import LARGEST_DRAW
from starter_kit.dp.sampling import draw
from starter_kit.federation.rounds import Aggregate, Client, ClientTask, ClientUpdate, Sum
from starter_kit.federation.server_optimizers import SERVER_OPTIMIZERS, ServerOptimizerPlugin
from starter_kit.learning.local_training import LocalTraining, State
from starter_kit.plugin import WRITER, reported
from starter_kit.randomness import Stream
from starter_kit.settings.plan import Plan, RecordTerms
from starter_kit.settings.run_settings import RecordedSettings


@dataclass(frozen=True)
class ProviderDP:
    """FL-PROVIDER-DP.

    Attributes:
        sampling: Who takes part in a round.
        noise: The mechanism that clips an update and covers the sum.
        divisor: The expected number of sampled providers, a public constant: never the realized number.
        server_learning_rate: The factor on the averaged noisy update; post-processing.
        discarded: How many updates of each client were not finite. Private: it stays at the client, and is never shown,
            logged or sent.
        server_optimizer: In place of the server learning rate, how the server moves the model by the averaged noisy
            update; post-processing.
    """

    sampling: Sampling
    noise: GaussianSum
    divisor: float
    local: LocalTraining
    server_learning_rate: float = 1.0
    discarded: Counter[int] = field(default_factory=Counter, repr=False)
    server_optimizer: ServerOptimizerPlugin | None = None

    def choose_clients(self, clients: Sequence[int], stream: Stream) -> list[int]:
        return draw(self.sampling.clients(len(clients)), clients, self.noise.keystream)

    def client_update(self, task: ClientTask) -> ClientUpdate:
        # Clipped, summed and noised where the model trains: on a GPU, the vectors of providers never leave it.
        task = replace(task, weights=task.weights.to(task.learner.device))
        total = torch.zeros_like(task.weights)
        sampled = self.sampled(task)
        for change in self.provider_updates(task, {name: task.client.providers[name] for name in sampled}):
            clipped = self.noise.clip(change)
            if clipped is None:
                self.discarded[task.client.id] += 1
            else:
                self.noise.add(total, clipped, task.clients)
            # As large as all weights: the next provider trains without them in memory.
            del change, clipped
        return ClientUpdate(self.noise.noised_by_client(total, task.clients).cpu(), sampled=len(sampled))

    def sampled(self, task: ClientTask) -> list[str]:
        """Return the client's providers that take part in the round."""
        law, providers = self.sampling.providers(len(task.client.providers)), list(task.client.providers)
        return draw(law, providers, self.noise.keystream, round_number=task.round, state=task.state)

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        """Yield the update (d,) of each of `providers`, before it is clipped, on the device of `task.weights`."""
        return task.learner.provider_changes(task.weights, providers, self.local, task.stream)

    def accumulator(self, weights: Tensor, state: State) -> Sum:
        return Sum(weights, state, self.aggregate)

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        total = self.noise.noised_by_server(received.total)
        if self.server_optimizer is None:
            return Aggregate(total, weights + total * (self.server_learning_rate / self.divisor))
        with reported(self.server_optimizer):
            return Aggregate(total, self.server_optimizer.step(weights, total / self.divisor, state))


class Settings(RecordedSettings):
    """Settings of FL-PROVIDER-DP.

    Attributes:
        sampling: Who takes part in a round.
        placement: Who draws the noise.
        server_learning_rate: The factor on the averaged noisy update.
        max_weight_noise: The largest standard deviation of the noise that the whole run may add to a weight;
        the server learning rate is lowered accordingly. The result follows from public numbers, so this
        costs no privacy.
        server_optimizer: How the server applies the averaged noisy update, instead of using the server
        learning rate; null to add the update.
    """

    sampling: Sampling
    placement: Placement = Placement.SERVER
    server_learning_rate: float = Field(default=1.0, gt=0)
    max_weight_noise: float | None = Field(default=None, gt=0)
    server_optimizer: Annotated[ServerOptimizerPlugin | None, SERVER_OPTIMIZERS.reader, WRITER] = None

    def conflicts(self) -> Iterator[str]:
        yield from super().conflicts()
        if self.server_optimizer and (self.server_learning_rate != 1 or self.max_weight_noise is not None):
            yield (
                f"server_optimizer {self.server_optimizer} has a learning rate of its own; leave server_learning_rate "
                "at 1 and max_weight_noise at null"
            )
        if self.codec != "float32" and self.placement is Placement.SERVER:
            yield (
                f"codec {self.codec} with placement server would round sums that have no noise yet, and the bound on a "
                "provider's update doesn't cover that; use placement client_full"
            )
        if (self.placement is Placement.CLIENT_SHARE) != (self.secure_aggregation is not None):
            yield (
                "placement client_share and secure_aggregation go together: a share of the noise protects a sum, not "
                "the update that it is added to"
            )
        if isinstance(self.sampling, RandomAllocation):
            if self.placement is not Placement.SERVER:
                yield (
                    f"with sampling.type random_allocation and placement {self.placement}, a round that is interrupted "
                    "and repeated would show its providers twice, which isn't accounted; use placement server"
                )
            if self.replayable:
                yield (
                    "with sampling.type random_allocation, who takes part follows from draws of an earlier round, and "
                    "replayable covers rounds on their own; leave it at false"
                )
        if self.secure_aggregation and not isinstance(self.sampling.clients(1), Exactly):
            yield "with secure_aggregation leave sampling.client_rate at 1: each client draws its share of the noise"
        if self.secure_aggregation and self.secure_aggregation.tolerated_losses:
            yield "leave secure_aggregation.tolerated_losses at 0: the noise needs every client's share"

    def plan(self, clients: Sequence[Client]) -> Plan:
        mechanism = self._mechanism(sizes_of(clients))

        def released(rounds: int) -> list[Event]:
            return mechanism.events(self.sampling_rule, rounds)

        rounds = self.rounds
        if self.target_epsilon is not None and self.noise_multiplier is not None:
            rounds = rounds_within(self.target_epsilon, self.delta, released, at_most=self.rounds)
        guarantee = Guarantee(
            unit=mechanism.unit,
            delta=self.delta,
            released=released,
            seen_by_server=self.placement is not Placement.SERVER,
            budget=self.target_epsilon,
        )
        method = self._method(mechanism, clients)
        with accounting_problems():
            server = self.server_step(method)
        return Plan(
            clients=clients,
            method=self.extend(method, len(clients)),
            rounds=rounds,
            most_clients=mechanism.sampling.clients(len(clients)).most,
            coordinate_bound=self._coordinate_bound(method, clients),
            guarantee=guarantee,
            record_terms=RecordTerms(
                mechanism=mechanism, clip_norm=self.clip_norm, normalizer=method.divisor, server=server
            ),
        )

    def extend(self, method: ProviderDP, clients: int) -> ProviderDP:
        """Return the method of a derived class, built from `method`, for this number of clients."""
        return method

    def server_step(self, method: ProviderDP) -> ServerStep:
        """Return what `aggregate` of the method does with the noised sum, for the record: the evaluator replays it."""
        if method.server_optimizer:
            return method.server_optimizer.recorded()
        return SumStep(learning_rate=method.server_learning_rate)

    def _mechanism(self, sizes: Sizes) -> Mechanism:
        """Return the mechanism with the σ of the settings, or with the smallest σ that stays within the target."""
        with accounting_problems():
            mechanism = Mechanism(
                sampling=self.sampling.fitted(sizes),
                noise=Noise(
                    multiplier=self.noise_multiplier or 1.0,
                    placement=self.placement,
                    secure_aggregation="simulated" if self.secure_aggregation else "none",
                ),
                clients=len(sizes),
            )
            if self.noise_multiplier is not None:
                return mechanism
            return mechanism.with_noise_multiplier(
                noise_multiplier_for(
                    mechanism,
                    epsilon=self.target_epsilon or 0,
                    delta=self.delta,
                    rounds=self.rounds,
                    rule=self.sampling_rule,
                )
            )

    def _method(self, mechanism: Mechanism, clients: Sequence[Client]) -> ProviderDP:
        sampling, noise = mechanism.sampling, GaussianSum(self.clip_norm, mechanism.noise)
        divisor, rate = sampling.expected_providers(sizes_of(clients)), self.server_learning_rate
        if self.max_weight_noise is not None:
            per_round = noise.std_in_sum(sampling.clients(len(clients)).most) * rate / divisor
            rate /= max(1.0, per_round * math.sqrt(self.rounds) / self.max_weight_noise)
        return ProviderDP(sampling, noise, divisor, self.local, rate, server_optimizer=self.server_optimizer)

    def _coordinate_bound(self, method: ProviderDP, clients: Sequence[Client]) -> float:
        """Return the largest value of a coordinate: the sum of a client's clipped updates and the largest noise."""
        largest = max(len(client.providers) for client in clients) * self.clip_norm
        return largest + LARGEST_DRAW * method.noise.noise.multiplier * self.clip_norm


def sizes_of(clients: Sequence[Client]) -> Sizes:
    """Return the number of providers of each client."""
    return {client.id: len(client.providers) for client in clients}
