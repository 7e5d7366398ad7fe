from pathlib import Path

import numpy as np
import pytest

from evaluator.docvqa.dataset import Page, Question
from evaluator.docvqa.tokenization import Tokenizer
from starter_kit.learning.encoded_examples import EncodedExamples


def page(words: int) -> Page:
    return Page(
        page="page", words=["owes", "Ash"] * words, boxes=[(0.1, 0.2, 0.3, 0.4), (0.5, 0.6, 0.7, 0.8)] * words
    )


@pytest.mark.parametrize("words", [0, 1, 5, 8, 9, 50])
@pytest.mark.parametrize(
    "question", ["", "What is the name?", "What is " * 30], ids=["none", "short", "long"]
)
def test_texts_are_those_of_the_tokenizer(base: Path, words: int, question: str) -> None:
    tokenizer = Tokenizer.from_folder(base)
    asked = Question(question_id="q", page="page", question=question, answers=[])
    examples = EncodedExamples(tokenizer, {7: asked}, {"page": page(words)}, 32)
    expected = tokenizer.encode(question, page(words).words, page(words).boxes, 32)
    found = examples.text(7)
    assert found.ids == expected.ids
    assert np.array_equal(found.boxes, np.array(expected.boxes, np.float32))
    assert found.is_cut == expected.is_cut == examples.is_cut(7)
    assert len(expected) == examples.length(7)
