"""ANLS and accuracy, exactly as the benchmark's published metric defines them.

Predictions and gold answers are lower-cased and stripped. A question's ANLS is the best of 1 − d / max(length)
over its gold answers, d being the Levenshtein distance in code points, and 0 where that is below one half
(Biten et al., "Scene Text Visual Question Answering", ICCV 2019, section 4). Two rules of the published metric
are preserved: an empty prediction has ANLS 0 even where the gold answer is empty (its accuracy is then
1), and the prediction "none" scores 0 in both.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from evaluator.messages.results import MOST_DECIMALS

ANLS_THRESHOLD = 0.5
NO_ANSWER = "none"
MARK = "\0"


@dataclass(frozen=True)
class Scores:
    """Means over `questions` questions, each in [0, 1]."""

    anls: float
    accuracy: float
    questions: int


@dataclass(frozen=True)
class QuestionScores:
    """Each question's ANLS in [0, 1] and accuracy, 0 or 1: two arrays of float64, shape (questions,)."""

    anls: NDArray[np.float64]
    accuracy: NDArray[np.float64]

    def means(self) -> Scores:
        """Return the means over all questions; raises ValueError if there is none."""
        if not self.anls.size:
            raise ValueError("there is no question to score")
        return Scores(float(self.anls.mean()), float(self.accuracy.mean()), self.anls.size)


class GoldAnswers:
    """The gold answers of a test set, prepared once for any number of scorings.

    Args:
        answers: For each question, its gold answers; there may be none.
    """

    def __init__(self, answers: Sequence[Sequence[str]]) -> None:
        counts = np.fromiter(map(len, answers), np.int64, len(answers))
        self._texts = _normalized(list(chain.from_iterable(answers)))
        self._question: NDArray[np.int64] | None = None
        if not (counts == 1).all():
            self._question = np.repeat(np.arange(len(answers)), counts)
        self._count = len(answers)
        empty = list(_places("", self._texts))
        self._with_empty_answer = empty if self._question is None else self._question[empty].tolist()

    def __len__(self) -> int:
        return self._count

    def score(self, predictions: Sequence[str]) -> QuestionScores:
        """Return every question's ANLS and accuracy. Raises ValueError unless there is one prediction a question."""
        if len(predictions) != len(self):
            raise ValueError(f"{len(predictions)} predictions for {len(self)} questions")
        predicted = _normalized(predictions)
        if self._question is None:
            best = _similarities(predicted, self._texts)
        else:
            best = np.zeros(len(self))
            pairs = [predicted[question] for question in self._question.tolist()]
            np.maximum.at(best, self._question, _similarities(pairs, self._texts))
        for question in _places(NO_ANSWER, predicted):
            best[question] = 0.0
        # Only equal texts have a similarity of 1: any distance takes 1 / length away, far more than a rounding error.
        accuracy = (best == 1.0).astype(np.float64)
        for question in self._with_empty_answer:
            if not predicted[question]:
                best[question] = 0.0
        return QuestionScores(best, accuracy)


def _places(wanted: str, texts: list[str]) -> Iterator[int]:
    """Yield the positions of `wanted` among `texts`."""
    place = -1
    # `index` raises ValueError when there is no further one.
    with contextlib.suppress(ValueError):
        while True:
            place = texts.index(wanted, place + 1)
            yield place


def _similarities(predicted: Sequence[str], gold: Sequence[str]) -> NDArray[np.float64]:
    """Return 1 − d / max(length) of each pair, 0 where that is below the threshold."""
    similarities: NDArray[np.float64] = cpdist(
        predicted,
        gold,
        scorer=Levenshtein.normalized_similarity,
        score_cutoff=ANLS_THRESHOLD,
        dtype=np.float64,
    )
    return similarities


def _normalized(texts: Sequence[str]) -> list[str]:
    """Return each text lower-cased and stripped."""
    # In one text, where none holds the mark between them: lower-casing one long text is far quicker than many short
    # ones. What a letter becomes depends on its neighbors, and the mark is none that counts, as no text's end is.
    lowered = MARK.join(texts).lower().split(MARK)
    if len(lowered) != len(texts):
        return [text.lower().strip() for text in texts]
    return list(map(str.strip, lowered))


def cut(score: float, decimals: int = MOST_DECIMALS, rounding: str = ROUND_FLOOR) -> str:
    """Return a score in [0, 1] as text, cut to these decimals so that none seems to reach a threshold that it misses.

    How many decimals a test set supports, `evaluator.messages.results.supported_decimals` says. The upper end of an
    interval takes another rounding.
    """
    return str(Decimal(repr(score)).quantize(Decimal(1).scaleb(-decimals), rounding))


def score_gain(score: float, other: float, decimals: int) -> Decimal:
    """Return by how much a score is higher than another, rounded to these decimals.

    From the scores by which runs rank and which exports have: a difference of what pages show would be off by up to a
    unit of its last digit.
    """
    return (Decimal(cut(score)) - Decimal(cut(other))).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN)
