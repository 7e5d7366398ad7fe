"""Federated averaging with Laplace output perturbation (APPFL's notes on differential privacy, example 1).

Guarantees that all messages of a run together are (ε, δ)-indistinguishable when any one record, a question with its
page and answer, is replaced by another (docs/proofs/laplace-fedavg.md). In each round every client p

1. takes the gradient of each of its I_p records at the round's model w, clipped to L1 norm C;
2. steps to z_p = w − η·(1/I_p)·Σ of these gradients;
3. adds Laplace noise of scale Δ_p/ε̄ in each coordinate, with Δ_p = 2Cη/I_p, and sends z_p − w.

The server takes the mean of the z_p, weighted by I_p/I; the numbers of records, I_p and I, are public.

Limitations:

- A record is one question. Nothing is guaranteed about a provider, who has many questions, nor about a client.
- L1 norms grow with the number of weights d, and so does the noise that covers them: the noise of a message has an
  expected L1 norm of d·Δ_p/ε̄, its signal one of at most Cη = Δ_p·I_p/2, so that their ratio is at least 2d/(I_p·ε̄). At
  10⁵ weights and a few hundred records that is near a thousand, and next to nothing is learned. Train few weights.
- Δ_p is a bound for this one step. Where clients take several local steps, as implementations of the source do, it
  bounds nothing; and where gradients are clipped in L2, as they do, the L1 norm may exceed C by a factor of √d. Nor is
  ε̄ the ε of the run: rounds are composed here, and the run reports the total.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.events import FedAvgLaplace
from evaluator.mechanisms.units import Adjacency
from starter_kit.dp.laplace_release import LaplaceRelease
from starter_kit.federation.rounds import Aggregate, Client, ClientTask, ClientUpdate, Message
from starter_kit.learning.local_training import State
from starter_kit.randomness import Stream
from starter_kit.settings.laplace import LaplaceSettings, records


@dataclass(frozen=True)
class LaplaceFedAvg:
    """Federated averaging with Laplace noise, η the learning rate and I_p the records of each client."""

    release: LaplaceRelease
    learning_rate: float
    records: Mapping[int, int]

    def choose_clients(self, clients: Sequence[int], stream: Stream) -> list[int]:
        return list(clients)

    def client_update(self, task: ClientTask) -> ClientUpdate:
        gradients = (task.learner.gradient(task.weights, [one], 1) for one in task.client.examples)
        total = self.release.clipped_sum(gradients, len(task.weights))
        step = -self.learning_rate / self.records[task.client.id] * total
        message = self.release.noised(step, self.sensitivity(task.client.id))
        return ClientUpdate(message, sampled=len(task.client.providers))

    def sensitivity(self, client: int) -> float:
        """Return Δ_p, how far one record of the client moves its step in L1 norm."""
        return FedAvgLaplace.sensitivity_of(self.release.clip_norm, self.learning_rate, self.records[client])

    def event(self, rounds: int) -> FedAvgLaplace:
        """Return the event of a number of rounds for a record of the smallest client, the worst one."""
        smallest = min(self.records, key=lambda client: self.records[client])
        return FedAvgLaplace(
            adjacency=Adjacency.REPLACE,
            rounds=rounds,
            clip_norm=self.release.clip_norm,
            learning_rate=self.learning_rate,
            examples=self.records[smallest],
            scale=self.release.relative_scale * self.sensitivity(smallest),
        )

    def accumulator(self, weights: Tensor, state: State) -> "MeanByRecords":
        return MeanByRecords(weights, self.records)


class MeanByRecords:
    """Accumulates the sum of the messages (d,), and their mean weighted by each client's number of `records`."""

    def __init__(self, weights: Tensor, records: Mapping[int, int]) -> None:
        self._weights = weights
        self._records = records
        self._total = torch.zeros_like(weights)
        self._step = torch.zeros_like(weights)

    def add(self, message: Message) -> None:
        self._total += message.vector
        self._step += message.vector * (self._records[message.client] / sum(self._records.values()))

    def result(self) -> Aggregate:
        return Aggregate(self._total, self._weights + self._step)


class Settings(LaplaceSettings):
    """Settings of FedAvg with Laplace noise: `learning_rate` is η."""

    learning_rate: float = Field(gt=0)

    def build(self, clients: Sequence[Client], release: LaplaceRelease) -> LaplaceFedAvg:
        for client, count in records(clients).items():
            if count < 2:
                raise ProblemError.of(
                    ErrorCode.CONFIGURATION,
                    where=f"client {client}",
                    expected="at least 2 training questions at every client",
                    found=count,
                )
        return LaplaceFedAvg(release, self.learning_rate, records(clients))
