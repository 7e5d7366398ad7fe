"""The smallest data folder and base model that a training run can start from."""

from pathlib import Path

from PIL import Image

from evaluator.docvqa.dataset import DatasetInfo, Page, Question, write_info, write_split

PROVIDERS = ["Ash", "Birch", "Cedar", "Dogwood", "Elm", "Fir"]
CLIENTS = {0: PROVIDERS[:2], 1: PROVIDERS[2:4], 2: [*PROVIDERS[4:], "Ghost"]}  # nobody knows a page of Ghost


def make_data(folder: Path) -> Path:
    """A data folder with one page and two questions for each provider, and a `valid` split of the same kind."""
    (folder / "images").mkdir(parents=True)
    for split in ("train", "valid"):
        pages, questions = [], []
        for number, provider in enumerate(PROVIDERS):
            name = f"{split}{number}_0"
            Image.new("RGB", (20, 20), (40 * number, 99, 99)).save(folder / "images" / f"{name}.jpg")
            words = [provider, "owes", str(number)]
            boxes = [(0.1 * n, 0.1, 0.1 * n + 0.05, 0.2) for n in range(3)]
            pages.append(Page(page=name, provider=provider, words=words, boxes=boxes))
            for key, answer in (("name", provider), ("amount", str(number))):
                questions.append(
                    Question(
                        question_id=f"{name}-{key}",
                        page=name,
                        question=f"What is the {key}?",
                        answers=[answer],
                        key=key,
                    )
                )
        write_split(folder, split, pages, questions)
    write_info(folder, DatasetInfo(name="pocket", clients=CLIENTS))
    return folder


def make_base(folder: Path) -> Path:
    """Random weights of a tiny VT5 with a tokenizer for the pocket data."""
    # Loads torch, which the process of pytest that only hands out tests would do to read `conftest.py`.
    from tests.tiny_reference import create_reference

    create_reference(folder, [*PROVIDERS, "What is the name amount owes?"], seed=3, vocab_size=300)
    return folder
