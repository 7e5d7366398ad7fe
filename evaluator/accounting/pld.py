"""ε by numerical composition of privacy loss distributions: the official accountant.

Guarantee: the returned ε and δ are upper bounds. Each round's loss is put on a grid so that its hockey-stick curve is
exact on the grid and above the true one between (Doroshenko et al., "Connect the Dots", PoPETs 2022); both directions
of an asymmetric adjacency are taken; whatever leaves the computation counts as infinite loss: cut tails, a Chernoff
bound on what wraps around in the Fourier transform, and a bound on rounding errors. Different rounds are composed as
they are and never averaged. Assumed is exact real-number noise: see docs/privacy.md.

All rounds are composed at once: one transform for each different round, the product of their powers, and one back. The
grid is as coarse as `TOLERANCE` allows, and coarser where `MAX_POINTS` would not do: then the bound is less tight, but
time and memory stay bounded.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import minimize_scalar

from evaluator.accounting.pairs import Floats, Pair, dominating_pairs
from evaluator.mechanisms.events import Event, TwoStage, check_delta, merged

# The share of ε that the grid may cost, by the estimate in `_sketch`, which is made at this δ.
TOLERANCE = 1e-6
REFERENCE_DELTA = 1e-5
# The most points of one transform, and of all of them together.
MAX_POINTS = 2**20
MAX_TOTAL_POINTS = 2**23
# The points of the rough picture of a round from which the grid is chosen.
SKETCH_POINTS = 256
# The mass on each side that may lie outside of the transform's window.
WINDOW_TAIL = 1e-14

ULP = 2.0**-53
# The relative error of the tails of a pair.
TAIL_ERROR = 2.0**-44
# The absolute error of the mass above any loss.
MASS_ERROR = 2.0**-50
# The relative error of a sum over all points.
SUM_ERROR = 2.0**-32
# The absolute error of a difference of two such sums of probabilities.
PROFILE_ERROR = 2.0**-32
# The largest ε of a profile, far beyond any that means something, and small enough for its exponential.
MAX_EPSILON = 500.0


@dataclass(frozen=True)
class _Release:
    """`rounds` rounds of a pair, each of which happens with probability `rate` and visibly doesn't otherwise."""

    pair: Pair
    rate: float
    rounds: int


@dataclass(frozen=True)
class Losses:
    """A privacy loss on the grid: `mass[i]` at (first + i)·interval, and `infinite` at no bound."""

    interval: float
    first: int
    mass: Floats
    infinite: float

    @property
    def values(self) -> Floats:
        return self.interval * np.arange(self.first, self.first + len(self.mass), dtype=np.float64)

    def log_moment(self, theta: float) -> float:
        """Return ln E[e^(θL)], over the finite losses."""
        held = self.mass > 0
        exponents = theta * self.values[held]
        top = float(exponents.max())
        return top + math.log(float(self.mass[held] @ np.exp(exponents - top)))

    def delta(self, epsilon: float) -> float:
        above = max(0, math.floor(epsilon / self.interval) + 1 - self.first)
        excess = -np.expm1(epsilon - self.values[above:])
        return min(1.0, self.infinite + float(self.mass[above:] @ excess))

    def profile(self) -> tuple[Floats, Floats]:
        """Return ε (n,) from 0 on, a step of the grid apart, and δ (n,) at each.

        They end at the largest loss, or at `MAX_EPSILON`.
        """
        last = min(max(0, self.first + len(self.mass)), math.floor(MAX_EPSILON / self.interval))
        epsilons = self.interval * np.arange(last + 1, dtype=np.float64)
        above = np.clip(np.arange(last + 1) + 1 - self.first, 0, len(self.mass))
        # Over the losses from each on: of their masses, and of those times e^−ℓ.
        sums, scaled = _sums_from(self.mass), _sums_from(self.mass * np.exp(-np.maximum(self.values, 0)))
        excess = sums[above] - np.exp(epsilons) * scaled[above]
        deltas = np.clip(self.infinite + excess + PROFILE_ERROR, 0, 1)
        return epsilons, np.asarray(deltas, np.float64)

    def epsilon(self, delta: float) -> float:
        if self.delta(0) <= delta:
            return 0.0
        if self.infinite >= delta:
            return math.inf
        # δ is above `delta` at low·interval, and not so at high·interval.
        low, high = 0, max(0, self.first) + len(self.mass)
        while high - low > 1:
            middle = (low + high) // 2
            if self.delta(middle * self.interval) > delta:
                low = middle
            else:
                high = middle
        # In between, δ(ε) = infinite + Σ mass − e^ε·Σ mass·e^−ℓ, over ℓ from `high` on.
        above = max(0, high - self.first)
        mass, base = self.mass[above:], low * self.interval
        scaled = float(mass @ np.exp(base - self.values[above:]))
        return base + math.log((self.infinite + float(mass.sum()) - delta) / scaled)


def _sums_from(values: Floats) -> Floats:
    """Return the sums (n + 1,) of the values (n,) from each place to the end."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


def epsilon(events: Iterable[Event], delta: float) -> float:
    """Return an upper bound on ε at δ of the composition of `events`, 0 for none.

    The bound is infinite where δ is so small that rounding hides it.

    Raises:
        ValueError: δ is not in (0, 1), or the events don't compose.
    """
    check_delta(delta)
    return max((losses.epsilon(delta) for losses in composed(events)), default=0.0)


def precision(events: Iterable[Event]) -> str:
    """Describe the width of the grid on which the losses of this composition lie."""
    directions = _directions(events)
    if not directions:
        return "exact"
    return f"grid {_interval(directions, [_sketch(releases) for releases in directions]):.3g}"


def composed(events: Iterable[Event]) -> Iterator[Losses]:
    """Yield the losses of the composition of `events` for a removed privacy unit and for an added one.

    There is one where the two are the same, and none where there are no events.

    Raises:
        ValueError: The events don't compose.
    """
    directions = _directions(events)
    sketches = [_sketch(releases) for releases in directions]
    for releases, sketch in zip(directions, sketches, strict=True):
        yield _sum(releases, sketch.tilts, _interval(directions, sketches))


def _directions(events: Iterable[Event]) -> list[list[_Release]]:
    """Return the composition for a removed privacy unit and for an added one; only one where the two are the same."""
    composition = merged(events)
    inner = [event.within if isinstance(event, TwoStage) else event for event in composition]
    rates = [event.client_rate if isinstance(event, TwoStage) else 1.0 for event in composition]
    pairs = [dominating_pairs(event) for event in inner]
    width = max(map(len, pairs), default=0)
    return [
        [
            _Release(choice[min(side, len(choice) - 1)], rate, event.rounds)
            for choice, rate, event in zip(pairs, rates, composition, strict=True)
        ]
        for side in range(width)
    ]


def _on_grid(release: _Release, interval: float) -> Losses:
    """Put one round on the grid: mass between two points is split so that P and Q have the same masses there."""
    lowest, highest = release.pair.extent()
    first = min(0, math.floor(lowest / interval))
    # Above the highest loss, where there is one.
    last = max(0, math.ceil(highest / interval)) + 1
    losses = interval * np.arange(first, last + 1, dtype=np.float64)
    p, q = release.pair.tails(losses)
    between = np.maximum(-np.diff(p), 0)
    width = -math.expm1(-interval)
    upper = (between + np.exp(losses[:-1]) * np.diff(q) + 2 * TAIL_ERROR * p[:-1]) / width
    upper = np.clip(upper, 0, between)
    mass = np.zeros(len(losses))
    mass[0] = 1 - p[0]
    mass[:-1] += between - upper
    mass[1:] += upper
    mass *= release.rate
    mass[-first] += 1 - release.rate
    return Losses(interval, first, mass, release.rate * float(p[-1]) + MASS_ERROR)


@dataclass(frozen=True)
class _Sketch:
    """A rough picture of the sum of all losses, from which the grid and the window of the transform are chosen.

    Attributes:
        tilts: θ at which Chernoff's bounds on what lies below and above the window are best.
        width: From the one bound to the other.
        epsilon: At `REFERENCE_DELTA`.
        interval: The grid on which that is right to `TOLERANCE`.
    """

    tilts: tuple[float, float]
    width: float
    epsilon: float
    interval: float


def _sketch(releases: Sequence[_Release]) -> _Sketch:
    values, mass = _sketched_rounds(releases)
    rounds = np.array([release.rounds for release in releases], dtype=np.float64)
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass)

    def log_moment(theta: float) -> float:
        """Return ln E[e^(θL)] of the sum."""
        exponents = log_mass + theta * values
        top = exponents.max(axis=1, keepdims=True)
        return float(rounds @ (top[:, 0] + np.log(np.exp(exponents - top).sum(axis=1))))

    mean = (values * mass).sum(axis=1, keepdims=True)
    spread = math.sqrt(float(rounds @ ((values - mean) ** 2 * mass).sum(axis=1)))
    # Some losses are all but constant.
    spread = max(spread, 1e-6 * float(np.ptp(values)))

    def quantile(tail: float, side: int) -> tuple[float, float]:
        """Return the loss beyond which, on that side, Chernoff's bound leaves the mass `tail`, and its θ."""

        def bound(log_theta: float) -> float:
            return (log_moment(side * math.exp(log_theta)) - math.log(tail)) / math.exp(log_theta)

        guess = math.log(math.sqrt(-2 * math.log(tail)) / spread)
        best = minimize_scalar(
            bound, bounds=(guess - 8, guess + 8), method="bounded", options={"xatol": 0.02}
        )
        return side * float(best.fun), side * math.exp(float(best.x))

    lowest, lower_tilt = quantile(WINDOW_TAIL, -1)
    highest, upper_tilt = quantile(WINDOW_TAIL, 1)
    epsilon, theta = quantile(REFERENCE_DELTA, 1)
    # Splitting what lies in a cell of width h raises ln E[e^(θL)] of a round by about θ(θ+1)h²/12, and ε by 1/θ of the
    # sum of that, at the θ that belongs to δ.
    interval = math.sqrt(12 * TOLERANCE * epsilon / (float(rounds.sum()) * (theta + 1)))
    return _Sketch((lower_tilt, upper_tilt), highest - lowest, epsilon, interval)


def _interval(directions: Sequence[Sequence[_Release]], sketches: Sequence[_Sketch]) -> float:
    """Return the width of the grid: what the worst direction needs, but no more points than are allowed."""
    lengths = [
        _length(release.pair) + sketch.width
        for releases, sketch in zip(directions, sketches, strict=True)
        for release in releases
    ]
    worst = max(sketches, key=lambda sketch: sketch.epsilon)
    return max(worst.interval, max(lengths) / MAX_POINTS, sum(lengths) / MAX_TOTAL_POINTS)


def _length(pair: Pair) -> float:
    """Return the length of the range that covers the pair's losses and zero."""
    lowest, highest = pair.extent()
    return max(highest, 0) - min(lowest, 0)


def _sketched_rounds(releases: Sequence[_Release]) -> tuple[Floats, Floats]:
    """Return the losses and the masses (rounds, points) of every round on a coarse grid, one row for each round."""
    shape = len(releases), SKETCH_POINTS + 4
    values, mass = np.zeros(shape), np.zeros(shape)
    for row, release in enumerate(releases):
        sketch = _on_grid(release, _length(release.pair) / SKETCH_POINTS)
        values[row, : len(sketch.mass)] = sketch.values
        mass[row, : len(sketch.mass)] = sketch.mass
    return values, mass


def _sum(releases: Sequence[_Release], tilts: tuple[float, float], interval: float) -> Losses:
    """Return the sum of the losses of all rounds, by one Fourier transform of each different one."""
    singles = [(_on_grid(release, interval), release.rounds) for release in releases]
    lowest, highest = (_chernoff(singles, tilt) / interval for tilt in tilts)
    first = math.floor(lowest)
    length = next_fast_len(math.ceil(highest) - first + 1, real=True)
    # Each output of a transform sums its inputs, of total mass 1, through log₂(length) levels of rounding; the power
    # that follows adds a few units more.
    error = ULP * (5 * math.log2(length) + 8)
    product = np.ones(length // 2 + 1, dtype=np.complex128)
    # The largest absolute value that the product can have.
    size = np.ones(len(product))
    relative_error = np.zeros(len(product))
    center, log_finite = 0, 0.0
    for one, rounds in singles:
        middle = round(float(one.mass @ one.values) / interval)
        places = np.arange(one.first - middle, one.first - middle + len(one.mass)) % length
        spectrum = rfft(np.bincount(places, weights=one.mass, minlength=length))
        at_most = np.abs(spectrum) + error
        product *= _power(spectrum, rounds)
        size *= at_most**rounds
        relative_error += rounds * error / at_most
        center += rounds * middle
        log_finite += rounds * math.log1p(-one.infinite)
    mass = (1 + SUM_ERROR) * np.maximum(irfft(product, length), 0)
    # The sum of all errors of the masses, by Parseval and Cauchy-Schwarz, and that of the transform back. What lies
    # below the window comes out at its upper end, which is pessimistic anyway.
    rounding = math.sqrt(2 * float(((size * relative_error) ** 2).sum())) + 2 * error * float(size.sum())
    infinite = -math.expm1(log_finite) + WINDOW_TAIL + rounding
    return Losses(interval, first, np.roll(mass, (center - first) % length), infinite)


def _chernoff(singles: Sequence[tuple[Losses, int]], tilt: float) -> float:
    """Return the loss beyond which the sum has less than `WINDOW_TAIL` of its mass.

    Beyond means above for a positive tilt, and below for a negative one.
    """
    log_moment = sum(rounds * one.log_moment(tilt) for one, rounds in singles)
    return (log_moment * (1 + math.copysign(TAIL_ERROR, log_moment)) - math.log(WINDOW_TAIL)) / tilt


def _power(spectrum: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    if exponent == 1:
        return spectrum
    return np.asarray(np.abs(spectrum) ** exponent * np.exp(1j * exponent * np.angle(spectrum)))
