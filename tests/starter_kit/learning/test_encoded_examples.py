import tempfile
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from evaluator.docvqa.dataset import Page, Question
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.errors import ErrorCode, ProblemError
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


def test_the_tokens_of_pages_take_no_memory(base: Path) -> None:
    tokenizer, count = Tokenizer.from_folder(base), 50
    asked = {n: Question(question_id=f"q{n}", page=f"page{n}", question="", answers=[]) for n in range(count)}
    pages = {f"page{n}": page(256) for n in range(count)}
    EncodedExamples(tokenizer, asked, pages, 512)
    tracemalloc.start()
    examples = EncodedExamples(tokenizer, asked, pages, 512)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert examples.length(count - 1) == 512
    assert kept < count * 1_000


def test_a_full_disk_is_reported(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Writing to this device fails as writing to a full disk does.
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(open, "/dev/full", "w+b"))
    asked = Question(question_id="q", page="page", question="", answers=[])
    with pytest.raises(ProblemError) as caught:
        EncodedExamples(Tokenizer.from_folder(base), {0: asked}, {"page": page(9)}, 32)
    assert caught.value.problem.code is ErrorCode.DATASET_FOLDER
