"""Mutants in which one provider influences another's contribution, a later round, or something beside the model."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from starter_kit.federation.rounds import ClientTask, ClientUpdate
from starter_kit.methods.fl_provider_dp import ProviderDP

BUFFER, DUAL = "momentum", "dual"


@dataclass(frozen=True, kw_only=True)
class SharedMomentum(ProviderDP):
    """One optimizer for all providers of a round: the momentum of one moves the next."""

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        buffer = torch.zeros_like(task.weights)
        for change in super().provider_updates(task, providers):
            buffer = 0.9 * buffer + change
            yield buffer


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
