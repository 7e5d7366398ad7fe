"""ANLS and accuracy, exactly as the benchmark's published metric defines them.

Predictions and gold answers are lower-cased and stripped. A question's ANLS is the best of 1 − d / max(length)
over its gold answers, d being the Levenshtein distance in code points, and 0 where that is below one half
(Biten et al., "Scene Text Visual Question Answering", ICCV 2019, section 4). Two rules of the published metric
are kept as they are: an empty prediction has ANLS 0 even where the gold answer is empty (its accuracy is then
1), and the prediction "none" scores 0 in both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

ANLS_THRESHOLD = 0.5
NO_ANSWER = "none"


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
        """Raises ValueError if there is no question."""
        if not self.anls.size:
            raise ValueError("there is no question to score")
        return Scores(float(self.anls.mean()), float(self.accuracy.mean()), self.anls.size)


def score(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> Scores:
    """Mean ANLS and accuracy; `answers[i]` are the gold answers of the question that `predictions[i]` answers.

    Raises:
        ValueError: There is no question, or not one prediction a question.
    """
    return question_scores(predictions, answers).means()


def question_scores(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> QuestionScores:
    """Every question's ANLS and accuracy. Raises ValueError unless there is one prediction a question."""
    if len(predictions) != len(answers):
        raise ValueError(f"{len(predictions)} predictions for {len(answers)} questions")
    predicted = [prediction.lower().strip() for prediction in predictions]
    gold = [answer.lower().strip() for answers_of_one in answers for answer in answers_of_one]
    question = np.repeat(np.arange(len(answers)), np.fromiter(map(len, answers), np.int64, len(answers)))
    similarity = cpdist(
        [predicted[index] for index in question.tolist()],
        gold,
        scorer=Levenshtein.normalized_similarity,
        dtype=np.float64,
    )
    best = np.zeros(len(answers))
    np.maximum.at(best, question, similarity)

    # Only equal texts have a similarity of 1: any distance takes 1 / length away, far more than a rounding error.
    text = np.fromiter((answer != NO_ANSWER for answer in predicted), np.bool_, len(predicted))
    answered = np.fromiter(map(bool, predicted), np.bool_, len(predicted)) & text
    return QuestionScores(
        anls=np.where(answered & (best >= ANLS_THRESHOLD), best, 0.0),
        accuracy=(text & (best == 1.0)).astype(np.float64),
    )


def cut(score: float) -> str:
    """A score in [0, 1] as text, cut to four decimals so that none seems to reach a threshold that it misses."""
    return str(Decimal(repr(score)).quantize(Decimal("0.0001"), ROUND_FLOOR))
