"""Which questions of a test set are private."""

import stat
from pathlib import Path

import numpy as np
import pytest

from evaluator.docvqa.dataset import Dataset, DatasetInfo, Page, Question, write_info
from evaluator.docvqa.dataset import write_split as write_questions
from evaluator.errors import ProblemError
from evaluator.scoring.groups import group_scores
from evaluator.scoring.metrics import QuestionScores
from evaluator.scoring.split import (
    FILE,
    Split,
    clusters_in,
    owners_of_questions,
    private_questions,
    read_split,
    write_split,
)

SALT = "5a" * 32
HALF = Split(private_fraction=0.5, salt=SALT)


def dataset_of(folder: Path, pages: list[tuple[str, str]], questions_each: int = 2) -> Dataset:
    """A data folder with these pages and their providers, each with some questions."""
    write_info(folder, DatasetInfo(name="x"))
    rows = [Page(page=page, provider=provider, words=[], boxes=[]) for page, provider in pages]
    questions = [
        Question(question_id=f"{page}/{number}", page=page, question="What?", answers=["x"])
        for page, _ in pages
        for number in range(questions_each)
    ]
    write_questions(folder, "test", rows, questions)
    return Dataset(folder, "test")


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return dataset_of(tmp_path, [(f"d{number}_0", f"provider {number % 40}") for number in range(100)])


def test_no_provider_has_questions_on_both_sides(dataset: Dataset) -> None:
    sides: dict[str, set[bool]] = {}
    for question, is_private in zip(dataset.questions, private_questions(dataset, HALF), strict=True):
        sides.setdefault(dataset.pages[question.page].provider, set()).add(is_private)
    assert len(sides) == 40
    assert all(len(side) == 1 for side in sides.values())


def test_documents_and_providers_that_share_something_are_on_one_side(tmp_path: Path) -> None:
    # Document a has pages of two providers, of which the second has another document, and one page without.
    pages = [("a_0", "acme"), ("a_1", "bond"), ("a_2", ""), ("b_0", "bond"), ("c_0", ""), ("d_0", "")]
    owners = owners_of_questions(dataset_of(tmp_path, pages, questions_each=1))
    assert len(set(owners[:4])) == 1
    assert len(set(owners)) == 3


@pytest.mark.parametrize("fraction", [0.2, 0.5, 0.7])
def test_the_private_part_has_about_its_fraction_of_the_questions(dataset: Dataset, fraction: float) -> None:
    private = private_questions(dataset, Split(private_fraction=fraction, salt=SALT))
    assert sum(private) / len(private) == pytest.approx(fraction, abs=0.03)


def test_the_salt_decides_alone_and_always_the_same(dataset: Dataset) -> None:
    private = private_questions(dataset, HALF)
    assert private == private_questions(Dataset(dataset.folder, "test"), HALF)
    assert private != private_questions(dataset, Split(private_fraction=0.5, salt="5b" * 32))


def test_a_part_without_questions_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="questions in both parts"):
        private_questions(dataset_of(tmp_path, [("a_0", "acme")]), HALF)


def test_the_file_is_read_as_it_was_written_by_its_owner_only_and_never_replaced(tmp_path: Path) -> None:
    assert read_split(tmp_path) is None
    drawn = Split.drawn(0.3)
    write_split(tmp_path, drawn)
    assert read_split(tmp_path) == drawn
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        write_split(tmp_path, Split.drawn(0.3))


def test_what_is_wrong_with_the_file_is_said_without_its_salt(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(f'{{"private_fraction": 2, "salt": "{SALT}"}}')
    with pytest.raises(ProblemError) as raised:
        read_split(tmp_path)
    assert SALT not in str(raised.value)
    assert SALT not in repr(HALF)


def test_the_identity_changes_with_salt_and_fraction() -> None:
    others = [Split(private_fraction=0.5, salt="5b" * 32), Split(private_fraction=0.4, salt=SALT)]
    assert len({HALF.sha256, *(other.sha256 for other in others)}) == 3


def test_each_part_has_a_score_and_an_interval_of_its_own(dataset: Dataset) -> None:
    private = private_questions(dataset, HALF)
    anls = np.where(private, 0.25, 0.75)
    groups = group_scores(dataset, QuestionScores(anls, np.zeros(len(anls))), private)
    assert [(row.by, row.group, row.anls) for row in groups[1:3]] == [
        ("part", "public", 0.75),
        ("part", "private", 0.25),
    ]
    assert sum(row.questions for row in groups[1:3]) == groups[0].questions == len(private)
    assert (groups[2].anls_low, groups[2].anls_high) == (0.25, 0.25)
    assert sum(clusters_in(owners_of_questions(dataset), private)) == 40


def test_each_part_has_scores_of_its_own_keys(tmp_path: Path) -> None:
    write_info(tmp_path, DatasetInfo(name="x"))
    pages = [
        Page(page=f"d{number}_0", provider=f"provider {number}", words=[], boxes=[]) for number in range(40)
    ]
    questions = [
        Question(question_id=f"{page.page}/{key}", page=page.page, question="What?", answers=["x"], key=key)
        for page in pages
        for key in ("total", "date")
    ]
    write_questions(tmp_path, "test", pages, questions)
    dataset = Dataset(tmp_path, "test")
    private = private_questions(dataset, HALF)
    is_total = np.array([question.key == "total" for question in dataset.questions])
    anls = np.where(private, np.where(is_total, 0.25, 0.0), np.where(is_total, 0.75, 0.5))
    groups = group_scores(dataset, QuestionScores(anls, np.zeros(len(anls))), private)
    found = {
        (row.part, row.group): (row.anls, row.questions) for row in groups if row.by == "key" and row.part
    }
    hidden = sum(private) // 2
    assert found == {
        ("public", "date"): (0.5, 40 - hidden),
        ("public", "total"): (0.75, 40 - hidden),
        ("private", "date"): (0.0, hidden),
        ("private", "total"): (0.25, hidden),
    }
    # Those over both parts remain, for the organizers.
    assert {row.group for row in groups if row.by == "key" and not row.part} == {"date", "total"}


def test_each_part_has_scores_of_seen_and_of_unseen_providers(tmp_path: Path) -> None:
    write_info(tmp_path, DatasetInfo(name="x", clients={0: [f"provider {number}" for number in range(20)]}))
    write_questions(
        tmp_path,
        "test",
        [
            Page(page=f"d{number}_0", provider=f"provider {number}", words=[], boxes=[])
            for number in range(40)
        ],
        [
            Question(question_id=f"{number}", page=f"d{number}_0", question="What?", answers=["x"])
            for number in range(40)
        ],
    )
    dataset = Dataset(tmp_path, "test")
    private = private_questions(dataset, HALF)
    anls = np.array([1.0 if int(one.question_id) < 20 else 0.5 for one in dataset.questions])
    groups = group_scores(dataset, QuestionScores(anls, anls), private)
    found = [row for row in groups if row.by == "provider" and row.part]
    assert [(row.part, row.group, row.anls) for row in found] == [
        ("public", "seen", 1.0),
        ("public", "unseen", 0.5),
        ("private", "seen", 1.0),
        ("private", "unseen", 0.5),
    ]
    assert sum(row.questions for row in found) == 40
