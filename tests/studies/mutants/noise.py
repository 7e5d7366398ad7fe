"""Mutants whose noise isn't the claimed one."""

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch
from torch import Tensor

from starter_kit.dp.gaussian_sum import GaussianSum
from starter_kit.dp.laplace import laplace_noise
from starter_kit.dp.noise import standard_normals
from starter_kit.federation.rounds import Aggregate, Sum
from starter_kit.learning.local_training import State
from starter_kit.methods.fl_provider_dp import ProviderDP

SEED = 42
LARGE = 100_000


@cache
def seed_once() -> None:
    """Seed torch's global generator, the first time."""
    torch.manual_seed(SEED)


@dataclass(frozen=True)
class OtherNoise(GaussianSum):
    """Noise that differs from the claimed one as `draw` says, on the client's or the server's side."""

    def draw(self, size: int, std: float) -> Tensor:
        """Return the wrong noise (size,) in place of N(0, std²)."""
        return std * standard_normals(size, self.keystream).float()

    def _noised(self, vector: Tensor, std: float) -> Tensor:
        return vector + self.draw(len(vector), std) if std else vector


@dataclass(frozen=True)
class Scaled(OtherNoise):
    """Times a factor."""

    factor: float = 1.0

    def draw(self, size: int, std: float) -> Tensor:
        return self.factor * super().draw(size, std)


@dataclass(frozen=True)
class WithoutClipNorm(OtherNoise):
    """σ in place of σS."""

    def draw(self, size: int, std: float) -> Tensor:
        return super().draw(size, self.noise.multiplier)


@dataclass(frozen=True)
class VarianceForDeviation(OtherNoise):
    """σ²S² given as the standard deviation."""

    def draw(self, size: int, std: float) -> Tensor:
        return super().draw(size, std**2)


@dataclass(frozen=True)
class DeviationForVariance(OtherNoise):
    """√(σS) given as the standard deviation."""

    def draw(self, size: int, std: float) -> Tensor:
        return super().draw(size, std**0.5)


@dataclass(frozen=True)
class RandLike(OtherNoise):
    """torch.rand_like in place of randn_like: positive, with a seventh of the deviation at its mean."""

    def draw(self, size: int, std: float) -> Tensor:
        return std * torch.from_numpy(self.keystream.uniforms(size).astype(np.float32))


@dataclass(frozen=True)
class Uniform(OtherNoise):
    """Uniform noise of the right variance."""

    def draw(self, size: int, std: float) -> Tensor:
        centered = self.keystream.uniforms(size) - 0.5
        return torch.from_numpy((centered * 12**0.5 * std).astype(np.float32))


@dataclass(frozen=True)
class LaplaceShape(OtherNoise):
    """Laplace noise of the right variance."""

    def draw(self, size: int, std: float) -> Tensor:
        return laplace_noise(size, std / 2**0.5, self.keystream).float()


@dataclass(frozen=True)
class CutOff(OtherNoise):
    """No draw is beyond some standard deviations."""

    largest: float = 3.0

    def draw(self, size: int, std: float) -> Tensor:
        return super().draw(size, std).clamp(-self.largest * std, self.largest * std)


@dataclass(frozen=True)
class NoneInLargeModels(OtherNoise):
    """Hardly any where the model has more than 100,000 parameters."""

    def draw(self, size: int, std: float) -> Tensor:
        return super().draw(size, std) * (1e-6 if size > LARGE else 1.0)


@dataclass(frozen=True)
class TwoPoints(OtherNoise):
    """±σS."""

    def draw(self, size: int, std: float) -> Tensor:
        return torch.from_numpy(np.where(self.keystream.uniforms(size) < 0.5, -std, std).astype(np.float32))


@dataclass(frozen=True)
class Bare(OtherNoise):
    """Some coordinates have no noise."""

    share: float = 0.01

    def draw(self, size: int, std: float) -> Tensor:
        noise = super().draw(size, std)
        noise[:: round(1 / self.share)] = 0
        return noise


@dataclass(frozen=True)
class LowPrecision(OtherNoise):
    """Drawn in bfloat16, with 8 bits of precision."""

    def draw(self, size: int, std: float) -> Tensor:
        return super().draw(size, std).bfloat16().float()


@dataclass(frozen=True)
class Pairs(OtherNoise):
    """Two coordinates each share one draw, times `sign` for the second."""

    sign: float = 1.0
    apart: bool = False

    def draw(self, size: int, std: float) -> Tensor:
        half = super().draw((size + 1) // 2, std)
        other = self.sign * half
        joined = torch.cat([half, other]) if self.apart else torch.stack([half, other], dim=1).reshape(-1)
        return joined[:size]


@dataclass(frozen=True)
class KnownSeed(OtherNoise):
    """From a generator with the seed of the settings, fresh in each round."""

    generator: torch.Generator = field(
        default_factory=lambda: torch.Generator().manual_seed(SEED), repr=False, compare=False
    )

    def draw(self, size: int, std: float) -> Tensor:
        return std * torch.randn(size, generator=self.generator)


@dataclass(frozen=True)
class SameSeed(OtherNoise):
    """From a generator that gets the same seed before each draw."""

    def draw(self, size: int, std: float) -> Tensor:
        return std * torch.randn(size, generator=torch.Generator().manual_seed(SEED))


@dataclass(frozen=True)
class GlobalGenerator(OtherNoise):
    """From torch's global generator, which the program seeds once, as seed_everything(42) in a main function does."""

    def draw(self, size: int, std: float) -> Tensor:
        seed_once()
        return std * torch.randn(size)


@dataclass(frozen=True)
class Telescoping(OtherNoise):
    """Each draw takes the one before it back."""

    last: dict[int, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def draw(self, size: int, std: float) -> Tensor:
        fresh = super().draw(size, std)
        previous = self.last.get(size, torch.zeros(size))
        self.last[size] = fresh
        # Divided, so that each release has the claimed scale.
        return (fresh - previous) / 2**0.5


@dataclass(frozen=True)
class WithMemory(OtherNoise):
    """Half of each draw's variance is that of the one before it: the scale is right, the noise isn't fresh."""

    last: dict[int, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def draw(self, size: int, std: float) -> Tensor:
        fresh = super().draw(size, std)
        previous = self.last.get(size, fresh)
        self.last[size] = fresh
        return (fresh + previous) / 2**0.5


@dataclass(frozen=True)
class OnSignalOnly(OtherNoise):
    """Only where the sum isn't zero, as with sparse gradients."""

    def _noised(self, vector: Tensor, std: float) -> Tensor:
        noised = super()._noised(vector, std)
        return torch.where(vector == 0, vector, noised) if std else vector


@dataclass(frozen=True)
class ByContribution(OtherNoise):
    """The noise is scaled to the largest contribution of the round, not to the bound."""

    def _noised(self, vector: Tensor, std: float) -> Tensor:
        return super()._noised(vector, std * min(1.0, 0.5 + float(vector.norm()) / self.clip_norm))


@dataclass(frozen=True, kw_only=True)
class NotInTheModel(ProviderDP):
    """The reported sum has noise, and the model is moved by the sum without it."""

    def aggregate(self, weights: Tensor, received: Sum, state: State) -> Aggregate:
        noised = super().aggregate(weights, received, state)
        return Aggregate(noised.total, weights + received.total * (self.server_learning_rate / self.divisor))
