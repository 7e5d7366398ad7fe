"""How well scores tell members from nonmembers, and how sure that is.

A score is a number for each provider, higher where the attack rather holds it for a member. The unit of all statistics
is the provider: its questions depend on each other. Intervals come from a bootstrap over providers, members and
nonmembers apart, so that no resample lacks one of them; the null band comes from permuted labels.

Assumes providers that are exchangeable within members and within nonmembers. Which providers are members was not drawn
by coin in published data, so a band that is left doesn't prove a leak: members may be easier for reasons of their own.
The difference from the base weights, on the same resamples, takes away what was there before the training.

What the bootstrap can't do: at 1 % false positives of 100 nonmembers, one provider decides, and no interval from
resampling covers as often as it says. `docs/leakage.md` has the coverage of all intervals, simulated.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import ErrorCode, ProblemError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RESAMPLES = 2000
LEVEL = 0.95
# Resamples at once: of 2,000 providers, each array of them has 3 MB.
CHUNK = 200


class Statistic(StrEnum):
    """What a score is judged by."""

    AUC = "auc"
    BALANCED_ACCURACY = "balanced_accuracy"
    TPR_AT_1 = "tpr_at_1_percent_fpr"
    TPR_AT_10 = "tpr_at_10_percent_fpr"


FALSE_POSITIVE_RATES = {Statistic.TPR_AT_1: 0.01, Statistic.TPR_AT_10: 0.1}


@dataclass(frozen=True)
class Roc:
    """A step for each different score, the highest first, of each of R resamples; both (R, steps + 1), from (0, 0)."""

    false_positive_rates: Floats
    true_positive_rates: Floats

    def auc(self) -> Floats:
        """Return the area (R,) under the curves; equal scores of both kinds count one half."""
        widths = np.diff(self.false_positive_rates, axis=1)
        heights = self.true_positive_rates[:, 1:] + self.true_positive_rates[:, :-1]
        return np.asarray((widths * heights).sum(axis=1) / 2)

    def true_positive_rate_at(self, false_positive_rate: float) -> Floats:
        """Return the highest true positive rate (R,) with at most that share of false positives, without coins."""
        # Sums of weights may miss the exact share by a rounding error.
        allowed = self.false_positive_rates <= false_positive_rate + 1e-12
        return np.asarray(np.where(allowed, self.true_positive_rates, 0.0).max(axis=1))


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
        ordered = scores[self._order]
        self._last_of_step = np.flatnonzero(np.append(np.diff(ordered) != 0, True))
        self._kept: dict[tuple[str, int, int], dict[Statistic, Floats]] = {}

    def roc(self, weights: Floats | None = None, is_member: Bools | None = None) -> Roc:
        """Return the curves for weights (R, n) of the providers, one each by default, and labels (R, n) or (n,)."""
        weights = np.ones((1, len(self.scores))) if weights is None else weights
        members = self.is_member if is_member is None else is_member
        positive = np.where(members, weights, 0.0)[:, self._order].cumsum(axis=1)
        negative = np.where(members, 0.0, weights)[:, self._order].cumsum(axis=1)
        return Roc(self._steps(negative), self._steps(positive))

    def _steps(self, summed: Floats) -> Floats:
        at_steps = summed[:, self._last_of_step] / summed[:, -1:]
        return np.pad(at_steps, ((0, 0), (1, 0)))

    def values(
        self, weights: Floats | None = None, is_member: Bools | None = None
    ) -> dict[Statistic, Floats]:
        """Return each statistic (R,) for weights (R, n) and labels (R, n) or (n,)."""
        roc = self.roc(weights, is_member)
        return {
            Statistic.AUC: roc.auc(),
            Statistic.BALANCED_ACCURACY: self._balanced_accuracies(weights, is_member),
            **{
                statistic: roc.true_positive_rate_at(rate) for statistic, rate in FALSE_POSITIVE_RATES.items()
            },
        }

    @cached_property
    def found(self) -> dict[Statistic, float]:
        """Each statistic of the providers as they are."""
        return {statistic: float(values[0]) for statistic, values in self.values().items()}

    def resampled(self, seed: int, resamples: int) -> dict[Statistic, Floats]:
        """Return each statistic (R,) on R resamples of the providers, the same for other attacks on the same ones.

        They are drawn once for all statistics, and kept.
        """
        return self._drawn(
            "resampled", seed, resamples, lambda: map(self.values, _weights(self, seed, resamples))
        )

    def permuted(self, seed: int, resamples: int) -> dict[Statistic, Floats]:
        """Return each statistic (R,) with R permutations of the labels, drawn once for all statistics, and kept."""
        return self._drawn("permuted", seed, resamples, lambda: self._on_permutations(seed, resamples))

    def _on_permutations(self, seed: int, resamples: int) -> Iterator[dict[Statistic, Floats]]:
        rng = np.random.default_rng([seed, 1])
        for count in _chunks(resamples):
            labels = rng.permuted(np.tile(self.is_member, (count, 1)), axis=1)
            yield self.values(np.ones(labels.shape), labels)

    def _drawn(
        self, kind: str, seed: int, resamples: int, draw: Callable[[], Iterable[dict[Statistic, Floats]]]
    ) -> dict[Statistic, Floats]:
        key = (kind, seed, resamples)
        if key not in self._kept:
            parts = list(draw())
            self._kept[key] = {
                statistic: np.concatenate([part[statistic] for part in parts]) for statistic in Statistic
            }
        return self._kept[key]

    def _balanced_accuracies(self, weights: Floats | None, is_member: Bools | None) -> Floats:
        weights = np.ones((1, len(self.scores))) if weights is None else weights
        members = np.broadcast_to(self.is_member if is_member is None else is_member, weights.shape)
        right = weights * (self.says_member == members)
        positive = (right * members).sum(axis=1) / (weights * members).sum(axis=1)
        negative = (right * ~members).sum(axis=1) / (weights * ~members).sum(axis=1)
        return np.asarray((positive + negative) / 2)


@dataclass(frozen=True)
class Estimate:
    """A statistic with its interval; and what guessing comes to.

    Attributes:
        low: The lower end of the 95 % interval; `high` the upper one.
        null_low: 95 % of the permutations of the labels lie between this and `null_high`.
        p_value: The share of permutations that come to as much, the real labels counted as one.
    """

    value: float
    low: float
    high: float
    null_low: float
    null_high: float
    p_value: float


@dataclass(frozen=True)
class Difference:
    """The same attack on two models: by how much the first leaks more, with the 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_significant(self) -> bool:
        """Whether the interval leaves out 0."""
        return not self.low <= 0 <= self.high


def estimate(attack: Attack, statistic: Statistic, *, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Return the statistic of an attack, with its interval and its null band; the same for the same seed."""
    value = attack.found[statistic]
    low, high = bootstrap_interval(attack, statistic, seed=seed, resamples=resamples)
    permuted = attack.permuted(seed, resamples)[statistic]
    null_low, null_high = np.quantile(permuted, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    reached = int((permuted >= value - 1e-12).sum())
    return Estimate(value, low, high, float(null_low), float(null_high), (1 + reached) / (1 + resamples))


def bootstrap_interval(
    attack: Attack, statistic: Statistic, *, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Return the 95 % interval of a statistic, from resamples of the providers."""
    return interval(attack.resampled(seed, resamples)[statistic], attack.found[statistic])


def difference(
    first: Attack, second: Attack, statistic: Statistic, *, seed: int = 0, resamples: int = RESAMPLES
) -> Difference:
    """Return by how much the attack on the first model is better, on the same providers in every resample.

    Raises:
        ValueError: The two are not about the same members and nonmembers.
    """
    if not np.array_equal(first.is_member, second.is_member):
        raise ValueError("two attacks on different providers can't be compared")
    value = first.found[statistic] - second.found[statistic]
    sampled = first.resampled(seed, resamples)[statistic] - second.resampled(seed, resamples)[statistic]
    return Difference(value, *interval(sampled, value))


def interval(sampled: Floats, value: float) -> tuple[float, float]:
    """Return the 95 % interval of a statistic from its resamples (R,), corrected for their median bias.

    Efron, "Better bootstrap confidence intervals" (1987), without acceleration. Resamples that equal the value count
    half, as many do for a statistic of steps.
    """
    from scipy.special import ndtr, ndtri

    below = (float((sampled < value).mean()) + float((sampled <= value).mean())) / 2
    bias = ndtri(np.clip(below, 1 / len(sampled), 1 - 1 / len(sampled)))
    levels = ndtr(2 * bias + ndtri(np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])))
    low, high = np.quantile(sampled, levels)
    return min(float(low), value), max(float(high), value)


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


def _weights(attack: Attack, seed: int, resamples: int) -> Iterator[Floats]:
    """Yield the weights (r, n) of some resamples at a time: how often each provider is in them."""
    rng = np.random.default_rng([seed, 0])
    kinds = [np.flatnonzero(attack.is_member), np.flatnonzero(~attack.is_member)]
    for count in _chunks(resamples):
        weights = np.zeros((count, len(attack.scores)))
        for kind in kinds:
            weights[:, kind] = rng.multinomial(len(kind), np.full(len(kind), 1 / len(kind)), size=count)
        yield weights


def _chunks(resamples: int) -> Iterator[int]:
    for start in range(0, resamples, CHUNK):
        yield min(CHUNK, resamples - start)
