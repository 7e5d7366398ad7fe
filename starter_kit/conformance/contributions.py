"""Tests of what one privacy unit contributes: how much, independently of the others, and of earlier rounds.

Each unit's update is huge and in coordinates of its own, and σ is as small as a claim can state. Contributions are
means over the rounds in which a unit took part.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evaluator.messages.examinations import ConformanceTest, Verdict
from starter_kit.conformance.claims import Claims
from starter_kit.conformance.session import Observation, ObservedRun, Releases, releases_of
from starter_kit.conformance.statistics import (
    Array,
    judged,
    laplace_mean_tail,
    largest_correlation,
    measured,
    normal,
    not_made,
)

Bools = NDArray[np.bool_]
# float32 sums of contributions that are clipped exactly.
ROUNDING = 1e-3
# The share of a contribution's length by which it is recognized.
RECOGNIZED = 0.5


@dataclass(frozen=True)
class Reading:
    """The contributions of a sender's units, as far as they can be read.

    Attributes:
        sent: The releases.
        places: The coordinates (units, m) of each unit.
        included: Which unit (releases, units) took part.
        means: The mean contribution (units, m) of each; zero where it never took part.
    """

    sent: Releases
    places: NDArray[np.int64]
    included: Bools
    means: Array

    @property
    def counts(self) -> NDArray[np.int64]:
        """In how many releases each unit (units,) took part."""
        counts: NDArray[np.int64] = self.included.sum(axis=0)
        return counts

    @property
    def blocks(self) -> Array:
        """The releases (n, units, m) in each unit's coordinates."""
        return self.sent.rows[:, self.places]

    def residual(self) -> Array:
        """Return the releases (n, d) without the contributions."""
        rest = self.sent.rows.copy()
        for unit, places in enumerate(self.places):
            rest[np.ix_(self.included[:, unit], places)] -= self.means[unit]
        return rest


def misreading(claims: Claims) -> float:
    """Return the probability that noise hides, or invents, one unit's part in a round."""
    return float(stats.norm.sf(RECOGNIZED * claims.bound / claims.scale))


def readings_of(session: ObservedRun, observations: Sequence[Observation]) -> list[Reading]:
    """Return who contributed what, of each sender's releases."""
    return [read(session, sent) for sent in releases_of(session, observations) if sent.units]


def read(session: ObservedRun, sent: Releases) -> Reading:
    """Return who contributed what to the releases of one sender; contributions are as long as the bound."""
    claims, places = session.claims, session.federation.coordinates[sent.units]
    blocks = sent.rows[:, places]
    if claims.draws_nobody:
        included = np.ones(blocks.shape[:2], dtype=bool)
        return Reading(sent, places, included, blocks.mean(axis=0))
    lengths = np.linalg.norm(blocks, ord=claims.norm, axis=2)
    included = lengths > 0.7 * claims.bound
    means = means_of(blocks, included)
    # Along the contribution itself, noise counts less than in all of its coordinates.
    squares = (means**2).sum(axis=1)
    along = (blocks * means).sum(axis=2) / np.where(squares > 0, squares, np.inf)
    included = along > RECOGNIZED
    return Reading(sent, places, included, means_of(blocks, included))


def means_of(blocks: Array, included: Bools) -> Array:
    """Return the mean (units, m) of blocks (n, units, m) over those that are included; zero where there are none."""
    counts = np.maximum(included.sum(axis=0), 1)
    means: Array = (blocks * included[:, :, None]).sum(axis=0) / counts[:, None]
    return means


def bound_tests(readings: Sequence[Reading], claims: Claims) -> list[ConformanceTest]:
    """Return the tests that no unit contributes more than the claimed bound."""
    return [worst_bound_test("clip-bound", readings, claims), _average_bound_test(readings, claims)]


def worst_bound_test(name: str, readings: Sequence[Reading], claims: Claims) -> ConformanceTest:
    """Return the test that no unit's mean contribution is longer than the bound."""
    worst, p_value, units = 0.0, 1.0, sum(len(reading.places) for reading in readings)
    for reading in readings:
        lengths = np.linalg.norm(reading.means, ord=claims.norm, axis=1)
        for length, count in zip(lengths.tolist(), reading.counts.tolist(), strict=True):
            if count:
                worst = max(worst, length / claims.bound)
                excess = length - claims.bound * (1 + ROUNDING)
                p_value = min(p_value, units * _tail(excess, count, reading.places.shape[1], claims))
    return judged(
        name, "largest mean contribution of one unit over the bound", worst, p_value,
        "the global norm over all tensors, in the order that the claim has",
    )  # fmt: skip


def _tail(excess: float, count: int, coordinates: int, claims: Claims) -> float:
    """Return a bound on the probability that the noise of a mean over `count` releases is longer than `excess`."""
    if excess <= 0:
        return 1.0
    if claims.law == "gaussian":
        return float(stats.chi2.sf(excess**2 * count / claims.scale**2, coordinates))
    return coordinates * laplace_mean_tail(excess / coordinates, claims.scale, count)


def _average_bound_test(readings: Sequence[Reading], claims: Claims) -> ConformanceTest:
    name, measures = "clip-bound-on-average", "mean squared contribution over the squared bound"
    if claims.norm != 2:
        return not_made(name, measures, Verdict.NOT_APPLICABLE, "the bound is in another norm")
    squares = sum(float((reading.blocks[reading.included] ** 2).sum()) for reading in readings)
    count = sum(int(reading.included.sum()) for reading in readings)
    if not count:
        return not_made(name, measures, Verdict.NO_POWER, "no contribution was recognized")
    coordinates, noise, bound = readings[0].places.shape[1], claims.scale**2, claims.bound**2
    largest = bound * (1 + ROUNDING) ** 2
    mean = squares / count - coordinates * noise
    std = ((4 * bound * noise + 2 * coordinates * noise**2) / count) ** 0.5
    # Reading takes those for included whose noise points along the contribution: a little of the excess is chance.
    return judged(name, measures, mean / bound, float(stats.norm.sf((mean - largest) / std)))


def isolation_tests(
    readings: Sequence[Reading], neighbors: Sequence[Reading], changed: set[int], claims: Claims
) -> list[ConformanceTest]:
    """Return the tests that a contribution is the same whoever else takes part, or has data at all.

    Args:
        neighbors: Of neighboring data, in which the data of the units `changed` were removed or replaced.
    """
    return [
        residual_test("isolation-in-a-round", readings, claims),
        residual_test("isolation-in-a-round-of-the-neighbor", neighbors, claims),
        neighbor_test("isolation-from-the-neighbor", readings, neighbors, changed, claims),
    ]


def residual_test(
    name: str, readings: Sequence[Reading], claims: Claims, unread: Sequence[NDArray[np.int64]] = ()
) -> ConformanceTest:
    """Return the test that releases without each unit's mean contribution are the claimed noise, and no more.

    Args:
        unread: Coordinates to leave out of each reading.
    """
    rests = [reading.residual() for reading in readings]
    if unread:
        rests = [np.delete(rest, places, axis=1) for rest, places in zip(rests, unread, strict=True)]
    squares = sum(float((rest**2).sum()) for rest in rests)
    count = sum(rest.size for rest in rests)
    measures = "standard deviation without the mean contributions, over the claimed noise"
    if not count:
        return not_made(name, measures, Verdict.NO_POWER, "nothing was released")
    # The means take a little of the noise away, so only the upper tail is exact.
    return judged(
        name, measures, (squares / count) ** 0.5 / claims.std, _upper_energy(squares, count, claims)
    )


def neighbor_test(
    name: str, readings: Sequence[Reading], neighbors: Sequence[Reading], changed: set[int], claims: Claims
) -> ConformanceTest:
    """Return the test that units contribute the same in two runs, as when the data of others are removed."""
    alone = {
        unit: (mean, count)
        for reading in neighbors
        for unit, mean, count in zip(reading.sent.units, reading.means, reading.counts.tolist(), strict=True)
    }
    squares, count, worst = 0.0, 0, 0.0
    for reading in readings:
        for unit, mean, times in zip(reading.sent.units, reading.means, reading.counts.tolist(), strict=True):
            other, other_times = alone.get(unit, (mean, 0))
            if times and other_times and unit not in changed:
                difference = mean - other
                squares += float((difference**2).sum()) / (1 / times + 1 / other_times)
                count += len(mean)
                worst = max(worst, float(np.linalg.norm(difference, ord=claims.norm)))
    measures = "largest change of a unit's mean contribution, over the bound"
    if not count:
        return not_made(name, measures, Verdict.NO_POWER, "nobody took part twice")
    return judged(name, measures, worst / claims.bound, _upper_energy(squares, count, claims))


def _upper_energy(squares: float, count: int, claims: Claims) -> float:
    """Return the p-value of a sum of squares of `count` noises that is too large."""
    if claims.law == "gaussian":
        return float(stats.chi2.sf(squares / claims.scale**2, count))
    # The variance of a squared Laplace draw is 20 b⁴; 30 leaves room for the tail of the sum.
    z = (squares / claims.scale**2 - 2 * count) / (30 * count) ** 0.5
    return float(stats.norm.sf(z))


def background_test(
    readings: Sequence[Reading], background: NDArray[np.int64], claims: Claims
) -> ConformanceTest:
    """Return the test that noise keeps its scale beside large contributions, where nobody contributes."""
    name, measures = "noise-beside-signal", "noise beside large contributions over the claimed one"
    if not readings:
        return not_made(name, measures, Verdict.NO_POWER, "nobody took part")
    rows = np.concatenate([reading.sent.rows[:, background] for reading in readings])
    squares, count = float((rows**2).sum()), rows.size
    if claims.law == "gaussian":
        p_value = 2 * min(
            float(stats.chi2.cdf(squares / claims.scale**2, count)),
            float(stats.chi2.sf(squares / claims.scale**2, count)),
        )
    else:
        p_value = normal((squares / claims.scale**2 - 2 * count) / (30 * count) ** 0.5)
    ratio = (squares / count) ** 0.5 / claims.std
    return judged(name, measures, ratio, p_value)


def freshness_test(
    first: Sequence[Reading], second: Sequence[Reading], background: NDArray[np.int64]
) -> ConformanceTest:
    """Return the test that two runs of the same settings draw different noise."""
    rows, others = (
        np.concatenate([reading.sent.rows[:, background] for reading in run]) for run in (first, second)
    )
    worst, p_value = largest_correlation(rows, others)
    return judged(
        "noise-of-two-runs", "largest correlation of noise with that of a second run", worst, p_value
    )


def finite_test(observations: Sequence[Observation]) -> ConformanceTest:
    """Return the test that units whose updates aren't finite leave every release and the model finite."""
    bad = sum(
        int((~np.isfinite(vector)).sum())
        for seen in observations
        for vector in (*seen.releases.values(), seen.total, seen.step)
    )
    return measured(
        "not-finite-updates", "numbers that aren't finite, after updates of NaN and infinity", float(bad), 0.0
    )


def carried_state_test(
    rows: Sequence[Array], pattern: Array, slack: float, claims: Claims
) -> ConformanceTest:
    """Return the test that a round without signal shows nothing of the one before it.

    Args:
        rows: The releases (d,) of rounds without signal, each after one in which all units had the `pattern` (d,), a
            unit vector.
        slack: How far released values may carry it, in standard deviations of the noise.
    """
    name, measures = (
        "isolation-over-rounds",
        "signal of an earlier round, in standard deviations of the noise",
    )
    if not rows:
        return not_made(name, measures, Verdict.NO_POWER, "no client took part in two rounds")
    z = float(sum(row @ pattern for row in rows)) / claims.std / len(rows) ** 0.5
    beyond = max(0.0, abs(z) - slack)
    # Along a direction with several coordinates, and over several rounds, Laplace noise is nearly normal; its tail is
    # heavier, so that it gets more room.
    return judged(name, measures, z, normal(beyond if claims.law == "gaussian" else 0.7 * beyond))
