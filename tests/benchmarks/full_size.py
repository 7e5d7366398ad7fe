"""The full-size VT5 with random weights, and dense pages for it, made without a network.

Random weights would end an answer never or at once: `EndingGenerator` ends each after its own number of tokens.
"""

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from evaluator.docvqa.architecture import VT5Config
from evaluator.docvqa.dataset import Dataset, DatasetInfo, Page, Question, write_info, write_split
from evaluator.docvqa.generation import Encoded, Generator
from evaluator.docvqa.tokenization import EncodedText, Tokenizer
from evaluator.docvqa.vt5 import VT5
from tests.tiny_reference import random_vt5, train_tokenizer

WORDS_A_PAGE = 600  # 512 tokens of them are read
IMAGE_SIZE = (1240, 1754)  # an A4 page at 150 dots an inch
IMAGES = 64  # different ones; further pages share them, and each is read and decoded for itself
# Tokens of an answer with its end: amounts, dates and names, mostly under ten.
ANSWER_LENGTHS = [2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 12, 15]


def make_model() -> VT5:
    """311 million random weights."""
    return random_vt5(VT5Config(), seed=0).eval()


def make_tokenizer() -> Tokenizer:
    rng = random.Random(1)
    return train_tokenizer([" ".join(_word(rng) for _ in range(400)) for _ in range(200)], vocab_size=8_000)


def make_pages(folder: Path, *, pages: int, questions: int) -> Dataset:
    """Dense pages, each with a word list and a JPEG of it; the questions follow each other page by page."""
    rng = random.Random(2)
    vocabulary = [_word(rng) for _ in range(3_000)]
    (folder / "images").mkdir(parents=True)
    written, asked = [], []
    for number in range(pages):
        name = f"page{number}_0"
        words = rng.choices(vocabulary, k=WORDS_A_PAGE)
        boxes = [
            (x, y, x + 0.05, y + 0.01) for x, y in ((rng.random() * 0.9, rng.random() * 0.9) for _ in words)
        ]
        image = folder / "images" / f"{name}.jpg"
        if number < IMAGES:
            _draw(words, boxes).save(image, quality=85)
        else:
            os.link(folder / "images" / f"page{number % IMAGES}_0.jpg", image)
        written.append(Page(page=name, provider=f"provider {number}", words=words, boxes=boxes))
    for number in range(questions):
        page = written[number * pages // questions]
        key = rng.choice(["total amount", "invoice date", "vendor", "address"])
        asked.append(
            Question(
                question_id=f"q{number}", page=page.page, question=f"What is the {key}?", answers=[_word(rng)]
            )
        )
    write_info(folder, DatasetInfo(name="dense pages"))
    write_split(folder, "test", written, asked)
    return Dataset(folder, "test")


class EndingGenerator(Generator):
    """Ends the answer to each text after the number of tokens that `lengths` has for its ids."""

    lengths: dict[tuple[int, ...], int]

    def encode(self, texts: Sequence[EncodedText], features: Tensor) -> Encoded:
        encoded = super().encode(texts, features)
        self._ends = getattr(
            self, "_ends", {}
        )  # by the first numbers of a row's hidden state, as a name for the row
        for text, key in zip(texts, self._keys(encoded.hidden), strict=True):
            self._ends[key] = self.lengths[tuple(text.ids)]
        return encoded

    def _next(self, state: Any, step: int) -> tuple[Tensor, Tensor]:
        best, probability = super()._next(state, step)
        ends = torch.tensor([self._ends[key] for key in self._keys(state.hidden)], device=best.device)
        return best.masked_fill(step + 1 >= ends, self._end), probability

    @staticmethod
    def _keys(hidden: Tensor) -> list[tuple[float, ...]]:
        return [tuple(row) for row in hidden[:, 0, :4].tolist()]


def answer_length(question: Question) -> int:
    """Tokens of the answer that is generated to `question`, drawn once for each."""
    return random.Random(question.question_id).choice(ANSWER_LENGTHS)


def _draw(words: Sequence[str], boxes: Sequence[tuple[float, ...]]) -> Image.Image:
    image = Image.new("RGB", IMAGE_SIZE, "white")
    draw = ImageDraw.Draw(image)
    for word, box in zip(words, boxes, strict=True):
        draw.text((box[0] * IMAGE_SIZE[0], box[1] * IMAGE_SIZE[1]), word, fill="black")
    return image


def _word(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return f"{rng.randrange(1, 10_000) / 100:.2f}"
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9)))
