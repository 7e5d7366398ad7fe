"""What is hidden of a page, in words and in pixels, and what is left."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evaluator.docvqa.dataset import Box, Dataset, DatasetInfo, Page, Question, write_info, write_split
from evaluator.leakage.hiding import Hiding, Trial, blur, hide, write_trials

WORDS = ["Kčci", "Media,", "info@kcci-media.example", "www.KCCI.com", "Medla", "Total", "9.00", "Med"]


def page(words: list[str]) -> Page:
    boxes: list[Box] = [(0.1 * place, 0.5, 0.1 * place + 0.05, 0.6) for place in range(len(words))]
    return Page(page="page_0", provider="Kcci Media", words=words, boxes=boxes)


def test_words_of_the_answer_are_hidden_in_every_form() -> None:
    left, boxes = hide(page(WORDS), ["kcci media"])
    # Equal but for accent, case and marks; part of addresses; one letter of five different.
    assert left.words == ["Total", "9.00", "Med"]
    assert len(left.boxes) == 3
    assert len(boxes) == 5


def test_short_answers_hide_nothing_but_themselves() -> None:
    assert hide(page(["12", "123", "12,", "1"]), ["12"])[0].words == ["123", "1"]


def test_an_empty_answer_hides_nothing() -> None:
    assert hide(page(WORDS), ["", " . "])[0].words == WORDS


def test_a_box_is_blurred_and_nothing_else() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (100, 200, 3), dtype=np.uint8)
    blurred = np.asarray(blur(Image.fromarray(noise), [(0.25, 0.2, 0.5, 0.4)]))
    changed = (blurred != noise).any(axis=2)
    assert changed[20:40, 50:100].mean() > 0.99
    changed[20:40, 50:100] = False
    assert not changed.any()
    # A radius of 20 leaves nothing of single pixels.
    assert blurred[20:40, 50:100].std() < noise.std() / 10


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    Image.new("RGB", (80, 40), "white").save(folder / "images" / "page_0.jpg")
    question = Question(
        question_id="1", page="page_0", question="Who?", answers=["Kcci"], key="provider_name"
    )
    write_info(folder, DatasetInfo(name="test"))
    write_split(folder, "test", [page(WORDS)], [question, question.model_copy(update={"question_id": "2"})])
    return Dataset(folder, "test")


def test_every_trial_has_a_page_of_its_own(dataset: Dataset, tmp_path: Path) -> None:
    first, second = dataset.questions
    trials = [Trial(first, first.answers), Trial(second, (), Hiding.PAGE), Trial(first, ["absent"])]
    hidden = write_trials(tmp_path / "hidden", dataset, trials)
    evidence, nothing, unchanged = (hidden.pages[question.page] for question in hidden.questions)
    assert "Kčci" not in evidence.words
    assert "Total" in evidence.words
    assert (nothing.words, unchanged.words) == ([], WORDS)
    assert [hidden.image_path(page.page).exists() for page in (evidence, nothing, unchanged)] == [
        True,
        False,
        True,
    ]


def test_a_page_without_an_image_is_left_without(dataset: Dataset, tmp_path: Path) -> None:
    dataset.image_path("page_0").write_bytes(b"no image")
    hidden = write_trials(tmp_path / "hidden", dataset, [Trial(dataset.questions[0], ["Kcci"])])
    assert not hidden.image_path(hidden.questions[0].page).exists()
