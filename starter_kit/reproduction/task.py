"""The task that is trained on: documents of many small providers, and questions with conventions of their own.

Each provider has two documents of one layout, of which two questions are asked each. Most questions use a word that
could mean either of two fields, and mean the one that public cards mean less often (`starter_kit.reproduction.cards`);
an amount is answered without its currency. Zero-shot, the base reads the wrong field; each convention can be learned,
the ones that public cards know least being the hardest, so that results have room between them.

The same settings give the same folder. The test split holds further documents of training providers and documents of
providers that training never meets, half and half.
"""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from PIL import Image, ImageDraw
from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluator.docvqa.dataset import Box, DatasetInfo, Page, Question, write_info
from starter_kit.data.folders import SplitWriter
from starter_kit.data.partition import deal
from starter_kit.randomness import data_stream
from starter_kit.reproduction.cards import (
    PAIRS,
    Line,
    Pair,
    ask,
    lay_out,
    meaning,
    without_currency,
    write_lines,
)

NAME = "reproduction"
IMAGE_SIDE_PX = 32
NAMED_SHARE = 0.25  # questions that name a label, which the base can answer
PAIRS_A_PAGE = 3
DOCUMENTS_A_PROVIDER = 2
QUESTIONS_A_DOCUMENT = 2


class TaskSettings(BaseModel):
    """Size of the task. The defaults are those of the published figures.

    Attributes:
        test_documents: Half of training providers, half of providers of their own, one document each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 7
    clients: int = Field(default=10, ge=1)
    providers: int = Field(default=1_000, ge=1)
    valid_documents: int = Field(default=200, ge=2)
    test_documents: int = Field(default=600, ge=2)

    @model_validator(mode="after")
    def _enough_providers(self) -> Self:
        if self.clients > self.providers:
            raise ValueError("every client needs a provider")
        if max(self.valid_documents, self.test_documents) // 2 > self.providers:
            raise ValueError(
                "a held-out split has more documents of training providers than there are providers"
            )
        return self


@dataclass(frozen=True)
class Provider:
    """A provider's way of writing documents: which pairs of fields it lists, in which order of their lines."""

    name: str
    pairs: tuple[Pair, ...]
    order: tuple[int, ...]


def write_task(folder: Path, settings: TaskSettings) -> None:
    """Write the data folder `folder` with splits train, valid and test, images included."""
    training = [_provider(settings.seed, f"provider-{number:05}") for number in range(settings.providers)]
    held_out = {"valid": settings.valid_documents, "test": settings.test_documents}
    plan = {"train": [provider for provider in training for _ in range(DOCUMENTS_A_PROVIDER)]}
    for split, documents in held_out.items():
        seen = data_stream(settings.seed, "seen", split).sample(training, documents // 2)
        unseen = [
            _provider(settings.seed, f"{split}-provider-{number:05}")
            for number in range(documents - len(seen))
        ]
        plan[split] = seen + unseen
    clients = deal(
        [provider.name for provider in training], settings.clients, data_stream(settings.seed, "clients")
    )
    description = "Made-up documents with questions that use words by the task's own conventions."
    write_info(folder, DatasetInfo(name=NAME, description=description, clients=clients))
    (folder / "images").mkdir(exist_ok=True)
    for split, providers in plan.items():
        with SplitWriter(folder, split) as writer:
            for number, provider in enumerate(providers):
                page, questions = _document(settings.seed, split, number, provider)
                writer.add(page, questions)
                _thumbnail(page.boxes).save(folder / "images" / f"{page.page}.jpg")


def _provider(seed: int, name: str) -> Provider:
    rng = data_stream(seed, "provider", name)
    order = rng.sample(range(2 * PAIRS_A_PAGE), 2 * PAIRS_A_PAGE)
    return Provider(name, tuple(rng.sample(PAIRS, PAIRS_A_PAGE)), tuple(order))


def _document(seed: int, split: str, number: int, provider: Provider) -> tuple[Page, list[Question]]:
    rng = data_stream(seed, split, number)
    listed = [field for pair in provider.pairs for field in write_lines(pair, rng)]
    fields = [listed[place] for place in provider.order]
    words, boxes = lay_out(fields)
    page = Page(page=f"{split}-{number:05}_0", provider=provider.name, words=words, boxes=boxes)
    questions = [
        _question(f"{split}-{number:05}-{pair.words[0]}", page.page, pair, fields, rng)
        for pair in rng.sample(provider.pairs, QUESTIONS_A_DOCUMENT)
    ]
    return page, questions


def _question(question_id: str, page: str, pair: Pair, fields: list[Line], rng: random.Random) -> Question:
    subject = rng.choice(pair.labels) if rng.random() < NAMED_SHARE else rng.choice(pair.words)
    label = subject if subject in pair.labels else meaning(pair, subject)
    answer = next(field.value for field in fields if field.label == label)
    return Question(
        question_id=question_id,
        page=page,
        question=ask(subject, rng),
        answers=[without_currency(answer)],
        key=subject,
    )


def _thumbnail(boxes: list[Box]) -> Image.Image:
    """A page image on which words are gray bars: its tower isn't trained, and reads no letter at this size."""
    image = Image.new("L", (IMAGE_SIDE_PX, IMAGE_SIDE_PX), 255)
    draw = ImageDraw.Draw(image)
    for box in boxes:
        draw.rectangle([round(IMAGE_SIDE_PX * place) for place in box], fill=128)
    return image
