"""Our own attack, stronger than the published ones: likelihood ratios of a provider, calibrated on reference models.

A provider's statistic is the mean over its questions of how much likelier training made the gold answer: the loss of
the base weights less that of the submitted ones. Taking the base weights' loss away removes most of how hard a question
is in itself. Reference models, trained by the attacker with half of the providers each, show how that statistic is
distributed with and without a provider; the score is the log of the ratio of two normal densities.

Source: Carlini et al., "Membership Inference Attacks From First Principles" (2022), section V, with a provider in the
place of an example. For a provider that the references know both ways, the means are its own and the variance is pooled
over providers, as their section VI.C advises for few references. For any other, all is pooled, with a variance of
v + w/n for n questions: a provider of few questions says little, so its score is close to 0.

Assumes references that were trained as the attacked model was. Where there is none, the score is the mean of adjusted
gains: of what each question gained, the part that neither its loss before training nor its key explains. Training makes
hard questions gain most, and questions about some keys more than others. Members who happen to be asked more of these
would look memorized, in every model that is asked the same questions. What explains a gain is fitted to all questions
at once and without labels, so members and others are treated alike. It is a regression in the place of reference
models, as in Bertran et al., "Scalable Membership Inference Attacks via Quantile Regression" (2023), and a calibration
by difficulty as in Watson et al., "On the Importance of Difficulty Calibration in Membership Inference Attacks" (2022).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import ErrorCode, ProblemError
from evaluator.leakage.features import Asked, ProviderFeatures, finite
from evaluator.leakage.statistics import Bools, Floats

# Members and nonmembers without which no variance is estimated.
LEAST = 4
# Of the larger variance: a smaller one makes ratios of rounding errors.
LEAST_VARIANCE = 1e-6
# Of a key's own mean gain, in questions: what is known of a key that few questions are about is mostly noise.
KEY_PENALTY = 1.0


@dataclass(frozen=True)
class Side:
    """The normal law of the statistic with, or without, a provider: its variance is `variance + by_question/n`."""

    mean: float
    variance: float
    by_question: float

    def log_densities(self, values: Floats, questions: Floats, means: Floats | None = None) -> Floats:
        """Return the log densities (P,) at `values` of providers with so many `questions`, around `means`."""
        variances = self.variance + self.by_question / questions
        centered = values - (self.mean if means is None else means)
        return np.asarray(-0.5 * (np.log(2 * np.pi * variances) + centered**2 / variances))


@dataclass(frozen=True)
class Calibration:
    """What the reference models show.

    Attributes:
        own: For providers that references know both ways: the mean statistic with it, and without it.
    """

    member: Side
    nonmember: Side
    own_member: Side
    own_nonmember: Side
    own: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, references: Sequence[ProviderFeatures]) -> "Calibration":
        """Return what reference models show, each given by the features of the providers that it was asked about.

        Raises:
            ProblemError: (`E_LEAKAGE_PROVIDERS`) They have fewer than four members or nonmembers in all.
        """
        values = np.concatenate([np.empty(0), *(reference.g3[:, 0] for reference in references)])
        is_member = np.concatenate([np.empty(0, bool), *(reference.is_member for reference in references)])
        if min(is_member.sum(), (~is_member).sum()) < LEAST:
            raise ProblemError.of(
                ErrorCode.LEAKAGE_PROVIDERS,
                where="the references' providers",
                expected=f"reference models with at least {LEAST} members and {LEAST} nonmembers",
                found=f"{int(is_member.sum())} members and {int((~is_member).sum())} nonmembers",
            )
        questions = np.concatenate([reference.questions for reference in references])
        names = np.array([name for reference in references for name in reference.names])
        floor = LEAST_VARIANCE * max(float(values.var()), np.finfo(float).tiny)
        sides = [_side(values[some], questions[some], floor) for some in (is_member, ~is_member)]
        own = _own_means(names, values, is_member)
        centered = _centered(names, values, is_member, own)
        own_sides = [
            _side(centered[some], questions[some], floor)
            if np.isfinite(centered[some]).sum() >= LEAST
            else side
            for some, side in zip((is_member, ~is_member), sides, strict=True)
        ]
        return cls(sides[0], sides[1], own_sides[0], own_sides[1], own)

    def scores(self, features: ProviderFeatures) -> Floats:
        """Return the log-likelihood ratio (P,) of each provider: above 0 it rather is a member."""
        values, questions = features.g3[:, 0], features.questions
        pooled = self.member.log_densities(values, questions) - self.nonmember.log_densities(
            values, questions
        )
        known = [place for place, name in enumerate(features.names) if name in self.own]
        if known:
            means = np.array([self.own[features.names[place]] for place in known])
            some, counts = values[known], questions[known]
            pooled[known] = self.own_member.log_densities(some, counts, means[:, 0])
            pooled[known] -= self.own_nonmember.log_densities(some, counts, means[:, 1])
        return pooled


def adjusted_gains(asked: Asked) -> Floats:
    """Return each provider's mean adjusted gain (P,), in the order of names: the score where there are no references.

    The losses before training enter with one slope, and the keys with an offset each, which is shrunken (ridge
    regression). All are 0 where training gained nothing.
    """
    before = finite(asked.base).loss
    gained = before - finite(asked.submitted).loss
    _, key = np.unique(np.asarray(asked.keys or [""] * len(gained), dtype=str), return_inverse=True)
    offsets = np.eye(int(key.max()) + 1)
    seen = np.column_stack([np.ones_like(before), before, offsets[key]])
    penalty = np.sqrt(KEY_PENALTY) * np.column_stack([np.zeros((len(offsets), 2)), offsets])
    weights, *_ = np.linalg.lstsq(
        np.concatenate([seen, penalty]), np.append(gained, np.zeros(len(offsets))), rcond=None
    )
    _, place = np.unique(np.asarray(asked.providers, dtype=object).astype(str), return_inverse=True)
    return np.asarray(np.bincount(place, weights=gained - seen @ weights) / np.bincount(place))


def _side(values: Floats, questions: Floats, floor: float) -> Side:
    """Return mean and variance of values (n,): residuals squared, by least squares on 1 and 1/n, neither below 0."""
    known = np.isfinite(values)
    values, inverse = values[known], 1 / questions[known]
    center = float(values.mean())
    squared = (values - center) ** 2 * len(values) / max(1, len(values) - 1)
    spread = inverse - inverse.mean()
    slope = float((spread * squared).sum() / (spread**2).sum()) if (spread**2).sum() > 0 else 0.0
    slope = max(0.0, slope)
    constant = float(squared.mean() - slope * inverse.mean())
    if constant < 0:
        constant, slope = 0.0, float(squared.mean() / inverse.mean())
    return Side(center, max(constant, floor), slope)


def _own_means(names: NDArray[np.str_], values: Floats, is_member: Bools) -> dict[str, tuple[float, float]]:
    """Return the mean with and without each provider that two references or more know either way."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for name, value, member in zip(names.tolist(), values.tolist(), is_member.tolist(), strict=True):
        found.setdefault(name, ([], []))[0 if member else 1].append(value)
    return {
        name: (float(np.mean(inside)), float(np.mean(outside)))
        for name, (inside, outside) in found.items()
        if min(len(inside), len(outside)) >= 2
    }


def _centered(
    names: NDArray[np.str_], values: Floats, is_member: Bools, own: Mapping[str, tuple[float, float]]
) -> Floats:
    """Return each value less its provider's own mean; NaN for providers without one."""
    means = [
        own[name][0 if member else 1] if name in own else np.nan
        for name, member in zip(names.tolist(), is_member.tolist(), strict=True)
    ]
    return np.asarray(values - np.array(means, dtype=np.float64))
