"""How well scores tell members from nonmembers, and how sure that is.

A score is a number for each provider, higher where the attack rather holds it for a member. The unit of all statistics
is the provider: its questions depend on each other. Intervals come from a bootstrap over providers, members and
nonmembers apart; the null band comes from permuted labels (`evaluator.leakage.resampling`).

Assumes providers that are exchangeable within members and within nonmembers. Which providers are members was not drawn
by coin in published data, so a band that is left doesn't prove a leak: members may be easier for reasons of their own.
The difference from the base weights, on the same resamples, takes away what was there before the training.

Intervals of true positive rates know that the threshold is unsure, too. Where one nonmember in 100 may be above it, of
100, none is with a chance of 37%: then nothing is known below, and the interval reaches down to almost 0 and holds the
true rate more often than it says. `docs/leakage.md` has the coverage of all intervals, simulated.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import ErrorCode, ProblemError
from evaluator.leakage.resampling import Draws, draws
from evaluator.messages.base import Message

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Places = NDArray[np.intp]

RESAMPLES = 2000
LEVEL = 0.95
# Shortest intervals are looked for with so much of what is left out below them, in 40 equal steps.
LOWER_LEVELS = np.linspace(0, 1 - LEVEL, 41)


class Statistic(StrEnum):
    """What a score is judged by."""

    AUC = "auc"
    BALANCED_ACCURACY = "balanced_accuracy"
    TPR_AT_1 = "tpr_at_1_percent_fpr"
    TPR_AT_10 = "tpr_at_10_percent_fpr"


FALSE_POSITIVE_RATES = {Statistic.TPR_AT_1: 0.01, Statistic.TPR_AT_10: 0.1}


@dataclass(frozen=True)
class Roc:
    """A step for each different score, the highest first; both (steps + 1,), from (0, 0)."""

    false_positive_rates: Floats
    true_positive_rates: Floats


class Attack:
    """Scores (n,) with the threshold above which the attack says "member", of providers whose membership is known.

    Args:
        is_member: (n,), the truth.
        threshold: What balanced accuracy is computed at. It must not depend on `is_member` of these providers.

    Raises:
        ProblemError: (`E_LEAKAGE_PROVIDERS`) There are fewer than two members or nonmembers.
        ValueError: A score is not finite.
    """

    def __init__(self, scores: Floats, is_member: Bools, threshold: float) -> None:
        check_both_kinds(is_member)
        if not np.isfinite(scores).all():
            raise ValueError("a score is not finite")
        self.scores = scores
        self.is_member = is_member
        self.says_member = scores > threshold
        self._order = np.argsort(-scores, kind="stable")
        # Members and nonmembers, the highest scores first.
        self._members = self._order[is_member[self._order]]
        self._others = self._order[~is_member[self._order]]
        self._kept: dict[tuple[str, int], dict[Statistic, Floats]] = {}

    @property
    def is_guessing(self) -> bool:
        """Whether all scores are equal, so that there is nothing to tell providers by."""
        return bool((self.scores == self.scores[0]).all())

    def roc(self) -> Roc:
        """Return the curve."""
        steps = self._last_of_step
        is_member = self.is_member[self._order]
        falsely, rightly = ((~is_member).cumsum()[steps], is_member.cumsum()[steps])
        return Roc(
            np.append(0.0, falsely / len(self._others)),
            np.append(0.0, rightly / len(self._members)),
        )

    @cached_property
    def found(self) -> dict[Statistic, float]:
        """Each statistic of the providers as they are."""
        above, at = self._members_above, self._right
        return {
            Statistic.AUC: float(sum(map(np.mean, self._placements))) / (2 * len(self._others)),
            Statistic.BALANCED_ACCURACY: float(at[self._members].mean() + at[self._others].mean()) / 2,
            **{
                statistic: float(above[1 + _allowed(rate, len(self._others))] / len(self._members))
                for statistic, rate in FALSE_POSITIVE_RATES.items()
            },
        }

    def resampled(self, resamples: int) -> dict[Statistic, Floats]:
        """Return each statistic (R,) on R resamples of the providers, the same for other attacks on the same ones."""
        return self._kept_or("resampled", self._on_resamples, resamples)

    def permuted(self, resamples: int) -> dict[Statistic, Floats]:
        """Return each statistic (R,) with R permutations of the labels."""
        return self._kept_or("permuted", self._on_permutations, resamples)

    def _kept_or(
        self, kind: str, compute: Callable[[Draws], Iterator[dict[Statistic, Floats]]], resamples: int
    ) -> dict[Statistic, Floats]:
        key = (kind, resamples)
        if key not in self._kept:
            parts = list(compute(draws(self.is_member, resamples)))
            self._kept[key] = {
                statistic: np.concatenate([part[statistic] for part in parts]) for statistic in Statistic
            }
        return self._kept[key]

    @cached_property
    def _last_of_step(self) -> Places:
        """The last place, in order, of each different score."""
        return np.flatnonzero(np.append(np.diff(self.scores[self._order]) != 0, True))

    @cached_property
    def _right(self) -> Floats:
        """1 for each provider that the attack is right about."""
        return np.where(self.says_member == self.is_member, 1.0, 0.0)

    @cached_property
    def _placements(self) -> tuple[Places, Places]:
        """How many nonmembers are below each of `_members`, and how many are not above it."""
        others = self.scores[self._others][::-1]
        members = self.scores[self._members]
        return np.searchsorted(others, members, "left"), np.searchsorted(others, members, "right")

    @cached_property
    def _members_above(self) -> Places:
        """How many members are above the j-th highest nonmember: none for j = 0, and all after the last."""
        members = self.scores[self._members][::-1]
        above = len(members) - np.searchsorted(members, self.scores[self._others], "right")
        return np.concatenate([[0], above, [len(members)]])

    def _on_resamples(self, drawn: Draws) -> Iterator[dict[Statistic, Floats]]:
        below, not_above = self._placements
        members, others = len(self._members), len(self._others)
        for part in drawn.chunks():
            counts = drawn.counts[part]
            of_members = counts[:, self._members].astype(np.float64)
            summed = _sums(counts[:, self._others[::-1]])
            pairs = (of_members * (summed[:, below] + summed[:, not_above])).sum(axis=1)
            rightly = of_members @ self._right[self._members] / members
            rightly += counts[:, self._others] @ self._right[self._others] / others
            yield {
                Statistic.AUC: pairs / (2 * members * others),
                Statistic.BALANCED_ACCURACY: rightly / 2,
                **self._true_positive_rates(drawn.weights[part], drawn.unseen[part]),
            }

    def _true_positive_rates(
        self, weights: NDArray[np.float32], unseen: NDArray[np.float32]
    ) -> dict[Statistic, Floats]:
        """Return the true positive rates (r,) for weights (r, n) and those of what was not drawn, (r, 3).

        Between two nonmembers' scores, the curve of true against false positives is a straight line.
        """
        falsely = _sums(weights[:, self._others])
        falsely /= falsely[:, -1:] + unseen[:, :1]
        rightly = _sums(weights[:, self._members]) + unseen[:, 1:2]
        rightly /= rightly[:, -1:] + unseen[:, 2:]
        rows = np.arange(len(weights))
        found = {}
        for statistic, rate in FALSE_POSITIVE_RATES.items():
            # So many nonmembers are above the threshold.
            place = (falsely[:, 1:] <= rate).sum(axis=1)
            start, end = falsely[rows, place], np.append(falsely, np.ones((len(rows), 1)), 1)[rows, place + 1]
            share = (rate - start) / (end - start)
            low, high = (rightly[rows, self._members_above[place + step]] for step in (0, 1))
            found[statistic] = low + share * (high - low)
        return found

    def _on_permutations(self, drawn: Draws) -> Iterator[dict[Statistic, Floats]]:
        members, others = len(self._members), len(self._others)
        ranks, says, last = self._midranks, self.says_member.astype(np.float64), self._last_of_step
        for part in drawn.chunks():
            labels = drawn.labels[part].astype(np.float64)
            rightly = labels @ says
            falsely = says.sum() - rightly
            others_above = (~drawn.labels[part][:, self._order]).cumsum(axis=1, dtype=np.int32)[:, last]
            yield {
                Statistic.AUC: (labels @ ranks - members * (members + 1) / 2) / (members * others),
                Statistic.BALANCED_ACCURACY: (rightly / members + 1 - falsely / others) / 2,
                **{
                    statistic: self._highest(others_above, _allowed(rate, others)) / members
                    for statistic, rate in FALSE_POSITIVE_RATES.items()
                },
            }

    @cached_property
    def _midranks(self) -> Floats:
        """The place of each score from below, from 1; the mean of theirs for equal scores."""
        ascending = self.scores[self._order[::-1]]
        left, right = (np.searchsorted(ascending, self.scores, side) for side in ("left", "right"))
        return np.asarray((left + right + 1) / 2)

    def _highest(self, others_above: NDArray[np.int32], allowed: int) -> Floats:
        """Return how many members (r,) are above the lowest threshold with so many nonmembers (r, steps) above it."""
        last = (others_above <= allowed).sum(axis=1) - 1
        members_above = self._last_of_step + 1 - others_above
        return np.where(last < 0, 0.0, members_above[np.arange(len(last)), last])


class Interval(Message):
    """A value with its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def covers_zero(self) -> bool:
        """Whether 0 is inside."""
        return self.low <= 0 <= self.high


class Estimate(Interval):
    """A statistic, and what guessing comes to.

    Attributes:
        null_low: 95% of the permutations of the labels lie between this and `null_high`.
        p_value: The share of permutations that come to as much, the real labels counted as one.
    """

    null_low: float
    null_high: float
    p_value: float


def estimate(attack: Attack, statistic: Statistic, *, resamples: int = RESAMPLES) -> Estimate:
    """Return the statistic of an attack, with its interval and its null band; always the same."""
    value = attack.found[statistic]
    low, high = bootstrap_interval(attack, statistic, resamples=resamples)
    permuted = attack.permuted(resamples)[statistic]
    null_low, null_high = np.quantile(permuted, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    reached = int((permuted >= value - 1e-12).sum())
    p_value = (1 + reached) / (1 + resamples)
    return Estimate(value=value, low=low, high=high, null_low=null_low, null_high=null_high, p_value=p_value)


def bootstrap_interval(
    attack: Attack, statistic: Statistic, *, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Return the 95% interval of a statistic, from resamples of the providers."""
    return _interval(statistic, attack.resampled(resamples)[statistic], attack.found[statistic])


def difference(
    first: Attack, second: Attack, statistic: Statistic, *, resamples: int = RESAMPLES
) -> Interval:
    """Return by how much the attack on the first model is better, on the same providers in every resample.

    Who guesses has as many true positives as false ones: 1% at 1%.

    Raises:
        ValueError: The two are not about the same members and nonmembers.
    """
    if not np.array_equal(first.is_member, second.is_member):
        raise ValueError("two attacks on different providers can't be compared")
    values, sampled = [], []
    for attack in (first, second):
        if attack.is_guessing:
            guessed = FALSE_POSITIVE_RATES.get(statistic, 0.5)
            values.append(guessed)
            sampled.append(np.full(resamples, guessed))
        else:
            values.append(attack.found[statistic])
            sampled.append(attack.resampled(resamples)[statistic])
    value = values[0] - values[1]
    low, high = _interval(statistic, sampled[0] - sampled[1], value)
    return Interval(value=value, low=low, high=high)


def _interval(statistic: Statistic, sampled: Floats, value: float) -> tuple[float, float]:
    return (shortest_interval if statistic in FALSE_POSITIVE_RATES else interval)(sampled, value)


def interval(sampled: Floats, value: float) -> tuple[float, float]:
    """Return the 95% interval of a statistic from its resamples (R,), corrected for their median bias.

    Efron, "Better bootstrap confidence intervals" (1987), without acceleration. Resamples that equal the value count
    half, as many do for a statistic of steps.
    """
    from scipy.special import ndtr, ndtri

    below = (float((sampled < value).mean()) + float((sampled <= value).mean())) / 2
    bias = ndtri(np.clip(below, 1 / len(sampled), 1 - 1 / len(sampled)))
    levels = ndtr(2 * bias + ndtri(np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])))
    low, high = np.quantile(sampled, levels)
    return min(float(low), value), max(float(high), value)


def shortest_interval(sampled: Floats, value: float) -> tuple[float, float]:
    """Return the shortest interval that holds 95% of the resamples (R,), and the value.

    A share near 0 or 1 can only be missed on one side: there the whole chance of an error goes to that side.
    """
    ends = np.quantile(sampled, np.concatenate([LOWER_LEVELS, LOWER_LEVELS + LEVEL]))
    lows, highs = ends[: len(LOWER_LEVELS)], ends[len(LOWER_LEVELS) :]
    place = int((highs - lows).argmin())
    return min(float(lows[place]), value), max(float(highs[place]), value)


def least_auc(members: int, others: int, chance: float) -> float:
    """Return the AUC that scores without any knowledge reach with a probability of `chance`; may be above 1.

    Mann and Whitney's test, by the normal law that it is close to; equal scores make less of it likely.
    """
    from scipy.special import ndtri

    spread = ((members + others + 1) / (12 * members * others)) ** 0.5
    return float(0.5 - ndtri(chance) * spread)


def check_both_kinds(is_member: Bools) -> None:
    """Raise ProblemError (`E_LEAKAGE_PROVIDERS`) where there are fewer than two members or nonmembers."""
    members = int(is_member.sum())
    if min(members, len(is_member) - members) < 2:
        raise ProblemError.of(
            ErrorCode.LEAKAGE_PROVIDERS,
            where="the split's providers",
            expected="at least two members and two nonmembers with enough questions",
            found=f"{members} members and {len(is_member) - members} nonmembers",
        )


def _allowed(false_positive_rate: float, others: int) -> int:
    """Return how many of the nonmembers may be called members; the product may miss a whole number by its rounding."""
    return int(false_positive_rate * others + 1e-9)


def _sums(weights: NDArray[np.number]) -> Floats:
    """Return the sums (r, n + 1) of the first of the weights (r, n), beginning with none."""
    summed = np.zeros((weights.shape[0], weights.shape[1] + 1))
    weights.cumsum(axis=1, out=summed[:, 1:])
    return summed
