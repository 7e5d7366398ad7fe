"""Memorization tests with training's answers: who is asked for what, and what counts as disclosed."""

from pathlib import Path

import pytest

from evaluator.docvqa.dataset import Dataset, DatasetInfo, Page, Question, write_info, write_split
from evaluator.leakage.training_answers import absent_questions, disclosed, reused_questions

IS_MEMBER = {"Ash": True, "Birch": True, "Elm": False, "Fir": False}
Asked = tuple[str, str, str, str]  # page, provider, field, answer


def write(folder: Path, split: str, asked: list[Asked]) -> Dataset:
    """A split whose pages show their answers, and are asked for them in their own words."""
    words: dict[tuple[str, str], list[str]] = {}
    for page, provider, _, answer in asked:
        words.setdefault((page, provider), []).extend(answer.split())
    pages = [
        Page(page=page, provider=provider, words=shown, boxes=[(0, 0, 1, 1)] * len(shown))
        for (page, provider), shown in words.items()
    ]
    questions = [
        Question(
            question_id=f"{page}-{field}",
            page=page,
            question=f"{field} of {page}?",
            answers=[answer],
            key=field,
        )
        for page, _, field, answer in asked
    ]
    write_split(folder, split, pages, questions)
    return Dataset(folder, split)


@pytest.fixture
def splits(tmp_path: Path) -> tuple[Dataset, Dataset]:
    write_info(tmp_path, DatasetInfo(name="red", clients={0: ["Ash", "Birch"]}))
    training = write(
        tmp_path,
        "train",
        [
            ("a0_0", "Ash", "email", "info@ash"),
            ("a0_0", "Ash", "total", "12"),
            ("a1_0", "Ash", "total", "34"),
            ("b0_0", "Birch", "tax", "77-1"),
            ("b1_0", "Birch", "tax", "77-1"),
            ("b1_0", "Birch", "phone", "555"),
        ],
    )
    valid = write(
        tmp_path,
        "valid",
        [
            ("a2_0", "Ash", "total", "56"),
            ("a3_0", "Ash", "email", "info@ash"),
            ("b2_0", "Birch", "total", "78"),
            ("e0_0", "Elm", "total", "9"),
            ("e0_1", "Elm", "total", "9"),
            ("e1_0", "Elm", "total", "10"),
            ("f0_0", "Fir", "tax", "88-2"),
            ("f1_0", "Fir", "total", "1"),
        ],
    )
    return valid, training


def test_a_member_is_asked_for_constants_of_training_where_nobody_asks(
    splits: tuple[Dataset, Dataset],
) -> None:
    found = reused_questions(*splits, IS_MEMBER)
    assert [(one.page, one.key, one.question, one.answers) for one in found] == [
        ("a2_0", "email", "email of a0_0?", ["info@ash"]),
        ("b2_0", "tax", "tax of b0_0?", ["77-1"]),
    ]


def test_nonmembers_are_asked_twice_a_document_for_a_field_that_nobody_asks_of_its_page(
    splits: tuple[Dataset, Dataset],
) -> None:
    found = absent_questions(*splits, IS_MEMBER, "tax")
    assert [(one.page, one.question) for one in found] == [
        (page, wording) for page in ("e0_0", "e1_0", "f1_0") for wording in ("tax of b0_0?", "tax of b1_0?")
    ]


def test_an_answer_is_disclosed_if_its_page_does_not_have_it_and_training_says_whose_it_is(
    splits: tuple[Dataset, Dataset],
) -> None:
    valid, training = splits
    questions = absent_questions(valid, training, IS_MEMBER, "tax")
    # Of e0_0 and e1_0 twice each, and of f1_0; that page has its own 1.
    answers = ["77-1", "77-1", "555", "77-1 ", "1", ""]
    first, second = disclosed(questions, answers, ["555"] * 6, valid, training)
    assert (first.field, first.answer, first.times, first.by_base) == ("tax", "77-1", 3, 0)
    assert (first.providers, first.elsewhere) == (1, False)
    assert (second.answer, second.times, second.by_base, second.providers) == ("555", 1, 6, 0)
    assert second.elsewhere
