"""Tests of contributions of every length: updates a little shorter and longer than the clip norm, and far longer ones.

Bugs of a threshold show only near it: a bound that holds for huge updates may let those pass that are 1.5 times as long
as the clip norm. Each unit has one of the lengths of `LADDER`, times the clip norm. Its gradient is the whole update
(`Federation.learner(quick=True)`), so that its direction is known, by which a short contribution is recognized, too;
and every round begins without state, so that nothing of an earlier one is in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evaluator.messages.examinations import ConformanceTest, Verdict
from starter_kit.conformance.contributions import (
    RECOGNIZED,
    ROUNDING,
    Reading,
    means_of,
    neighbor_test,
    residual_test,
    worst_bound_test,
)
from starter_kit.conformance.session import Observation, ObservedRun, Releases, releases_of
from starter_kit.conformance.statistics import Array, judged, not_made

# Lengths of updates over the clip norm, of one unit each.
LADDER = (0.5, 1.01, 1.2, 1.5, 1.9, 2.1, 3.0, 1000.0)


def rungs(units: int) -> Array:
    """Return the length of each unit's update (units,) over the clip norm."""
    return np.resize(np.array(LADDER), units)


@dataclass(frozen=True)
class LadderReading:
    """The contributions of one sender's units, with the direction in which each is expected.

    Attributes:
        along: The releases (n, units) along each unit's direction, over the bound.
    """

    reading: Reading
    along: Array

    @property
    def is_clipped(self) -> NDArray[np.bool_]:
        """Which updates (units,) are longer than the clip norm."""
        clipped: NDArray[np.bool_] = rungs_of(self.reading) > 1
        return clipped

    @property
    def uncertain(self) -> set[int]:
        """The units whose contributions are too short to tell for sure when they took part."""
        return set(np.array(self.reading.sent.units)[~self.is_clipped].tolist())

    @property
    def unread(self) -> NDArray[np.int64]:
        """The coordinates of the `uncertain` units."""
        places: NDArray[np.int64] = self.reading.places[~self.is_clipped].ravel()
        return places


def rungs_of(reading: Reading) -> Array:
    """Return the length of each of a sender's units (units,) over the clip norm."""
    found: Array = rungs(max(reading.sent.units) + 1)[reading.sent.units]
    return found


def ladder_readings(session: ObservedRun, observations: Sequence[Observation]) -> list[LadderReading]:
    """Return who contributed what, of each sender's releases."""
    every = releases_of(session, observations, stateless=True)
    return [_read(session, sent) for sent in every if sent.units]


def _read(session: ObservedRun, sent: Releases) -> LadderReading:
    claims, federation = session.claims, session.federation
    places = federation.coordinates[sent.units]
    blocks = sent.rows[:, places]
    directions = federation.gradients[sent.units].double().numpy()
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    along = (blocks * directions).sum(axis=2)
    along *= np.sign(along.sum(axis=0))
    # The L2 length of a contribution whose norm is the claimed bound, or shorter where the update is.
    length = claims.bound / np.linalg.norm(directions, ord=claims.norm, axis=1)
    shortened = np.minimum(1.0, rungs(federation.units)[sent.units])
    included = along > RECOGNIZED * length * shortened
    if claims.draws_nobody:
        included = np.ones_like(included)
    return LadderReading(Reading(sent, places, included, means_of(blocks, included)), along / length)


def ladder_tests(
    run: Sequence[LadderReading], neighbor: Sequence[LadderReading], changed: set[int], session: ObservedRun
) -> list[ConformanceTest]:
    """Return the tests of a run, and of one on neighboring data without the units `changed`."""
    claims = session.claims
    first, second = ([each.reading for each in readings] for readings in (run, neighbor))
    unsure = [] if claims.draws_nobody else run
    unread = [each.unread for each in unsure]
    uncertain = {unit for each in unsure for unit in each.uncertain}
    return [
        worst_bound_test("clip-bound-of-each-length", [*first, *second], claims),
        _average_test([*run, *neighbor], session),
        residual_test("isolation-of-each-length", first, claims, unread),
        neighbor_test(
            "isolation-of-each-length-from-the-neighbor", first, second, changed | uncertain, claims
        ),
    ]


def _average_test(readings: Sequence[LadderReading], session: ObservedRun) -> ConformanceTest:
    """Test that clipped contributions, along their directions, are on average no longer than the bound."""
    name, measures, claims = (
        "clip-bound-of-each-length-on-average",
        "mean length of clipped contributions over the bound",
        session.claims,
    )
    if claims.norm != 2:
        return not_made(name, measures, Verdict.NOT_APPLICABLE, "the bound is in another norm")
    chosen = [each.reading.included & each.is_clipped for each in readings]
    count = sum(int(each.sum()) for each in chosen)
    if not count:
        return not_made(name, measures, Verdict.NO_POWER, "no contribution was recognized")
    mean = sum(float(each.along[one].sum()) for each, one in zip(readings, chosen, strict=True)) / count
    # Each is 1 or less, and a draw of noise over the bound.
    z = (mean - 1 - ROUNDING) * count**0.5 * claims.bound / claims.scale
    return judged(name, measures, mean, float(stats.norm.sf(z)))
