"""Comparing a replayed round with the opened one: bit for bit, or within a bound on other hardware.

The same code with the same number of threads on the same kind of processor gives the same bits. Elsewhere sums are made
in another order, and training carries such differences on. A replay then agrees if its noised sum uₜ is at most

    10⁻³·S·√n + 2⁻²²·‖uₜ‖

away from the opened one, with the clip norm S and the number n of sampled providers, at least 1: a thousandth of its
bound for each provider's update, independent of the others', and float32 rounding. So this much a cheat could hide in a
round, which is far below the noise. The weights must follow from the opened sum by the record's rule up to float32
rounding, in every coordinate.
"""

from dataclasses import dataclass

import numpy as np

from evaluator.records.certificate import Floats
from evaluator.records.lines import RunLine
from evaluator.records.replay import next_weights, replay_of
from evaluator.records.round_opening import RoundOpening

PER_PROVIDER = 1e-3
ROUNDING = 2.0**-22
# The coordinates that are compared at a time, which bounds memory.
PIECE = 1 << 20


@dataclass(frozen=True)
class Comparison:
    """How far a replayed round is from the opened one.

    Attributes:
        exact: Whether sum and weights are the same, bit for bit.
        distance: ‖opened uₜ − replayed uₜ‖, over the clip norm.
        bound: The largest distance on other hardware, over the clip norm.
        step_follows: Whether the opened weights follow from the opened sum by the record's rule, and the replayed ones
            from the replayed sum.
    """

    exact: bool
    distance: float
    bound: float
    step_follows: bool

    @property
    def sums_agree(self) -> bool:
        """Whether the sums are the same, or as close as on other hardware."""
        return self.exact or self.distance <= self.bound


def compare(
    run: RunLine, opening: RoundOpening, update: Floats, weights: Floats, *, number: int, providers: int
) -> Comparison:
    """Compare a replayed round, with its sum `update` (d,) and the `weights` (d,) after it, with the opened one.

    Args:
        number: The number of the round.
        providers: n, how many providers were sampled, at least 1.
    """
    rounding = ROUNDING * norm(opening.update) / run.clip_norm
    return Comparison(
        exact=_same(opening.update, update) and _same(opening.after, weights),
        distance=distance(opening.update, update) / run.clip_norm,
        bound=PER_PROVIDER * providers**0.5 + rounding,
        step_follows=_follows(run, number, opening.before, opening.update, opening.after)
        and _follows(run, number, opening.before, update, weights),
    )


def norm(vector: Floats) -> float:
    """Return the L2 norm of a vector (d,), added up in float64."""
    return float(sum(np.square(piece, dtype=np.float64).sum() for piece in _pieces(vector)) ** 0.5)


def distance(one: Floats, other: Floats) -> float:
    """Return the L2 distance of two vectors (d,)."""
    squares = (
        np.square(a.astype(np.float64) - b).sum() for a, b in zip(_pieces(one), _pieces(other), strict=True)
    )
    return float(sum(squares) ** 0.5)


def _same(one: Floats, other: Floats) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(_pieces(one), _pieces(other), strict=True))


def _follows(run: RunLine, number: int, before: Floats, update: Floats, after: Floats) -> bool:
    """Whether wₜ follows from w₍ₜ₋₁₎ and uₜ, all (d,), by a rule that keeps nothing from round to round."""
    turns = run.turns
    for place, (start, total, end) in enumerate(zip(*map(_pieces, (before, update, after)), strict=True)):
        rule = replay_of(run.server, run.normalizer)
        if rule is None:
            return False
        step = rule.step(total.astype(np.float64))
        if turns:
            step = step.where(turns.moved(number, place * PIECE, (place + 1) * PIECE))
        expected = next_weights(start.astype(np.float64), step)
        if not (np.abs(end - expected.value) <= expected.error).all():
            return False
    return True


def _pieces(vector: Floats) -> list[Floats]:
    return [vector[begin : begin + PIECE] for begin in range(0, len(vector), PIECE)]
