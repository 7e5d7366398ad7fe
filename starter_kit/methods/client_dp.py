"""Federated averaging with client-level differential privacy (Geyer, Klein and Nabi 2017, arXiv:1712.07557).

Guarantees that the released models, together with the log of who took part in which round, are (ε, δ)-indistinguishable
whether or not any one client has data. The privacy unit is the client with all its data, the server is trusted, and the
proof is in docs/proofs/client-dp.md. In each round

1. every client flips a coin of probability q, `client_rate`;
2. those whose coin came up heads train from the round's model on all their examples;
3. a client's whole update is clipped to L2 norm S, `clip_norm`;
4. the server adds N(0, σ²S²) once to the sum, even where nobody takes part;
5. the noisy sum is divided by q·N, for N clients, and added to the model.

The run ends before the first round that would exceed `target_epsilon`; how many rounds fit is known in advance.

Differences from the source:

- The published log shows which clients take part. So no amplification by the clients' sampling is claimed: a round is
  the plain Gaussian mechanism with probability q and nothing otherwise, and everybody sees which. And the log shows
  that a client is registered, so what is hidden is its data.
- The divisor is the constant q·N, not the realized number m of clients. Here m is in the log, and dividing by it would
  reveal nothing new. But a round of one client would carry N times the noise of a full one, a round without clients
  couldn't be divided at all, and the proof would fail with any change that hides the log; the constant avoids all
  three.

δ must be well below 1/N, because publishing all data of one client in N is (0, 1/N)-private. With ten clients that is
easily met, and a guarantee for ten units says little. For a provider the same run guarantees less: see the proof.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.events import Event, Gaussian, TwoStage
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.units import PrivacyUnit
from starter_kit.dp.gaussian_sum import GaussianSum
from starter_kit.dp.guarantee import Guarantee, accounting_problems, rounds_within
from starter_kit.dp.sampling import poisson_sample
from starter_kit.federation.rounds import Aggregate, Client, ClientTask, ClientUpdate, Sum
from starter_kit.learning.local_training import LocalTraining, State
from starter_kit.randomness import Stream
from starter_kit.settings.plan import Plan
from starter_kit.settings.run_settings import LocalTrainingSettings, PrivateSettings

# δ < N^-1.1, as is usual for "well below 1/N".
DELTA_EXPONENT = 1.1


@dataclass(frozen=True)
class ClientDP:
    """Client-level DP.

    Attributes:
        client_rate: q.
        noise: The mechanism that clips an update and covers the sum.
        divisor: The expected number of clients, a public constant: never the realized number.
    """

    client_rate: float
    noise: GaussianSum
    divisor: float
    local: LocalTraining

    def choose_clients(self, clients: Sequence[int], stream: Stream) -> list[int]:
        return poisson_sample(clients, self.client_rate, self.noise.keystream)

    def client_update(self, task: ClientTask) -> ClientUpdate:
        trained = task.learner.train(task.weights, task.client.examples, self.local, task.stream, task.state)
        clipped = self.noise.clip(trained.change)
        message = torch.zeros_like(task.weights)
        if clipped is not None:
            self.noise.add(message, clipped, task.clients)
        return ClientUpdate(message, sampled=len(task.client.providers))

    def accumulator(self, weights: Tensor, state: State) -> Sum:
        return Sum(weights, state, self.aggregate)

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        total = self.noise.noised_by_server(received.total)
        return Aggregate(total, weights + total / self.divisor)


class Settings(PrivateSettings, LocalTrainingSettings):
    """Settings of client-level DP: σ and the budget are both required, and at most `rounds` rounds are run.

    Attributes:
        client_rate: q, the client sampling rate.
        codec, secure_aggregation: Fixed, because rounding an update after it was clipped breaks the bound on it.
    """

    target_epsilon: float = Field(gt=0)
    noise_multiplier: float = Field(gt=0)
    client_rate: float = Field(gt=0, le=1)
    codec: Literal["float32"] = "float32"
    secure_aggregation: None = None

    def plan(self, clients: Sequence[Client]) -> Plan:
        if not self.delta < (most := len(clients) ** -DELTA_EXPONENT):
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="delta",
                expected=f"below {most:.3g}, as there are {len(clients)} clients",
                found=self.delta,
            )
        with accounting_problems():
            noise = GaussianSum(self.clip_norm, Noise(multiplier=self.noise_multiplier))
        return Plan(
            clients=clients,
            method=ClientDP(self.client_rate, noise, self.client_rate * len(clients), self.local),
            rounds=rounds_within(self.target_epsilon, self.delta, self.released, at_most=self.rounds),
            guarantee=Guarantee(
                unit=PrivacyUnit.CLIENT,
                delta=self.delta,
                released=self.released,
                budget=self.target_epsilon,
            ),
        )

    def released(self, rounds: int) -> list[Event]:
        """Return the events that a number of rounds releases."""
        gaussian = Gaussian(unit=PrivacyUnit.CLIENT, effective_noise_multiplier=self.noise_multiplier)
        if self.client_rate == 1:
            return [gaussian.model_copy(update={"rounds": rounds})]
        return [
            TwoStage(unit=PrivacyUnit.CLIENT, rounds=rounds, client_rate=self.client_rate, within=gaussian)
        ]
