"""Small models, tokenizers and data folders for the tests."""

import random
from functools import cache
from pathlib import Path

from PIL import Image

from evaluator.docvqa.dataset import Box, Dataset, DatasetInfo, Page, Question, write_info, write_split
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import VT5
from tests.tiny_reference import random_vt5, tiny_config, train_tokenizer

WORDS = [
    "invoice",
    "total",
    "date",
    "12.50",
    "10/17/18",
    "net",
    "30",
    "days",
    "billing@agency.com",
    "RM",
    "due",
]


@cache
def make_tokenizer() -> Tokenizer:
    """A tokenizer of these words, trained once. Not to be changed."""
    return train_tokenizer([" ".join(WORDS), "question: What is the total? context: "] * 5, vocab_size=320)


def make_model(**changes: object) -> VT5:
    config = tiny_config(make_tokenizer().vocab_size).model_copy(update=changes)
    return random_vt5(config, seed=7).eval()


def make_dataset(folder: Path, *, pages: int = 5) -> Dataset:
    """Pages of very different lengths, the first without a word, each with a noisy image of its own."""
    rng = random.Random(3)
    (folder / "images").mkdir(parents=True)
    written: list[Page] = []
    questions: list[Question] = []
    for number in range(pages):
        name = f"doc{number}_0"
        words = rng.choices(WORDS, k=number * 12)
        written.append(Page(page=name, words=words, boxes=[make_box(rng) for _ in words]))
        Image.frombytes("RGB", (40, 56), rng.randbytes(40 * 56 * 3)).save(folder / "images" / f"{name}.jpg")
        questions += [
            Question(
                question_id=f"{name}-{key}", page=name, question=f"What is the {key}?", answers=["12.50"]
            )
            for key in ("total", "date")
        ]
    write_info(folder, DatasetInfo(name="noise"))
    write_split(folder, "test", written, questions)
    return Dataset(folder, "test")


def make_box(rng: random.Random) -> Box:
    left, right = sorted((rng.random(), rng.random()))
    top, bottom = sorted((rng.random(), rng.random()))
    return (left, top, right, bottom)
