"""Forms as a data set: many small providers, and questions with conventions of their own.

Each provider has two forms of one layout, of which two questions are asked each. Most questions use a word that could
mean either of two fields, and mean the one that public cards mean less often (`starter_kit.data.forms.fields`); an
amount is answered without its currency. Zero-shot, the tiny VT5 reads the wrong field. Each convention can be learned,
the ones that public cards know least being the hardest, so that results have room between them.

The same settings give the same JSON, and the same images as long as Pillow stays the same. So the test set is as secret
as the seed is. The test split holds further forms of training providers and forms of providers that training never
meets, half and half.
"""

import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluator.docvqa.dataset import DatasetInfo, Page, Question
from evaluator.messages.progress import OnProgress, ignore_progress
from starter_kit.data.folders import SplitWriter, write_drawn
from starter_kit.data.forms.drawing import COLORS, JPEG_QUALITY, Color, draw_form
from starter_kit.data.forms.fields import (
    PAIRS,
    FormLine,
    Pair,
    ask,
    lay_out,
    meaning,
    without_currency,
    write_lines,
)
from starter_kit.data.partition import IID, Rule, deal
from starter_kit.data.summary import ImportSummary, SplitTally
from starter_kit.randomness import data_stream

NAME = "forms"
NAMED_SHARE = 0.25  # questions that name a label, which the tiny VT5 can answer
PAIRS_A_FORM = 3
FORMS_A_PROVIDER = 2
QUESTIONS_A_FORM = 2

# More than any data set of documents has.
MAX_PROVIDERS = 100_000


class FormSettings(BaseModel):
    """Size of the data set. The defaults are the demo's.

    Attributes:
        test_forms: Half of training providers, half of providers of their own, one form each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 7
    clients: int = Field(default=10, ge=1)
    partition: Rule = IID
    providers: int = Field(default=800, ge=1, le=MAX_PROVIDERS)
    valid_forms: int = Field(default=200, ge=2)
    test_forms: int = Field(default=600, ge=2)

    @model_validator(mode="after")
    def _enough_providers(self) -> Self:
        if self.clients > self.providers:
            raise ValueError("every client needs a provider")
        if max(self.valid_forms, self.test_forms) // 2 > self.providers:
            raise ValueError("a held-out split has more forms of training providers than there are providers")
        return self


@dataclass(frozen=True)
class Provider:
    """A provider's way of writing forms: which pairs of fields it lists, in which order of their lines."""

    name: str
    pairs: tuple[Pair, ...]
    order: tuple[int, ...]
    color: Color


def generate(
    folder_public: Path,
    folder_secret: Path,
    settings: FormSettings,
    on_progress: OnProgress = ignore_progress,
) -> ImportSummary:
    """Write train and valid to one data folder and test to another, or all to one; images included.

    Args:
        on_progress: Called with the forms done and all forms.
    """
    training = [_provider(settings.seed, f"provider-{number:05}") for number in range(settings.providers)]
    plan = {
        "train": [provider for provider in training for _ in range(FORMS_A_PROVIDER)],
        "valid": _held_out(settings, "valid", settings.valid_forms, training),
        "test": _held_out(settings, "test", settings.test_forms, training),
    }
    sizes = {provider.name: FORMS_A_PROVIDER for provider in training}
    clients = deal(sizes, settings.clients, data_stream(settings.seed, "clients"), settings.partition)
    description = "Made-up forms with questions that use words by conventions of their own."
    info = DatasetInfo(name=NAME, description=description, partition=settings.partition, clients=clients)
    folders = {"train": folder_public, "valid": folder_public, "test": folder_secret}
    return ImportSummary(
        info, write_drawn(folders, plan, info, partial(_write_form, settings.seed), on_progress)
    )


def write_red_splits(
    folder: Path, settings: FormSettings, *, providers: int, forms: int
) -> dict[str, SplitTally]:
    """Write two splits for attacks: about `providers` training providers, and as many that no split has. Returns their
    counts.

    `red` has `forms` new forms of each provider, as in the competition's red-team data; `red-trained` has the very
    forms that training had, beside as many of each of the others, which is the worst case. All providers are made
    alike, so that only the training can tell them apart.
    """
    rng = data_stream(settings.seed, "red")
    members = sorted(rng.sample(range(settings.providers), providers))
    named = [(number, f"provider-{number:05}") for number in members]
    named += [(settings.providers + number, f"red-provider-{number:05}") for number in range(providers)]
    tallies = {}
    for split, of_split, count in (("red", "red", forms), ("red-trained", "train", FORMS_A_PROVIDER)):
        with SplitWriter(folder, split) as writer:
            for place, name in named:
                provider = _provider(settings.seed, name)
                for number in range(place * count, (place + 1) * count):
                    writer.add(*_write_form(settings.seed, folder, of_split, number, provider))
        tallies[split] = writer.tally
    return tallies


def _held_out(settings: FormSettings, split: str, forms: int, training: list[Provider]) -> list[Provider]:
    """The provider of each form of a split: half training providers, half providers of the split's own."""
    seen = data_stream(settings.seed, "seen", split).sample(training, forms // 2)
    unseen = [
        _provider(settings.seed, f"{split}-provider-{number:05}") for number in range(forms - len(seen))
    ]
    return seen + unseen


def _provider(seed: int, name: str) -> Provider:
    rng = data_stream(seed, "provider", name)
    order = rng.sample(range(2 * PAIRS_A_FORM), 2 * PAIRS_A_FORM)
    return Provider(name, tuple(rng.sample(PAIRS, PAIRS_A_FORM)), tuple(order), rng.choice(COLORS))


def _write_form(
    seed: int, folder: Path, split: str, number: int, provider: Provider
) -> tuple[Page, list[Question]]:
    """Write the image of a split's form of that number; return its page and questions."""
    rng = data_stream(seed, split, number)
    listed = [line for pair in provider.pairs for line in write_lines(pair, rng)]
    lines = [listed[place] for place in provider.order]
    words, boxes = lay_out(lines)
    page = Page(page=f"{split}-{number:05}_0", provider=provider.name, words=words, boxes=boxes)
    questions = [
        _question(f"{split}-{number:05}-{pair.words[0]}", page.page, pair, lines, rng)
        for pair in rng.sample(provider.pairs, QUESTIONS_A_FORM)
    ]
    image = draw_form(words, boxes, provider.color)
    image.save(folder / "images" / f"{page.page}.jpg", quality=JPEG_QUALITY)
    return page, questions


def _question(question_id: str, page: str, pair: Pair, lines: list[FormLine], rng: random.Random) -> Question:
    subject = rng.choice(pair.labels) if rng.random() < NAMED_SHARE else rng.choice(pair.words)
    label = subject if subject in pair.labels else meaning(pair, subject)
    answer = next(line.value for line in lines if line.label == label)
    return Question(
        question_id=question_id,
        page=page,
        question=ask(subject, rng),
        answers=[without_currency(answer)],
        key=subject,
    )
