"""Mutants whose participants aren't drawn as claimed, or whose rounds show how many there were."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from evaluator.mechanisms.sampling import Binomial, OncePerCycle
from starter_kit.dp.sampling import draw, fixed_size_sample, poisson_sample
from starter_kit.federation.rounds import Aggregate, ClientTask, ClientUpdate, Sum
from starter_kit.learning.local_training import State
from starter_kit.methods.fl_provider_dp import ProviderDP

# From the operating system's entropy.
FRESH = np.random.default_rng()


@dataclass(frozen=True, kw_only=True)
class OtherSampling(ProviderDP):
    """A client's providers are drawn as `sample` says."""

    def sample(self, task: ClientTask, names: Sequence[str], rate: float) -> list[str]:
        """Return the providers that take part."""
        return poisson_sample(names, rate, self.noise.keystream)

    def sampled(self, task: ClientTask) -> list[str]:
        law = self.sampling.providers(len(task.client.providers))
        rate = law.rate if isinstance(law, Binomial) else 1.0
        return self.sample(task, list(task.client.providers), rate)


@dataclass(frozen=True, kw_only=True)
class FixedSize(OtherSampling):
    """A fixed number in place of coins (random.sample)."""

    def sample(self, task: ClientTask, names: Sequence[str], rate: float) -> list[str]:
        return fixed_size_sample(names, round(rate * len(names)), self.noise.keystream)


@dataclass(frozen=True, kw_only=True)
class Truncated(OtherSampling):
    """Coins, of which so many at most are taken that a sample is one deviation above its mean (a full buffer)."""

    def sample(self, task: ClientTask, names: Sequence[str], rate: float) -> list[str]:
        drawn = poisson_sample(names, rate, self.noise.keystream)
        most = math.floor(len(names) * rate + (len(names) * rate * (1 - rate)) ** 0.5)
        return drawn if len(drawn) <= most else fixed_size_sample(drawn, most, self.noise.keystream)


@dataclass(frozen=True, kw_only=True)
class RateBySize(OtherSampling):
    """The larger half of a client's providers has a rate 10 % above the claimed one, the smaller half 10 % below."""

    def sample(self, task: ClientTask, names: Sequence[str], rate: float) -> list[str]:
        ranked = sorted(names, key=lambda name: len(task.client.providers[name]))
        half = len(ranked) // 2
        small = poisson_sample(ranked[:half], 0.9 * rate, self.noise.keystream) if half else []
        return [*small, *poisson_sample(ranked[half:], min(1.0, 1.1 * rate), self.noise.keystream)]


@dataclass(frozen=True, kw_only=True)
class Shuffled(OtherSampling):
    """Epochs of a shuffled list, declared as coins."""

    queues: dict[int, list[str]] = field(default_factory=dict, repr=False)

    def sample(self, task: ClientTask, names: Sequence[str], rate: float) -> list[str]:
        count = max(1, round(rate * len(names)))
        queue = self.queues.get(task.client.id, [])
        if len(queue) < count:
            queue = fixed_size_sample(names, len(names), self.noise.keystream)
            random.SystemRandom().shuffle(queue)
        self.queues[task.client.id] = queue[count:]
        return queue[:count]


@dataclass(frozen=True, kw_only=True)
class OneCoin(OtherSampling):
    """One coin for all providers of a client."""

    def sample(self, task: ClientTask, names: Sequence[str], rate: float) -> list[str]:
        return list(names) if poisson_sample([0], rate, self.noise.keystream) else []


@dataclass(frozen=True, kw_only=True)
class AtLeastOne(OtherSampling):
    """An empty sample gets a provider, as a loader that has no empty batch does."""

    def sample(self, task: ClientTask, names: Sequence[str], rate: float) -> list[str]:
        return poisson_sample(names, rate, self.noise.keystream) or fixed_size_sample(
            names, min(1, len(names)), self.noise.keystream
        )


@dataclass(frozen=True, kw_only=True)
class HigherRate(OtherSampling):
    """A rate 20 % above the claimed one."""

    def sample(self, task: ClientTask, names: Sequence[str], rate: float) -> list[str]:
        return poisson_sample(names, min(1.0, 1.2 * rate), self.noise.keystream)


@dataclass(frozen=True, kw_only=True)
class FavoredProvider(OtherSampling):
    """The first provider of each client always takes part."""

    def sample(self, task: ClientTask, names: Sequence[str], rate: float) -> list[str]:
        return [*names[:1], *poisson_sample(names[1:], rate, self.noise.keystream)]


@dataclass(frozen=True, kw_only=True)
class SameSample(OtherSampling):
    """The sample of the first round, in every round."""

    samples: dict[int, list[str]] = field(default_factory=dict, repr=False)

    def sample(self, task: ClientTask, names: Sequence[str], rate: float) -> list[str]:
        if task.client.id not in self.samples:
            self.samples[task.client.id] = poisson_sample(names, rate, self.noise.keystream)
        return self.samples[task.client.id]


@dataclass(frozen=True, kw_only=True)
class SeededSample(OtherSampling):
    """Coins from the run's seeded stream, which the settings make public."""

    def sample(self, task: ClientTask, names: Sequence[str], rate: float) -> list[str]:
        coins = task.stream.at("sample").random()
        return [name for name in names if coins.random() < rate]


@dataclass(frozen=True, kw_only=True)
class OtherAllocation(ProviderDP):
    """In a cycle, a client's providers take part at the places that `places` draws."""

    drawn: dict[tuple[int, int], np.ndarray] = field(default_factory=dict, repr=False)

    def sampled(self, task: ClientTask) -> list[str]:
        law, names = self.sampling.providers(len(task.client.providers)), list(task.client.providers)
        assert isinstance(law, OncePerCycle)
        cycle, place = law.place(task.round)
        key = (task.client.id, cycle)
        if key not in self.drawn or place == 0:
            self.drawn[key] = self.places(task, len(names), law.rounds, cycle)
        return [name for name, own in zip(names, self.drawn[key], strict=True) if own == place]

    def places(self, task: ClientTask, count: int, rounds: int, cycle: int) -> np.ndarray:
        """Return the places (count,) from 0 to `rounds` − 1."""
        return FRESH.integers(rounds, size=count)


@dataclass(frozen=True, kw_only=True)
class CoinsForAllocation(ProviderDP):
    """Coins of the same rate in every round."""

    def sampled(self, task: ClientTask) -> list[str]:
        names = list(task.client.providers)
        law = self.sampling.providers(len(names))
        assert isinstance(law, OncePerCycle)
        return poisson_sample(names, 1 / law.rounds, self.noise.keystream)


@dataclass(frozen=True, kw_only=True)
class AllocatedOnce(OtherAllocation):
    """The places of the first cycle, in every cycle."""

    def places(self, task: ClientTask, count: int, rounds: int, cycle: int) -> np.ndarray:
        known = next(
            (at for (client, _), at in self.drawn.items() if client == task.client.id and cycle), None
        )
        return super().places(task, count, rounds, cycle) if known is None else known


@dataclass(frozen=True, kw_only=True)
class AllocatedTogether(OtherAllocation):
    """One place for all providers of a client."""

    def places(self, task: ClientTask, count: int, rounds: int, cycle: int) -> np.ndarray:
        return np.full(count, FRESH.integers(rounds))


@dataclass(frozen=True, kw_only=True)
class AllocatedInParts(OtherAllocation):
    """A shuffled list, cut into parts of equal size."""

    def places(self, task: ClientTask, count: int, rounds: int, cycle: int) -> np.ndarray:
        return FRESH.permutation(count) % rounds


@dataclass(frozen=True, kw_only=True)
class SeededAllocation(OtherAllocation):
    """Places from the run's seeded stream, which the settings make public."""

    def places(self, task: ClientTask, count: int, rounds: int, cycle: int) -> np.ndarray:
        coins = task.stream.at("places").random()
        return np.array([int(coins.random() * rounds) for _ in range(count)])


@dataclass(frozen=True, kw_only=True)
class SkippedWhenEmpty(ProviderDP):
    """A round without participants gets no noise and leaves the model as it is (an empty Poisson batch)."""

    participants: list[int] = field(default_factory=list, repr=False)

    def client_update(self, task: ClientTask) -> ClientUpdate:
        update = super().client_update(task)
        self.participants.append(update.sampled)
        return update

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        count = sum(self.participants)
        self.participants.clear()
        return super().aggregate(weights, received, state) if count else Aggregate(received.total, weights)


@dataclass(frozen=True, kw_only=True)
class RealizedCount(SkippedWhenEmpty):
    """The sum is divided by the number of participants, in place of the expected one."""

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        count = max(1, sum(self.participants))
        self.participants.clear()
        total = self.noise.noised_by_server(received.total)
        return Aggregate(total, weights + total * (self.server_learning_rate / count))


@dataclass(frozen=True, kw_only=True)
class SharedDraw(ProviderDP):
    """Providers are drawn in pairs, by one coin each: the rate is right, the coins aren't independent."""

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        every = list(task.client.providers)
        law = self.sampling.providers(len(every[::2]))
        first = set(draw(law, every[::2], self.noise.keystream))
        both = {n: task.client.providers[n] for i, n in enumerate(every) if every[i - i % 2] in first}
        yield from super().provider_updates(task, both)
