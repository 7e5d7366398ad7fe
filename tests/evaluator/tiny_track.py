"""What a worker needs for a track, in small: a reference folder and a test set of three questions."""

from pathlib import Path

from PIL import Image

from evaluator.docvqa.dataset import DatasetInfo, Page, Question, write_info, write_split
from tests.tiny_reference import create_reference

ANSWER = "9.00"


def write_reference(folder: Path) -> None:
    create_reference(folder, [f"What is the total? {ANSWER}"] * 20, seed=1, vocab_size=300)


def write_leakage_set(folder: Path, split: str) -> None:
    """Two members and two nonmembers with a page and a question each."""
    names = ["Ada Ltd", "Bo Ltd", "Cy Ltd", "Di Ltd"]
    pages = [
        Page(
            page=f"{number:024x}_0",
            words=["Total", f"{number}.00"],
            boxes=[(0, 0, 0.5, 0.1), (0.5, 0, 1, 0.1)],
            provider=name,
        )
        for number, name in enumerate(names)
    ]
    questions = [
        Question(question_id=page.page, page=page.page, question="What is the total?", answers=page.words[1:])
        for page in pages
    ]
    write_info(folder, DatasetInfo(name="red", clients={"0": names[:1], "1": names[1:2]}))
    write_split(folder, split, pages, questions)
    (folder / "images").mkdir()
    for page in pages:
        Image.new("RGB", (40, 40), "white").save(folder / "images" / f"{page.page}.jpg")


def write_test_set(folder: Path) -> None:
    pages = [
        Page(page=f"{number:024x}_0", words=["Total", ANSWER], boxes=[(0, 0, 0.5, 0.1), (0.5, 0, 1, 0.1)])
        for number in range(3)
    ]
    questions = [
        Question(question_id=page.page, page=page.page, question="What is the total?", answers=[ANSWER])
        for page in pages
    ]
    write_info(folder, DatasetInfo(name="secret"))
    write_split(folder, "test", pages, questions)
    (folder / "images").mkdir()
    for page in pages:
        Image.new("RGB", (40, 40), "white").save(folder / "images" / f"{page.page}.jpg")
