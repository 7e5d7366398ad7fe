"""Dominating pairs: two distributions (P, Q) on a line whose privacy loss bounds that of every neighboring pair.

The privacy loss is L = ln dP/dQ. What an accountant needs of a pair are the tails P(L > ℓ) and Q(L > ℓ), and the range
that holds nearly all of L under P. Hockey-stick divergences are H_α(P‖Q) = sup_A P(A) − α·Q(A); a pair dominates a
mechanism if its H_α is no smaller than that of any two neighboring datasets, for every α, and dominating pairs
compose (Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic Function", 2022).

Why the pairs below dominate, with all contributions of norm at most 1 and noise N(0, σ²):

- Everything follows from one fact. Among sets A of given mass m under N(x), any Gaussian N(y) has
  N(y)(A) ≥ Φ(Φ⁻¹(m) − |x−y|/σ); half-spaces attain it, for all y on a ray from x at once.
- Conditioned on what happens to everyone else, the two outputs are mixtures with equal weights, and H_α is jointly
  convex, so that the worst condition bounds the whole.
- Poisson, `add_remove`: (1−q)N(0) + qN(x) against N(0). At α ≥ 1, q·N(x)(A) − (α−1+q)·N(0)(A) is largest at |x| = 1.
- Poisson, `replace`: (1−q)N(0) + qN(x) against (1−q)N(0) + qN(x'). At α ≥ 1 the subtracted masses have weights
  (α−1)(1−q) and αq, and the fact puts N(0) and N(x') at distances 1 and 2 from x: x' = −x. For α < 1 exchange P and Q:
  H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P).
- Fixed size m of n, `add_remove`: the newcomer x, if drawn, displaces some y from the sample. Given the rest of the
  sample and y this is (1−q)N(y) + qN(x) against N(y), at distance up to 2: the Poisson pair at σ/2, q = m/n.
- Fixed size, `replace`: (1−q)N(y) + qN(x) against (1−q)N(y) + qN(x'), and y, x' may both be at distance 2 from x. At
  α ≥ 1 that is H_α of the Poisson removal pair at σ/2, from either side, and for α < 1 its mirror image: see
  `Symmetrized`. It is no pair of two datasets; Lebeda, Regehr, Kamath and Steinke, "Avoiding Pitfalls for Privacy
  Accounting of Subsampled Mechanisms under Composition" (2024), show what goes wrong if it is taken for one.
- Random allocation, `add_remove`: for a cycle of B rounds, (1/B)·Σₜ N(eₜ) against N(0), in B dimensions. Let the other
  units' draws be given. Round t adds bₜ·g to what the others contribute, where |g| ≤ 1 follows from the history, and bₜ
  is 1 in one round and 0 in the others. From a point (z₁, …, z_B) of the pair, the rounds can be made one after
  another: zₜ·g, plus noise of variance σ²(1 − |g|²) along g and σ² across it. Whichever side of the pair the point is
  from, the rounds then have their distribution on that side, and making them so doesn't raise H_α. The pair's loss is
  computed in `allocation`. Feldman and Shenfeld, "Privacy Amplification by Random Allocation" (2025), and Chua et
  al., "Balls-and-Bins Sampling for DP-SGD" (2024), have the same pair.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from evaluator.accounting.allocation import allocation_pairs
from evaluator.mechanisms.events import (
    AdmmLaplace,
    FedAvgLaplace,
    FixedSizeGaussian,
    Gaussian,
    Laplace,
    PoissonGaussian,
    RandomAllocationGaussian,
    SingleStage,
    UnsupportedError,
)
from evaluator.mechanisms.units import Adjacency

Floats = NDArray[np.float64]
# Standard deviations out to which a Gaussian is followed; what lies beyond, 1e-18, counts as infinite loss.
REACH = 8.8


class Pair(Protocol):
    """Two distributions, represented by the tails of their privacy loss."""

    def tails(self, losses: Floats) -> tuple[Floats, Floats]:
        """Return P(L > ℓ) and Q(L > ℓ), two vectors (n,), at each ℓ of `losses` (n,)."""

    def extent(self) -> tuple[float, float]:
        """Return the lowest and the highest loss of interest: nearly all of P lies between them."""


@dataclass(frozen=True)
class GaussianPair:
    """P = (1−a)·N(0) + a·N(1) and Q = (1−b)·N(0) + b·N(−1), all of deviation σ; the loss grows along the line.

    Attributes:
        noise: σ.
        up: a.
        down: b; not zero if a is.
    """

    noise: float
    up: float
    down: float

    def tails(self, losses: Floats) -> tuple[Floats, Floats]:
        at = self._points(losses) / self.noise
        apart = 1 / self.noise
        none = ndtr(-at)
        p = none if self.up == 0 else (1 - self.up) * none + self.up * ndtr(apart - at)
        q = none if self.down == 0 else (1 - self.down) * none + self.down * ndtr(-apart - at)
        return p, q

    def extent(self) -> tuple[float, float]:
        ends = np.array([math.floor(self.up), math.ceil(self.up)]) + np.array([-REACH, REACH]) * self.noise
        low, high = self._losses(ends)
        return float(low), float(high)

    def _losses(self, points: Floats) -> Floats:
        variance = self.noise**2
        with np.errstate(divide="ignore"):
            p = np.logaddexp(np.log1p(-self.up), np.log(self.up) + (2 * points - 1) / (2 * variance))
            q = np.logaddexp(np.log1p(-self.down), np.log(self.down) - (2 * points + 1) / (2 * variance))
        return np.asarray(p - q)

    def _points(self, losses: Floats) -> Floats:
        """Return the points x (n,) at which the loss is ℓ.

        u = e^(x/σ²) solves a·c·u² + (1−a − e^ℓ(1−b))·u = e^ℓ·b·c, with c = e^(−1/2σ²).
        """
        c = math.exp(-1 / (2 * self.noise**2))
        ratio = np.exp(losses)
        half = (1 - self.up - ratio * (1 - self.down)) / 2
        root = np.hypot(half, c * np.sqrt(self.up * self.down * ratio))
        with np.errstate(divide="ignore", invalid="ignore"):
            # Of the two forms of the solution, the one that doesn't cancel.
            first = (half > 0) | (self.up == 0)
            u = np.where(first, ratio * self.down * c / (half + root), (root - half) / (self.up * c))
            return np.asarray(self.noise**2 * np.log(u))


@dataclass(frozen=True)
class LaplacePair:
    """P = Laplace(0, b) and Q = Laplace(1, b): L is 1/b, or −1/b, with half of the mass of P, or Q."""

    scale: float

    def tails(self, losses: Floats) -> tuple[Floats, Floats]:
        # L > ℓ to the left of this point.
        at = np.clip((1 - losses * self.scale) / 2, 0, 1)
        inside = losses * self.scale < 1
        above_all = losses * self.scale < -1
        p = np.where(inside, 1 - np.exp(-at / self.scale) / 2, 0)
        q = np.where(inside, np.exp((at - 1) / self.scale) / 2, 0)
        return np.where(above_all, 1, p), np.where(above_all, 1, q)

    def extent(self) -> tuple[float, float]:
        return -1 / self.scale, 1 / self.scale


@dataclass(frozen=True)
class Symmetrized:
    """H_α of `pair` for α ≥ 1, and 1 − α + α·H_{1/α} of it below; some of the mass has no loss.

    That is the curve of a pair wherever P(L > 0) + Q(L > 0) ≤ 1 in `pair`, as it is in every removal pair.
    """

    pair: GaussianPair

    def tails(self, losses: Floats) -> tuple[Floats, Floats]:
        p, q = self.pair.tails(np.abs(losses))
        positive = losses >= 0
        return np.where(positive, p, 1 - q), np.where(positive, q, 1 - p)

    def extent(self) -> tuple[float, float]:
        high = self.pair.extent()[1]
        return -high, high


def dominating_pairs(event: SingleStage) -> tuple[Pair, ...]:
    """Return the pairs for one round of `event`: one if it dominates both orders of neighbors, else one for each.

    Where there are two, the first is for a removed unit and the second for an added one.

    Raises:
        UnsupportedError: No pair is known here for the event under its adjacency.
    """
    match event:
        case Gaussian(effective_noise_multiplier=noise):
            return (GaussianPair(noise, 1, 1 if event.adjacency is Adjacency.REPLACE else 0),)
        case PoissonGaussian(sampling_rate=rate, effective_noise_multiplier=noise):
            if event.adjacency is Adjacency.REPLACE:
                return (GaussianPair(noise, rate, rate),)
            return GaussianPair(noise, rate, 0), GaussianPair(noise, 0, rate)
        case FixedSizeGaussian(sampling_rate=rate, effective_noise_multiplier=noise):
            removal = GaussianPair(noise / 2, rate, 0)
            if event.adjacency is Adjacency.REPLACE:
                return (Symmetrized(removal),)
            return removal, GaussianPair(noise / 2, 0, rate)
        case RandomAllocationGaussian(rounds_per_cycle=rounds, effective_noise_multiplier=noise):
            if event.adjacency is Adjacency.REPLACE:
                raise UnsupportedError(
                    "no dominating pair is known here for random allocation under replacement"
                )
            return allocation_pairs(rounds, noise)
        case Laplace(relative_scale=scale):
            return (LaplacePair(scale),)
        case FedAvgLaplace() | AdmmLaplace():
            return dominating_pairs(event.as_laplace())
