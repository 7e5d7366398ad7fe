"""Inexact ADMM with Laplace output perturbation (APPFL's notes on differential privacy, example 2).

Guarantees that all messages of a run together are (ε, δ)-indistinguishable when any one record, a question with its
page and answer, is replaced by another (docs/proofs/laplace-iadmm.md). Each client p has its own model z_p, which
should agree with the server's model w, and a dual variable λ_p for that constraint. In each round, for P clients with I
records,

1. the server takes w = (1/P)·Σ (z_p − λ_p/ρ); before the first round, w is the base model;
2. every client takes the gradient of each of its records at its own last z_p, in the first round at w, clipped to L1
   norm C, and moves to z_p = w + (λ_p − (1/I)·Σ of these gradients)/ρ;
3. adds Laplace noise of scale Δ/ε̄ in each coordinate, with Δ = 2C/(ρI), and sends z_p − w;
4. on both sides, λ_p ← λ_p + ρ·(w − z_p), with z_p as it was sent, including its noise. Before the first round λ_p = 0.

So duals and models follow from what was sent, and only the gradients of step 2 touch data: with the noiseless z_p in
step 4, duals would carry data from round to round, and Δ would bound nothing. A round needs every client.

The three limitations listed in `laplace_fedavg` apply here as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.events import AdmmLaplace
from evaluator.mechanisms.units import Adjacency
from starter_kit.dp.laplace_release import LaplaceRelease
from starter_kit.federation.rounds import Aggregate, Client, ClientTask, ClientUpdate, Message
from starter_kit.learning.local_training import State
from starter_kit.randomness import Stream
from starter_kit.settings.laplace import LaplaceSettings, records

# The names in a client's state: z_p and λ_p after its last answer, the round of that answer, and the prefix of z_p and
# λ_p before it.
OWN, DUAL = "own", "dual"
ROUND, EARLIER = "round", "before-"


@dataclass(frozen=True)
class LaplaceIADMM:
    """Inexact ADMM with Laplace noise, ρ the penalty, I all records and P the number of clients."""

    release: LaplaceRelease
    penalty: float
    records: int
    clients: int

    def choose_clients(self, clients: Sequence[int], stream: Stream) -> list[int]:
        return list(clients)

    def client_update(self, task: ClientTask) -> ClientUpdate:
        own, dual = _before(task)
        gradients = (task.learner.gradient(own, [one], 1) for one in task.client.examples)
        mean = self.release.clipped_sum(gradients, len(own)) / self.records
        message = self.release.noised((dual - mean) / self.penalty, self.sensitivity)
        after = {OWN: task.weights + message, DUAL: self.next_dual(dual, message)}
        before = {EARLIER + OWN: own, EARLIER + DUAL: dual}
        task.state.update({ROUND: torch.tensor(task.round), **after, **before})
        return ClientUpdate(message, sampled=len(task.client.providers))

    @property
    def sensitivity(self) -> float:
        """Δ: how far one record moves its client's model, in L1 norm."""
        return AdmmLaplace.sensitivity_of(
            self.release.clip_norm, self.penalty, self.records, Adjacency.REPLACE
        )

    def event(self, rounds: int) -> AdmmLaplace:
        """Return the event of a number of rounds for one record."""
        return AdmmLaplace(
            adjacency=Adjacency.REPLACE,
            rounds=rounds,
            clip_norm=self.release.clip_norm,
            penalty=self.penalty,
            examples=self.records,
            scale=self.release.relative_scale * self.sensitivity,
        )

    def next_dual(self, dual: Tensor, sent: Tensor) -> Tensor:
        """Return λ_p (d,) after a message z_p − w (d,). Client and server compute the same float32 numbers."""
        return dual - self.penalty * sent

    def accumulator(self, weights: Tensor, state: State) -> "DualUpdates":
        return DualUpdates(self, weights, state)


class DualUpdates:
    """Accumulates the messages (d,) of a round from `weights` (d,), and updates each client's λ_p (d,) in `state`."""

    def __init__(self, method: LaplaceIADMM, weights: Tensor, state: State) -> None:
        self._method = method
        self._weights = weights
        self._state = state
        self._total = torch.zeros_like(weights)

    def add(self, message: Message) -> None:
        name = f"{DUAL}-{message.client}"
        dual = self._state.get(name, torch.zeros_like(self._weights))
        self._state[name] = self._method.next_dual(dual, message.vector)
        self._total += message.vector

    def result(self) -> Aggregate:
        duals = torch.stack([self._state[name] for name in sorted(self._state)]).sum(dim=0)
        step = (self._total - duals / self._method.penalty) / self._method.clients
        return Aggregate(self._total, self._weights + step)


def _before(task: ClientTask) -> tuple[Tensor, Tensor]:
    """Return z_p (d,) and λ_p (d,) of the client at the beginning of the round.

    In a round that starts again after an interruption, the client discards its earlier answer, as the server does.

    Raises:
        ValueError: The client's state is of another round.
    """
    state = task.state
    answered = int(state[ROUND]) if state else 0
    if answered == task.round:
        return state[EARLIER + OWN], state[EARLIER + DUAL]
    if answered != task.round - 1:
        raise ValueError(f"client {task.client.id} last answered in round {answered}, not {task.round - 1}")
    if answered:
        return state[OWN], state[DUAL]
    return task.weights, torch.zeros_like(task.weights)


class Settings(LaplaceSettings):
    """Settings of inexact ADMM with Laplace noise: `penalty` is ρ."""

    needs_every_client: ClassVar[bool] = True
    client_vectors: ClassVar[int] = 2

    penalty: float = Field(gt=0)

    def build(self, clients: Sequence[Client], release: LaplaceRelease) -> LaplaceIADMM:
        count = sum(records(clients).values())
        if not count:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="clients",
                expected="training questions at some client",
                found=0,
            )
        return LaplaceIADMM(release, self.penalty, count, len(clients))
