"""The privacy loss of random allocation: a discrete pair that dominates one cycle, in either direction.

In a cycle of B rounds, a unit takes part in one, drawn uniformly. Its dominating pair is P = (1/B)·Σₜ N(eₜ, σ²I)
against Q = N(0, σ²I), in B dimensions (`pairs` says why). The ratio R = dP/dQ is, under Q, the mean of B independent
lognormal variables Yₜ = exp((2xₜ − 1)/2σ²), each of mean 1. It determines both directions:

    removal: H_α(P‖Q) = E[max(0, R − α)],    addition: H_α(Q‖P) = E[max(0, 1 − αR)].

Guarantee: the returned pairs have divergences no smaller than these, for every α. Both are convex functions of R, so R
may be exchanged for any R̂ above it in convex order, and sums of independent variables keep that order. Each Yₜ, and
each sum of two of the variables, is put on the grid e^(i·step) by splitting every value between its two neighbors so
that its mean stays (as in Doroshenko et al., "Connect the Dots", PoPETs 2022). Everything else only lowers R̂: tails
are cut, masses and weights are rounded down by more than their rounding errors, and what they lack counts as R̂ = 0.
Lowering R̂ by b raises H_α(P‖Q) by at most E[b]. So what R̂ lacks of its mean 1 is infinite loss of the removal, and
what it lacks of its mass 1 is infinite loss of the addition. The width of the grid is all that costs tightness.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]

# The width of the grid, relative to the standard deviation of ln R for large σ: it costs about 1e-3 of ε.
RESOLUTION = 0.05
# The most points that a single lognormal variable has on the grid: then the bound is less tight, but quick.
MAX_POINTS = 2**13
# Standard deviations out to which ln Y is followed, under Q and under P.
REACH = 8.8
# What is cut from either end of a sum, relative to its whole.
CUT = 2.0**-62

ULP = 2.0**-53


@dataclass(frozen=True)
class DiscretePair:
    """P and Q with atoms at `losses` (n,), rising, with the masses `p` and `q`; the rest of P has infinite loss."""

    losses: Floats
    p_above: Floats
    q_above: Floats

    @classmethod
    def of(cls, losses: Floats, p: Floats, q: Floats) -> "DiscretePair":
        """Return the pair of these masses (n,)."""
        infinite = max(0.0, 1 - float(p.sum()))
        return cls(losses, _from_above(p, infinite), _from_above(q, 0.0))

    def tails(self, losses: Floats) -> tuple[Floats, Floats]:
        places = np.searchsorted(self.losses, losses, side="right")
        return self.p_above[places], self.q_above[places]

    def extent(self) -> tuple[float, float]:
        return float(self.losses[0]), float(self.losses[-1])


@lru_cache(maxsize=256)
def allocation_pairs(
    rounds: int, noise: float, resolution: float = RESOLUTION
) -> tuple[DiscretePair, DiscretePair]:
    """Return the pairs for a removed and for an added unit that takes part in one of `rounds` rounds.

    Args:
        noise: σ, relative to the bound on the unit's contribution.
    """
    step = max(resolution / math.sqrt(rounds), 2 * REACH / MAX_POINTS) / noise
    ratio = _times(_lognormal(1 / noise, step), rounds)
    losses = ratio.step * np.arange(ratio.first, ratio.end, dtype=np.float64) - math.log(rounds)
    q = ratio.mass * (1 - (ratio.roundings + len(losses)) * ULP)
    p = q * np.exp(losses) * (1 - (8 + np.abs(losses)) * 4 * ULP)
    return DiscretePair.of(losses, p, q), DiscretePair.of(-losses[::-1], q[::-1], p[::-1])


@dataclass(frozen=True)
class _Law:
    """A positive random variable: `mass[i]` at e^((first + i)·step), and what lacks of 1 at zero.

    Attributes:
        roundings: How many relative errors of `ULP` a mass has at most.
    """

    step: float
    first: int
    mass: Floats
    roundings: int

    @property
    def end(self) -> int:
        return self.first + len(self.mass)


def _lognormal(spread: float, step: float) -> _Law:
    """Return the law of Y, with ln Y ~ N(−spread²/2, spread²)."""
    reach = (spread / 2 + REACH) * spread / step
    points = np.arange(-math.ceil(reach), math.ceil(reach) + 1, dtype=np.float64)
    logs = points * step
    # The mass of each cell under Q, and its mean: the mass under P, where ln Y ~ N(spread²/2, spread²).
    mass, mean = (_between(logs / spread + side * spread / 2) for side in (1, -1))
    # The relative error of a normal tail at x is below 4(8 + x²) units, and a tail is at most 1 + 3·spread/step cells.
    farthest = np.abs(logs) / spread + spread / 2 + 1
    error = (4 * ULP * (8 + farthest**2) * (1 + 3 * spread / step))[:-1]
    held = mass > 0
    ratio = np.zeros(len(mass))
    ratio[held] = mean[held] / mass[held] * np.exp(-logs[:-1][held])
    upper = mass * _weights(ratio * (1 - 2 * error) - 1, step)
    split = np.zeros(len(points))
    split[:-1] += (mass - upper) * (1 - error)
    split[1:] += upper * (1 - error)
    return _trimmed(_Law(step, int(points[0]), split, 8))


def _between(ends: Floats) -> Floats:
    """Return the standard normal mass (n − 1,) between neighboring `ends` (n,), from the tail on their side."""
    low, high = ndtr(ends), ndtr(-ends)
    return np.asarray(np.where(ends[:-1] > 0, -np.diff(high), np.diff(low)))


def _weights(excess: Floats, step: float) -> Floats:
    """Return which part (n,) of values goes up a step, if they are `excess` (n,) above 1, relative to where they are.

    Rounded down by more than the error of `excess`, 16 units.
    """
    return np.asarray(np.clip((excess - 16 * ULP) / math.expm1(step), 0, 1))


def _times(law: _Law, count: int) -> _Law:
    """Return the law of a sum of `count` independent variables of this law."""
    if count == 1:
        return law
    half = _times(law, count // 2)
    double = _plus(half, half)
    return _plus(double, law) if count % 2 else double


def _plus(one: _Law, other: _Law) -> _Law:
    """Return the law of a sum of two independent variables on the same grid."""
    parts = [_where_larger(one, other, 0), _where_larger(other, one, 1)]
    parts = [part for part in parts if len(part.mass)]
    first, end = min(part.first for part in parts), max(part.end for part in parts)
    mass = np.zeros(end - first)
    for part in parts:
        mass[part.first - first : part.end - first] += part.mass
    return _trimmed(_Law(one.step, first, mass, max(part.roundings for part in parts) + 1))


def _where_larger(top: _Law, other: _Law, least: int) -> _Law:
    """Return the part of the sum's law in which `top` lies at least `least` points of the grid above `other`.

    The sum of the points i and i − e is 1 + e^(−e·step) times the first, and both where that falls among the points
    and how it is split between two of them depend on e alone. Distances e for which it falls between the same two
    points are taken together.
    """
    least, most = max(least, top.first - other.end + 1), top.end - 1 - other.first
    if most < least:
        return _Law(top.step, top.first, np.zeros(0), 0)
    distances = np.arange(least, most + 1)
    logs = np.log1p(np.exp(-distances * top.step))
    places = np.floor(logs / top.step).astype(np.int64)
    weights = _weights(np.expm1(logs - places * top.step), top.step)
    # `other`, from `most` points below the first of `top` to `least` points below its last.
    size = len(top.mass)
    below = np.zeros(size + most - least)
    start = other.first - (top.first - most)
    held = other.mass[: len(below) - start]
    below[start : start + len(held)] = held
    lowest = int(places[-1])
    mass = np.zeros(size + int(places[0]) - lowest + 2)
    classes = np.flatnonzero(np.diff(places, prepend=places[0] + 1))
    for begin, end in zip(classes, [*classes[1:], len(places)], strict=True):
        place, weight = int(places[begin]) - lowest, weights[begin:end]
        nearest, farthest = int(distances[begin]), int(distances[end - 1])
        window = below[most - farthest : size + most - nearest]
        mass[place : place + size] += top.mass * np.convolve(window, 1 - weight, "valid")
        mass[place + 1 : place + 1 + size] += top.mass * np.convolve(window, weight, "valid")
    roundings = top.roundings + other.roundings + len(distances) + 2 * len(classes) + 8
    return _Law(top.step, top.first + lowest, mass, roundings)


def _trimmed(law: _Law) -> _Law:
    """Return the law without what lies at its ends, where both its mass and its share of the mean are negligible."""
    shares = law.mass * np.exp(law.step * (np.arange(len(law.mass)) - len(law.mass)))
    low = np.cumsum(law.mass) > CUT * law.mass.sum()
    high = np.cumsum(shares[::-1])[::-1] > CUT * shares.sum()
    begin, end = int(np.argmax(low)), len(high) - int(np.argmax(high[::-1]))
    return _Law(law.step, law.first + begin, law.mass[begin:end], law.roundings)


def _from_above(masses: Floats, infinite: float) -> Floats:
    """Return the sums (n + 1,) of the masses (n,) from each place to the end, and `infinite`."""
    return np.asarray(np.minimum(np.cumsum(np.append(masses, infinite)[::-1])[::-1], 1.0))
