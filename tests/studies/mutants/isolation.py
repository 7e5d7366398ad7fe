"""Mutants in which one provider influences another's contribution, a later round, or something beside the model."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from starter_kit.federation.rounds import Aggregate, ClientTask, ClientUpdate, Sum
from starter_kit.learning.local_training import State
from starter_kit.methods.fl_provider_dp import ProviderDP

BUFFER, DUAL, MOMENTS = "momentum", "dual", "second moments"


@dataclass(frozen=True, kw_only=True)
class SharedMomentum(ProviderDP):
    """One optimizer for all providers of a round: the momentum of one moves the next."""

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        buffer = torch.zeros_like(task.weights)
        for change in super().provider_updates(task, providers):
            buffer = 0.9 * buffer + change
            yield buffer


@dataclass(frozen=True, kw_only=True)
class SharedSecondMoments(ProviderDP):
    """One optimizer's second moments for all providers, of a round or of the whole run (RMSProp, Adam)."""

    kept: bool = False

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        moments = task.state.get(MOMENTS, torch.zeros_like(task.weights))
        for change in super().provider_updates(task, providers):
            moments = 0.9 * moments + 0.1 * change.square()
            yield change / (moments.sqrt() + 1e-8)
        if self.kept:
            task.state[MOMENTS] = moments


@dataclass(frozen=True, kw_only=True)
class StoppedEarly(ProviderDP):
    """A client sends zeros, and noise, once the sum of its updates has shrunk to a tenth: it takes it for converged."""

    largest: dict[int, float] = field(default_factory=dict, repr=False)
    stopped: set[int] = field(default_factory=set, repr=False)

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        client, changes = task.client.id, list(super().provider_updates(task, providers))
        if changes:
            length = float(torch.stack(changes).sum(dim=0).norm())
            self.largest[client] = max(length, self.largest.get(client, 0.0))
            if length < self.largest[client] / 10:
                self.stopped.add(client)
        yield from [] if client in self.stopped else changes


@dataclass(frozen=True, kw_only=True)
class LongerSteps(ProviderDP):
    """Every ninth step is twice as long if a coordinate of the sum without noise is large."""

    rounds: list[bool] = field(default_factory=list, repr=False)

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        self.rounds.append(float(received.total.abs().max()) > 3 * self.noise.clip_norm)
        usual = super().aggregate(weights, received, state)
        if len(self.rounds) % 9 or not self.rounds[-1]:
            return usual
        return Aggregate(usual.total, 2 * usual.weights - weights)


@dataclass(frozen=True, kw_only=True)
class Continued(ProviderDP):
    """Providers train one after another from each other's weights, not each from the round's model."""

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        moved = torch.zeros_like(task.weights)
        for change in super().provider_updates(task, providers):
            moved = moved + change
            yield moved


@dataclass(frozen=True, kw_only=True)
class CarriedMomentum(ProviderDP):
    """An optimizer that lives from round to round, fed by updates without noise."""

    def client_update(self, task: ClientTask) -> ClientUpdate:
        update = super().client_update(replace(task, state=task.state))
        return update

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        before = task.state.get(BUFFER, torch.zeros_like(task.weights))
        after = before
        for change in super().provider_updates(task, providers):
            after = after + change
            yield change + 0.9 * before
        task.state[BUFFER] = after


@dataclass(frozen=True, kw_only=True)
class NoiselessDual(ProviderDP):
    """A control variate of the clipped sum without its noise, as a dual variable from the client's own model is."""

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        dual = task.state.get(DUAL, torch.zeros_like(task.weights))
        total = torch.zeros_like(task.weights)
        for change in super().provider_updates(task, providers):
            clipped = self.noise.clip(change)
            total = total + (clipped if clipped is not None else 0)
            yield change + 1e6 * dual
        task.state[DUAL] = dual + total


@dataclass(frozen=True, kw_only=True)
class WeightedByCount(ProviderDP):
    """Updates are divided by how many providers take part with them, before they are clipped and after."""

    def client_update(self, task: ClientTask) -> ClientUpdate:
        update = super().client_update(task)
        return replace(update, message=update.message / max(1, update.sampled))


@dataclass(frozen=True, kw_only=True)
class ReportedLoss(ProviderDP):
    """The training loss is reported, without noise."""

    def client_update(self, task: ClientTask) -> ClientUpdate:
        return replace(super().client_update(task), loss=0.5)


@dataclass(frozen=True, kw_only=True)
class PrintedNames(ProviderDP):
    """Participants are printed, as a log of a training loop would."""

    seen: list[str] = field(default_factory=list, repr=False)

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        print("training", *providers)
        yield from super().provider_updates(task, providers)
