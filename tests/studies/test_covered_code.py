"""The identity of counted code: sentences don't change it, and everything else that is executed does."""

import pytest

from starter_kit.runs.executed_code import executed
from tests.studies.covered_code import without_sentences

SOURCE = """
def check(rounds, bound):
    if rounds > 3:
        return flag("round-count", f"{rounds} rounds, at most {bound:.2f} expected", title="The number of rounds")
    return passed("round-count")
"""


def counted(source: str) -> str:
    return executed(without_sentences(source))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The number of rounds", "How many rounds there were"),
        ("at most {bound:.2f} expected", "but no more than {bound:,} were expected"),
        ("{rounds} rounds,", "rounds: {rounds:,};"),
    ],
)
def test_a_sentence_can_be_worded_anew(old, new):
    assert old in SOURCE
    assert counted(SOURCE.replace(old, new)) == counted(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [("> 3", "> 4"), ("round-count", "rounds"), ("return flag(", "return passed("), ("title", "name")],
)
def test_anything_else_counts(old, new):
    assert old in SOURCE
    assert counted(SOURCE.replace(old, new)) != counted(SOURCE)
