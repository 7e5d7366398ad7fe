"""The full-size VT5 with random weights, and dense pages for it, made without a network."""

import random
from pathlib import Path

from PIL import Image, ImageDraw

from evaluator.docvqa.architecture import VT5Config
from evaluator.docvqa.dataset import Dataset, Page, Question, write_split
from evaluator.docvqa.tokenization import Tokenizer, train_tokenizer
from evaluator.docvqa.vt5 import VT5

WORDS_A_PAGE = 600  # 512 tokens of them are read
IMAGE_SIZE = (1240, 1754)  # an A4 page at 150 dots an inch
# Tokens of an answer with its end: amounts, dates and names, mostly under ten.
ANSWER_LENGTHS = [2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 12, 15]


def make_model() -> VT5:
    """311 million random weights."""
    return VT5.from_config(VT5Config(), seed=0).eval()


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
        image = Image.new("RGB", IMAGE_SIZE, "white")
        draw = ImageDraw.Draw(image)
        for word, box in zip(words, boxes, strict=True):
            draw.text((box[0] * IMAGE_SIZE[0], box[1] * IMAGE_SIZE[1]), word, fill="black")
        image.save(folder / "images" / f"{name}.jpg", quality=85)
        written.append(Page(page=name, provider=f"provider {number}", words=words, boxes=boxes))
    for number in range(questions):
        page = written[number * pages // questions]
        key = rng.choice(["total amount", "invoice date", "vendor", "address"])
        asked.append(
            Question(
                question_id=f"q{number}", page=page.page, question=f"What is the {key}?", answers=[_word(rng)]
            )
        )
    write_split(folder, "test", written, asked)
    return Dataset(folder, "test")


def answer_length(question: Question) -> int:
    """Tokens of the answer that is generated to `question`, drawn once for each."""
    return random.Random(question.question_id).choice(ANSWER_LENGTHS)


def _word(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return f"{rng.randrange(1, 10_000) / 100:.2f}"
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9)))
