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


def score(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> Scores:
    """Mean ANLS and accuracy; `answers[i]` are the gold answers of the question that `predictions[i]` answers.

    Raises:
        ValueError: There is no question, or not one prediction a question.
    """
    if not predictions:
        raise ValueError("there is no question to score")
    return Scores(
        anls=float(anls_scores(predictions, answers).mean()),
        accuracy=float(accuracy_scores(predictions, answers).mean()),
        questions=len(predictions),
    )


def anls_scores(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Each question's ANLS, shape (questions,). Raises ValueError unless there is one prediction a question."""
    predicted, gold, question = _pairs(predictions, answers)
    distance = cpdist(predicted, gold, scorer=Levenshtein.distance, dtype=np.int64)
    longest = np.fromiter(
        (max(map(len, pair)) for pair in zip(predicted, gold, strict=True)), np.int64, len(gold)
    )
    similarity = 1 - distance / np.maximum(longest, 1)
    answered = np.fromiter((text not in ("", NO_ANSWER) for text in predicted), np.bool_, len(gold))
    best = np.zeros(len(predictions))
    np.maximum.at(best, question, np.where(answered & (similarity >= ANLS_THRESHOLD), similarity, 0.0))
    return best


def accuracy_scores(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """1 where the prediction equals one of the gold answers, else 0; shape (questions,).

    Raises ValueError unless there is one prediction a question.
    """
    predicted, gold, question = _pairs(predictions, answers)
    correct = [p == g and p != NO_ANSWER for p, g in zip(predicted, gold, strict=True)]
    best = np.zeros(len(predictions))
    best[question[np.array(correct, np.bool_)]] = 1.0
    return best


def _pairs(
    predictions: Sequence[str], answers: Sequence[Sequence[str]]
) -> tuple[list[str], list[str], NDArray[np.int64]]:
    """Every (prediction, gold answer) pair, normalised, with the index of its question."""
    if len(predictions) != len(answers):
        raise ValueError(f"{len(predictions)} predictions for {len(answers)} questions")
    question = np.repeat(np.arange(len(answers)), np.array([len(gold) for gold in answers], np.int64))
    normalised = [prediction.lower().strip() for prediction in predictions]
    gold = [answer.lower().strip() for answers_of_one in answers for answer in answers_of_one]
    return [normalised[index] for index in question], gold, question


def cut(score: float) -> str:
    """A score in [0, 1] as text, cut to four decimals so that none seems to reach a threshold that it misses."""
    return str(Decimal(repr(score)).quantize(Decimal("0.0001"), ROUND_FLOOR))
