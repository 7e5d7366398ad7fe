"""ANLS and accuracy against a literal, slow re-implementation of the published definition.

The definition is computed twice, with the distance of `editdistance`, which the published metric uses and whose code
is its own, and with that of python-Levenshtein, which is the usual choice elsewhere.
"""

from collections.abc import Callable

import editdistance
import Levenshtein
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.scoring.metrics import GoldAnswers, score_gain

Cases = list[tuple[str, list[str]]]
Distance = Callable[[str, str], int]


def anls_by_definition(prediction: str, answers: list[str], distance: Distance) -> float:
    prediction = prediction.lower().strip()
    if prediction in ("", "none"):
        return 0.0
    best = 0.0
    for answer in (text.lower().strip() for text in answers):
        best = max(best, 1 - distance(prediction, answer) / max(len(prediction), len(answer)))
    return best if best >= 0.5 else 0.0


def accuracy_by_definition(prediction: str, answers: list[str]) -> float:
    prediction = prediction.lower().strip()
    return float(prediction != "none" and prediction in [text.lower().strip() for text in answers])


words = st.one_of(
    st.sampled_from(["", " ", "none", "None ", "NA", "1.234,00", "İ", "ß", "ΑΣ", "Σ", "a\0B", "\0"]),
    st.text(max_size=12),
)
alike = st.text(alphabet="ab A", max_size=6)  # near misses, which random words hardly ever are
cases = st.lists(st.tuples(words | alike, st.lists(words | alike, max_size=3)), min_size=1, max_size=8)


@pytest.mark.parametrize(
    "distance", [editdistance.eval, Levenshtein.distance], ids=["editdistance", "Levenshtein"]
)
@given(cases=cases)
def test_scores_are_bit_for_bit_those_of_the_definition(distance: Distance, cases: Cases) -> None:
    predictions, answers = [list(column) for column in zip(*cases, strict=True)]
    scores = GoldAnswers(answers).score(predictions)
    assert scores.anls.tolist() == [anls_by_definition(*case, distance) for case in cases]
    assert scores.accuracy.tolist() == [accuracy_by_definition(*case) for case in cases]


@pytest.mark.parametrize(
    ("prediction", "answers", "anls", "accuracy"),
    [
        ("ACME Inc ", [" acme inc"], 1.0, 1.0),
        ("acme", ["acme inc", "acne"], 0.75, 0.0),  # the best of the gold answers
        ("ab", ["ac"], 0.5, 0.0),  # one half still counts
        ("abc", ["axy"], 0.0, 0.0),  # one third doesn't
        ("", [""], 0.0, 1.0),
        ("none", ["none"], 0.0, 0.0),
        ("na", ["NA"], 1.0, 1.0),
        ("𝟘a", ["a"], 0.5, 0.0),  # code points, not UTF-16 units
        ("a", [], 0.0, 0.0),
    ],
)
def test_scores_of_one_question(prediction: str, answers: list[str], anls: float, accuracy: float) -> None:
    scores = GoldAnswers([answers]).score([prediction])
    assert (scores.anls.tolist(), scores.accuracy.tolist()) == ([anls], [accuracy])


def test_the_score_is_the_mean_over_questions() -> None:
    scores = GoldAnswers([["acme"], ["acne"], ["y"]]).score(["acme", "acme", "x"]).means()
    assert scores.anls == pytest.approx(1.75 / 3)
    assert scores.accuracy == pytest.approx(1 / 3)
    assert scores.questions == 3


def test_scores_are_float64() -> None:
    scores = GoldAnswers([["a"]]).score(["a"])
    assert scores.anls.dtype == scores.accuracy.dtype == np.float64


def test_one_prediction_a_question_is_demanded() -> None:
    with pytest.raises(ValueError, match="2 predictions for 1 questions"):
        GoldAnswers([["a"]]).score(["a", "b"])


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(ValueError, match="no question"):
        GoldAnswers([]).score([]).means()


def test_gold_answers_serve_many_scorings() -> None:
    gold = GoldAnswers([["acme", "none"], [""], ["nine"]])
    for predictions, anls in (
        (["none", "", "none"], [0, 0, 0]),
        (["acne", " ", "nine"], [0.75, 0, 1]),
        (["none", "none", "none"], [0, 0, 0]),
        (["acme", "x", "NINE"], [1, 0, 1]),
    ):
        assert gold.score(predictions).anls.tolist() == anls
    assert len(gold) == 3


@pytest.mark.parametrize(
    ("score", "other", "decimals", "gain"),
    [
        # As pages show them, 0.55 and 0.51.
        (0.55224, 0.51918, 2, "0.03"),
        (0.55224, 0.51918, 4, "0.0331"),
        (0.5, 0.5, 2, "0.00"),
        (0.19999, 0.2, 4, "-0.0001"),
    ],
)
def test_a_gain_is_that_of_the_scores_by_which_runs_rank(
    score: float, other: float, decimals: int, gain: str
) -> None:
    assert str(score_gain(score, other, decimals)) == gain
