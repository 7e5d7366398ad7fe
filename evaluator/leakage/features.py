"""What an attack sees of each provider: the mean over its questions of what the model does with them.

Source: Tito et al., "Privacy-Aware Document Visual Question Answering" (2024), section 5.2.2, whose groups of metrics
are G1 (accuracy, NLS), G2 (loss, confidence), G3 (the change of both by training) and G4 (the memorization test). NLS
is the normalized Levenshtein similarity as ANLS counts it, 0 below one half.

The paper calls G3 differences and expects higher values for members: here they are what training gained, the loss
before less the loss after, and the confidence after less the confidence before. Its other metric of G4 measures how
much the answer without a question changes when that answer is taken out of the page: here 1 − NLS, so that members are
low.

A loss that is not a number or not finite counts as the worst finite one of that model, as nothing is known about it;
where none is finite, as 0. A confidence that is none counts as 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import ErrorCode, ProblemError
from evaluator.leakage.statistics import Bools, Floats

# The target sets that a report names, by s.
TARGET_SETS = (5, 10)


@dataclass(frozen=True)
class Answers:
    """What one model did with Q questions; every array is (Q,).

    Attributes:
        loss: The mean cross-entropy over the tokens of the gold answer, in nats.
        confidence: Of the model's own answer.
    """

    accuracy: Floats
    nls: Floats
    loss: Floats
    confidence: Floats


@dataclass(frozen=True)
class Memorization:
    """G4 of Q questions, both (Q,); NaN where the test wasn't made for a question.

    Attributes:
        nls: Of the answers where the evidence is hidden.
        change: 1 − NLS of the answers without a question, before and after the first is taken out of the page.
    """

    nls: Floats
    change: Floats


@dataclass(frozen=True)
class Asked:
    """Q questions by provider, and what the submitted and the base weights did with them.

    Attributes:
        providers: (Q,), the provider of each question.
        is_member: The truth, for each provider.
        keys: (Q,), what each question is about; empty where that isn't known.
    """

    providers: Sequence[str]
    is_member: Mapping[str, bool]
    submitted: Answers
    base: Answers
    memorization: Memorization | None = None
    keys: Sequence[str] = ()

    def of_base(self) -> "Asked":
        """Return the same questions with the base weights as what is attacked."""
        return Asked(self.providers, self.is_member, self.base, self.base, keys=self.keys)


@dataclass(frozen=True)
class ProviderFeatures:
    """P providers, in the order of their names, with what the attacks see of them.

    Attributes:
        g1: (P, 2), accuracy and NLS.
        g2: (P, 2), loss and confidence.
        g3: (P, 2), what training gained in loss and confidence.
        g4: (P, 2), NLS of the memorization test and the change without a question; None where it wasn't made for all.
        questions: (P,), the number of each.
    """

    names: list[str]
    is_member: Bools
    g1: Floats
    g2: Floats
    g3: Floats
    g4: Floats | None
    questions: Floats


def provider_features(asked: Asked, *, min_questions: int = 1) -> ProviderFeatures:
    """Return the features of the providers with at least `min_questions` questions: the paper's target set T_s.

    So says the paper's section 7.2; its Table A6 says that those with fewer than s + 1 questions are left out.

    A provider without any question is in no target set, not even in T_0.

    Raises:
        ProblemError: (`E_LEAKAGE_LABELS`) A provider's membership isn't known.
    """
    names, place = np.unique(np.asarray(asked.providers, dtype=object).astype(str), return_inverse=True)
    if unknown := [name for name in names if name not in asked.is_member]:
        raise ProblemError.of(ErrorCode.LEAKAGE_LABELS, str(unknown[0]), "a member or a nonmember", "neither")
    counts = np.bincount(place, minlength=len(names)).astype(np.float64)
    kept = counts >= max(1, min_questions)

    def means(*columns: Floats) -> Floats:
        summed = [np.bincount(place, weights=column, minlength=len(names)) for column in columns]
        return np.asarray(np.stack(summed, axis=1)[kept] / counts[kept, None])

    after, before = finite(asked.submitted), finite(asked.base)
    return ProviderFeatures(
        names=[str(name) for name in names[kept]],
        is_member=np.array([asked.is_member[str(name)] for name in names[kept]], dtype=bool),
        g1=means(after.accuracy, after.nls),
        g2=means(after.loss, after.confidence),
        g3=means(before.loss - after.loss, after.confidence - before.confidence),
        g4=_memorized(asked.memorization, place, len(names), kept),
        questions=counts[kept],
    )


def _memorized(
    memorization: Memorization | None, place: NDArray[np.intp], count: int, kept: Bools
) -> Floats | None:
    """Return G4: means over those questions of a provider that the test was made for; 0 and 1 where it was for none."""
    if memorization is None:
        return None
    columns = []
    for values, without in ((memorization.nls, 0.0), (memorization.change, 1.0)):
        known = np.isfinite(values)
        summed = np.bincount(place[known], weights=values[known], minlength=count)
        made = np.bincount(place[known], minlength=count)
        columns.append(np.where(made > 0, summed / np.maximum(made, 1), without)[kept])
    return np.stack(columns, axis=1)


def finite(answers: Answers) -> Answers:
    """Return the answers with a number for each loss and confidence that is none."""
    known = np.isfinite(answers.loss)
    worst = float(answers.loss[known].max()) if known.any() else 0.0
    return Answers(
        answers.accuracy,
        answers.nls,
        np.where(known, answers.loss, worst),
        np.nan_to_num(answers.confidence, nan=0.0, posinf=0.0, neginf=0.0),
    )
