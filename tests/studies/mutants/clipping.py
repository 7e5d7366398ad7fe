"""Mutants whose bound on a provider's update is wrong."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from starter_kit.dp.gaussian_sum import GaussianSum
from starter_kit.federation.rounds import ClientTask, ClientUpdate
from starter_kit.methods.fl_provider_dp import ProviderDP

# The number of pieces of a vector that a mutant clips by themselves, as if they were tensors.
PIECES = 4
LARGE = 100_000


@dataclass(frozen=True)
class Unclipped(GaussianSum):
    """Not clipped at all."""

    def clip(self, update: Tensor) -> Tensor | None:
        return update if bool(update.isfinite().all()) else None


@dataclass(frozen=True)
class ClippedByPiece(GaussianSum):
    """Each tensor clipped to the whole bound, in place of all together (Opacus' per-layer clipping, misconfigured)."""

    pieces: int = PIECES

    def clip(self, update: Tensor) -> Tensor | None:
        parts = [super(ClippedByPiece, self).clip(part) for part in update.chunk(self.pieces)]
        whole = [part for part in parts if part is not None]
        return torch.cat(whole) if len(whole) == len(parts) else None


@dataclass(frozen=True)
class ClippedByCoordinate(GaussianSum):
    """Each coordinate clipped to the bound (torch's clip_grad_value_ in place of clip_grad_norm_)."""

    def clip(self, update: Tensor) -> Tensor | None:
        return update.clamp(-self.clip_norm, self.clip_norm) if bool(update.isfinite().all()) else None


@dataclass(frozen=True)
class ClippedWithoutTied(GaussianSum):
    """The norm is that of all tensors but the last, as if that one were a tied copy."""

    def clip(self, update: Tensor) -> Tensor | None:
        first = len(update) // 2
        norm = float(update[:first].double().norm())
        scale = min(1.0, self.clip_norm / max(norm, 1e-30))
        return update * scale if bool(update.isfinite().all()) else None


@dataclass(frozen=True)
class ReleasedTwice(GaussianSum):
    """A tied tensor is clipped once and released under both of its names."""

    def clip(self, update: Tensor) -> Tensor | None:
        clipped = super().clip(update)
        return (
            None
            if clipped is None
            else torch.cat([2 * clipped[: len(clipped) // 2], clipped[len(clipped) // 2 :]])
        )


@dataclass(frozen=True)
class ClippedWithNaN(GaussianSum):
    """NaN passes: min(1, S/norm) of a norm that is NaN."""

    def clip(self, update: Tensor) -> Tensor | None:
        norm = update.double().norm()
        scaled: Tensor = update.double() * torch.clamp(self.clip_norm / norm, max=1.0)
        return scaled.to(torch.float32)


@dataclass(frozen=True)
class ClippedInSinglePrecision(GaussianSum):
    """The norm overflows in float32 to infinity, and infinity is taken for a norm that needs no clipping."""

    def clip(self, update: Tensor) -> Tensor | None:
        norm = float(update.norm())
        if norm != norm or not bool(update.isfinite().all()):
            return None
        scale = self.clip_norm / norm if self.clip_norm < norm < float("inf") else 1.0
        return (update.double() * scale).float()


@dataclass(frozen=True)
class ClippedAbove(GaussianSum):
    """Clipped only where the norm is above some multiple of the bound: a threshold that is off."""

    threshold: float = 2.0

    def clip(self, update: Tensor) -> Tensor | None:
        clipped = super().clip(update)
        is_short = float(update.double().norm()) <= self.threshold * self.clip_norm
        return clipped if clipped is None or not is_short else update


@dataclass(frozen=True)
class ClippedToMore(GaussianSum):
    """Clipped to a slightly larger norm."""

    factor: float = 1.02

    def clip(self, update: Tensor) -> Tensor | None:
        return replace(self, clip_norm=self.clip_norm * self.factor)._super_clip(update)

    def _super_clip(self, update: Tensor) -> Tensor | None:
        return super().clip(update)


@dataclass(frozen=True)
class UnclippedInLargeModels(GaussianSum):
    """Not clipped where the model has more than 100,000 parameters, as a fast path may forget it."""

    def clip(self, update: Tensor) -> Tensor | None:
        return update if len(update) > LARGE else super().clip(update)


@dataclass(frozen=True)
class ClippedByRoot(GaussianSum):
    """Scaled by √(S/norm): a missing square."""

    def clip(self, update: Tensor) -> Tensor | None:
        norm = float(update.double().norm())
        if norm != norm or norm == float("inf"):
            return None
        scale: float = min(1.0, self.clip_norm / max(norm, 1e-30)) ** 0.5
        return update * scale


@dataclass(frozen=True)
class ClippedByAnotherLoss(GaussianSum):
    """The norm is of a mean loss over all tokens, and the gradient is of the mean over those that aren't ignored
    (Opacus' fast gradient clipping with `ignore_index`)."""

    not_ignored: float = 0.6

    def clip(self, update: Tensor) -> Tensor | None:
        clipped = super().clip(update * self.not_ignored)
        return None if clipped is None else clipped / self.not_ignored


@dataclass(frozen=True, kw_only=True)
class CountedTwice(ProviderDP):
    """A provider with documents in two batches contributes both, each clipped."""

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        for change in super().provider_updates(task, providers):
            yield change
            yield change


@dataclass(frozen=True, kw_only=True)
class ClippedByExample(ProviderDP):
    """Each example's update is clipped: the unit is the document, and declared to be the provider."""

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        for name, examples in providers.items():
            for number, example in enumerate([*examples, *examples]):
                yield from super().provider_updates(task, {f"{name}/{number}": [example]})


@dataclass(frozen=True, kw_only=True)
class LargeProvidersTwice(ProviderDP):
    """A provider with at least four examples is clipped as two, one for each half of them."""

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        for name, examples in providers.items():
            half = len(examples) // 2 if len(examples) >= 4 else 0
            for part in (examples[:half], examples[half:]):
                if part:
                    yield from super().provider_updates(task, {name: part})


@dataclass(frozen=True, kw_only=True)
class ClippedSum(ProviderDP):
    """A client's sum is clipped, in place of each update: one provider changes what is left of the others."""

    def provider_updates(self, task: ClientTask, providers: dict[str, list[int]]) -> Iterator[Tensor]:
        changes = list(super().provider_updates(task, providers))
        if changes:
            yield torch.stack(changes).sum(dim=0)


@dataclass(frozen=True, kw_only=True)
class AdaptiveWithoutCost(ProviderDP):
    """The clip norm follows the updates' norms, while noise and ε stay those of the first one (adaptive clipping)."""

    def client_update(self, task: ClientTask) -> ClientUpdate:
        grown = replace(self.noise, clip_norm=self.noise.clip_norm * 1.3**task.round)
        return ProviderDP.client_update(replace(self, noise=grown), task)
