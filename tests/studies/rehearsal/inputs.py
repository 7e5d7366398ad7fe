"""A data set of the published size and shape, and base weights: both made up, and of no use but to measure.

Clients and providers are as many as in the competition's training split; few providers have most pages, as there. Pages
share the files of a few images and the words of a few texts, and each is read, decoded and parsed for itself.
"""

import os
import random
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

from evaluator.docvqa.architecture import VT5Config
from evaluator.docvqa.dataset import DatasetInfo, Page, Question, to_line, write_info, write_split
from tests.tiny_reference import create_reference, random_vt5, train_tokenizer

CLIENTS, PROVIDERS, PAGES, QUESTIONS = 10, 4_149, 69_894, 221_329
WORDS_A_PAGE = 450
# Pixels of a page as `pfl data imdb` stores it.
IMAGE_SIZE = (707, 1000)
# Different ones; drawing others for each page would take minutes.
IMAGES, TEXTS = 16, 256
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Of a provider's pages, over its rank: few providers have most pages.
SKEW = 0.8
# What the lines of pages have in place of their names.
PAGE, PROVIDER = "{page}", "{provider}"


@dataclass(frozen=True)
class Shape:
    """How large a data set is."""

    clients: int
    providers: int
    pages: int
    questions: int

    @classmethod
    def scaled(cls, scale: float) -> "Shape":
        """Return the published shape, with `scale` times as many of everything but clients."""
        providers = max(CLIENTS, round(PROVIDERS * scale))
        pages = max(providers, round(PAGES * scale))
        return cls(CLIENTS, providers, pages, max(pages, round(QUESTIONS * scale)))

    def pages_of_providers(self) -> list[int]:
        """Return the number of pages of each provider, at least one, the largest first."""
        weights = [(rank + 1) ** -SKEW for rank in range(self.providers)]
        a_weight = (self.pages - self.providers) / sum(weights)
        counts = [1 + int(a_weight * weight) for weight in weights]
        counts[0] += self.pages - sum(counts)
        return counts


# What private rounds train on: as many pages as a few providers have.
SLICE = Shape(2, 16, 20, 24)


def make_data(folder: Path, shape: Shape) -> None:
    """Write a data folder of this shape; only its training split has pages."""
    draw = random.Random(0)
    vocabulary = [_word(draw) for _ in range(5_000)]
    (folder / "images").mkdir(parents=True)
    _draw_images(draw, folder, vocabulary)
    names = [f"provider-{number}" for number in range(shape.providers)]
    pages = [
        (f"{name}-page{number}_0", name)
        for name, count in zip(names, shape.pages_of_providers(), strict=True)
        for number in range(count)
    ]
    asked = (
        _question(draw, vocabulary, page, number)
        for (page, _), count in zip(pages, _shares(shape.questions, shape.pages), strict=True)
        for number in range(count)
    )
    write_info(
        folder,
        DatasetInfo(name="rehearsal", clients={c: names[c :: shape.clients] for c in range(shape.clients)}),
    )
    write_split(folder, "train", [], asked)
    write_split(folder, "valid", [], [])
    lines = [_line(draw, vocabulary) for _ in range(TEXTS)]
    with (folder / "train" / "pages.jsonl").open("w", encoding="utf-8") as file:
        for page, provider in pages:
            os.link(folder / "images" / f".{draw.randrange(IMAGES)}.jpg", folder / "images" / f"{page}.jpg")
            file.write(draw.choice(lines).replace(PAGE, page, 1).replace(PROVIDER, provider, 1))


def make_base(folder: Path, *, tiny: bool) -> None:
    """Write base weights with random values: VT5-base of 311 million, or a tiny VT5."""
    draw = random.Random(1)
    texts = [" ".join(_word(draw) for _ in range(400)) for _ in range(50)]
    if tiny:
        create_reference(folder, texts, seed=0)
        return
    random_vt5(VT5Config(), seed=0).save(folder)
    train_tokenizer(texts, vocab_size=8_000).save(folder)


def _shares(total: int, parts: int) -> list[int]:
    return [total // parts + (part < total % parts) for part in range(parts)]


def _line(draw: random.Random, vocabulary: list[str]) -> str:
    """Return the line of a page of a text, in which its names are still missing."""
    places = [(round(draw.random() * 0.9, 4), round(draw.random() * 0.9, 4)) for _ in range(WORDS_A_PAGE)]
    boxes = [(x, y, round(x + 0.05, 4), round(y + 0.01, 4)) for x, y in places]
    page = Page.model_construct(
        page=PAGE, provider=PROVIDER, words=draw.choices(vocabulary, k=WORDS_A_PAGE), boxes=boxes
    )
    return to_line(page)


def _question(draw: random.Random, vocabulary: list[str], page: str, number: int) -> Question:
    return Question(
        question_id=f"{page}-{number}",
        page=page,
        question="What is the total amount?",
        answers=[draw.choice(vocabulary)],
    )


def _draw_images(draw: random.Random, folder: Path, vocabulary: list[str]) -> None:
    for number in range(IMAGES):
        image = Image.new("RGB", IMAGE_SIZE, "white")
        pen = ImageDraw.Draw(image)
        for word in draw.choices(vocabulary, k=WORDS_A_PAGE):
            pen.text((draw.random() * 650, draw.random() * 980), word, fill="black")
        image.save(folder / "images" / f".{number}.jpg", quality=85)


def _word(draw: random.Random) -> str:
    return "".join(draw.choices(LETTERS, k=draw.randint(2, 9)))
