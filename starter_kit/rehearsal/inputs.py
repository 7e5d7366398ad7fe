"""A data set of the published size and shape, and base weights: both made up, and of no use but to measure.

Clients and providers are as many as in the competition's training split; few providers have most pages, as there. Pages
share the files of a few images, and each is read and decoded for itself.
"""

import os
import random
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

from evaluator.docvqa.architecture import VT5Config
from evaluator.docvqa.dataset import DatasetInfo, Page, Question, write_info, write_split
from evaluator.docvqa.reference import create_reference
from evaluator.docvqa.tokenization import train_tokenizer
from evaluator.docvqa.vt5 import VT5

CLIENTS, PROVIDERS, PAGES, QUESTIONS = 10, 4_149, 69_894, 221_329
WORDS_A_PAGE = 450
# Pixels of a page as `pfl data imdb` stores it.
IMAGE_SIZE = (707, 1000)
IMAGES = 16
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Of a provider's pages, over its rank: few providers have most pages.
SKEW = 0.8


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
        free = self.pages - self.providers
        counts = [1 + int(free * weight / sum(weights)) for weight in weights]
        counts[0] += self.pages - sum(counts)
        return counts


def make_data(folder: Path, shape: Shape) -> None:
    """Write a data folder of this shape; only its training split has pages."""
    draw = random.Random(0)  # noqa: S311 - nothing here is secret
    vocabulary = [_word(draw) for _ in range(5_000)]
    (folder / "images").mkdir(parents=True)
    names = [f"provider-{number}" for number in range(shape.providers)]
    pages = (
        _page(draw, vocabulary, folder, f"{name}-page{number}_0", name)
        for name, count in zip(names, shape.pages_of_providers(), strict=True)
        for number in range(count)
    )
    asked = (
        _question(draw, vocabulary, page, number)
        for page, count in zip(_page_names(names, shape), _shares(shape.questions, shape.pages), strict=True)
        for number in range(count)
    )
    _draw_images(draw, folder, vocabulary)
    write_info(
        folder,
        DatasetInfo(name="rehearsal", clients={c: names[c :: shape.clients] for c in range(shape.clients)}),
    )
    write_split(folder, "train", pages, asked)
    write_split(folder, "valid", [], [])


def make_base(folder: Path, *, tiny: bool) -> None:
    """Write base weights with random values: VT5-base of 311 million, or a tiny VT5."""
    draw = random.Random(1)  # noqa: S311
    texts = [" ".join(_word(draw) for _ in range(400)) for _ in range(50)]
    if tiny:
        create_reference(folder, texts, seed=0)
        return
    VT5.from_config(VT5Config(), seed=0).save(folder)
    train_tokenizer(texts, vocab_size=8_000).save(folder)


def _page_names(providers: list[str], shape: Shape) -> list[str]:
    counts = zip(providers, shape.pages_of_providers(), strict=True)
    return [f"{name}-page{number}_0" for name, count in counts for number in range(count)]


def _shares(total: int, parts: int) -> list[int]:
    return [total // parts + (part < total % parts) for part in range(parts)]


def _page(draw: random.Random, vocabulary: list[str], folder: Path, name: str, provider: str) -> Page:
    os.link(folder / "images" / f".{draw.randrange(IMAGES)}.jpg", folder / "images" / f"{name}.jpg")
    places = [(round(draw.random() * 0.9, 4), round(draw.random() * 0.9, 4)) for _ in range(WORDS_A_PAGE)]
    return Page(
        page=name,
        provider=provider,
        words=draw.choices(vocabulary, k=WORDS_A_PAGE),
        boxes=[(x, y, x + 0.05, y + 0.01) for x, y in places],
    )


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
