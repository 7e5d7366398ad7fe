"""The hash of the data manifest: the same for the same content, another one for any other."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.docvqa.dataset import Dataset, DatasetInfo, Page, Question, write_info, write_split
from evaluator.docvqa.manifest import manifest_sha256

CLIENTS = {0: ["ACME", "Zoë"], 1: ["Initech", "nobody's pages"]}
PAGES = [
    Page(page="a_1", provider="ACME", words=["total", "5 €"], boxes=[(0, 0, 0.1, 0.1), (0.2, 0, 1 / 3, 0.1)]),
    Page(page="a_2", provider="ACME", words=[], boxes=[]),
    Page(page="b_1", provider="Zoë", words=["date"], boxes=[(0, 0, 0.5, 0.5)]),
    Page(page="c_1", provider="Initech", words=["name"], boxes=[(0, 0, 1, 1)]),
]
QUESTIONS = [
    Question(question_id="1", page="a_1", question="What is the total?", answers=["5 €", "5"], key="total"),
    Question(question_id="2", page="a_1", question="Who?", answers=["ACME"]),
    Question(question_id="3", page="b_1", question="When?", answers=["today"]),
]


def written(
    folder: Path,
    clients: dict[int, list[str]] = CLIENTS,
    pages: list[Page] = PAGES,
    questions: list[Question] = QUESTIONS,
    name: str = "data",
) -> str:
    write_info(folder, DatasetInfo(name=name, clients=clients))
    write_split(folder, "train", pages, questions)
    return manifest_sha256(Dataset(folder, "train"))


def changed(rows: list[Page], **fields: object) -> list[Page]:
    return [rows[0].model_copy(update=fields), *rows[1:]]


def test_the_hash_is_the_one_that_the_page_describes(tmp_path: Path) -> None:
    # SHA-256 of the text `pfl-docvqa-manifest/1`, a newline and `{"0":{}}`.
    assert (
        written(tmp_path, {0: []}, [], [])
        == "ce8686b81e2fc3d90d9a614d82e58a7298bda0a0ad525e4bb5859c197f589df2"
    )


def test_order_name_and_pages_of_nobody_change_nothing(tmp_path: Path) -> None:
    stranger = Page(page="x_1", provider="stranger", words=["x"], boxes=[(0, 0, 1, 1)])
    clients = {1: CLIENTS[1][::-1], 0: CLIENTS[0][::-1]}
    reordered = written(tmp_path / "b", clients, [*PAGES[::-1], stranger], QUESTIONS[::-1], "other")
    assert reordered == written(tmp_path / "a")


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: written(folder, {0: ["ACME"], 1: ["Initech", "Zoë", "nobody's pages"]}),
        lambda folder: written(folder, {**CLIENTS, 2: []}),
        lambda folder: written(folder, {0: CLIENTS[0], 1: ["Initech"]}),
        lambda folder: written(folder, pages=PAGES[:-1]),
        lambda folder: written(folder, pages=changed(PAGES, provider="Zoë")),
        lambda folder: written(folder, pages=changed(PAGES, words=["total", "6 €"])),
        lambda folder: written(folder, pages=changed(PAGES, boxes=[(0, 0, 0.1, 0.1), (0.2, 0, 0.333, 0.1)])),
        lambda folder: written(folder, questions=QUESTIONS[1:]),
        lambda folder: written(
            folder, questions=[QUESTIONS[0].model_copy(update={"answers": ["5"]}), *QUESTIONS[1:]]
        ),
    ],
)
def test_any_other_content_has_another_hash(tmp_path: Path, change: Callable[[Path], str]) -> None:
    assert change(tmp_path / "b") != written(tmp_path / "a")
