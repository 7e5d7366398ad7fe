"""Skewed forms: providers that can be memorized, and that are as uneven as those of the competition's data.

A provider has constants, on each of its forms: name, email address and tax number, a layout, a color and a logo. A
model that was trained on its forms can know them without reading. Training asks for names often, for tax numbers
rarely. On some forms the name is only in the logo, which text recognition misses, as on many invoices; whoever answers
there knows the provider. The name isn't part of the email address, so nothing on a page but training gives it away.

Providers and documents are divided among clients in the proportions of the papers' Table A1. Within a client, few
providers have most of the documents (a Pareto law). Each client's providers list some pairs of fields more than others,
so question types differ by client. The held-out splits have new forms of training providers and forms of providers that
training never meets, half and half, by default two of each provider: they serve as data for attacks as well.
"""

import random
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, cycle, islice, pairwise
from math import ceil
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluator.docvqa.dataset import DatasetInfo, Page, Question
from evaluator.messages.progress import OnProgress, ignore_progress
from starter_kit.data.folders import write_drawn
from starter_kit.data.forms.drawing import COLORS, JPEG_QUALITY, Color, draw_form
from starter_kit.data.forms.fields import (
    CODES,
    NAMES,
    PAIRS,
    Line,
    Pair,
    ask,
    lay_out,
    meaning,
    without_currency,
    write_lines,
)
from starter_kit.data.forms.generation import MAX_PROVIDERS, NAMED_SHARE
from starter_kit.data.inspection import published_parts
from starter_kit.data.summary import ImportSummary
from starter_kit.randomness import data_stream

NAME = "skewed-forms"
# Of the law of a provider's documents within a client, whose mean is 3 where the least is 1.
PARETO_SHAPE = 1.5
MOST_DOCUMENTS = 40
QUESTIONS_A_FORM = 3
PAIRS_A_PROVIDER = 2
USUAL, USUAL_WEIGHT = 3, 8  # so many pairs are so much likelier at a client than others
CONSTANT_SHARE = 0.5
LABEL_OF_NAME = "provider"
# How often each constant is asked for, of the questions about any.
CONSTANTS = {LABEL_OF_NAME: 0.7, "email": 0.25, "tax": 0.05}


Group = tuple[int, int]  # numbers of providers and of their forms


class SkewedSettings(BaseModel):
    """Size of the data set.

    Attributes:
        documents: Forms of a provider in training, as a mean over all clients.
        forms_held_out: Forms of a provider in the held-out splits; two are about as many as in Table A1.
        logo_share: Share of the forms that have the provider's name in the logo only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 7
    clients: int = Field(default=10, ge=1)
    providers: int = Field(default=800, ge=1, le=MAX_PROVIDERS)
    documents: float = Field(default=4, ge=1, le=10)
    valid_forms: int = Field(default=200, ge=2)
    test_forms: int = Field(default=600, ge=2)
    forms_held_out: int = Field(default=2, ge=1)
    logo_share: float = Field(default=0.4, ge=0, le=1)

    @model_validator(mode="after")
    def _enough_providers(self) -> Self:
        if self.clients > self.providers:
            raise ValueError("every client needs a provider")
        if ceil(max(self.valid_forms, self.test_forms) / 2 / self.forms_held_out) > self.providers:
            raise ValueError("a held-out split has more training providers than there are")
        return self

    def held_out(self, split: str) -> tuple[Group, Group]:
        """Return the providers and forms of a split, by whether the providers are training providers."""
        forms = self.valid_forms if split == "valid" else self.test_forms
        seen, unseen = forms // 2, forms - forms // 2
        return (ceil(seen / self.forms_held_out), seen), (ceil(unseen / self.forms_held_out), unseen)

    def training_forms(self, client: int, providers: int) -> int | None:
        """Return the number of forms of a client's providers, if it is fixed."""
        return None


class PublishedSettings(SkewedSettings):
    """The sizes of the competition's data, by Table A1, or a fraction of them.

    Attributes:
        seen, unseen: Of the validation split and the test split, the training providers and the others.
    """

    seen: dict[str, Group]
    unseen: dict[str, Group]

    @classmethod
    def scaled(cls, fraction: float, seed: int) -> Self:
        """Return the published sizes times `fraction`."""

        def scale(part: str) -> Group:
            providers, documents = (published_parts()[part][name] for name in ("providers", "documents"))
            return max(1, round(providers * fraction)), max(1, round(documents * fraction))

        training = _published_clients()
        providers, documents = (sum(numbers) for numbers in zip(*training, strict=True))
        seen, unseen = (
            {split: scale(f"{split}, {group} providers") for split in ("valid", "test")}
            for group in ("seen", "unseen")
        )
        return cls(
            seed=seed,
            clients=len(training),
            providers=max(len(training), round(providers * fraction)),
            documents=documents / providers,
            valid_forms=seen["valid"][1] + unseen["valid"][1],
            test_forms=seen["test"][1] + unseen["test"][1],
            seen=seen,
            unseen=unseen,
        )

    def held_out(self, split: str) -> tuple[Group, Group]:
        """Return the providers and forms of a split, by whether the providers are training providers."""
        return self.seen[split], self.unseen[split]

    def training_forms(self, client: int, providers: int) -> int | None:
        """Return the published number of forms of so many providers of a client."""
        published_providers, documents = _published_clients()[client]
        return round(documents / published_providers * providers)


@dataclass(frozen=True)
class SkewedProvider:
    """A provider: its constants by label, the pairs of fields that it lists, and the order of all lines."""

    name: str
    constants: dict[str, str]
    pairs: tuple[Pair, ...]
    order: tuple[int, ...]
    color: Color


def generate_skewed(
    folder_public: Path,
    folder_secret: Path,
    settings: SkewedSettings,
    on_progress: OnProgress = ignore_progress,
) -> ImportSummary:
    """Write train and valid to one data folder and test to another, or all to one; images included.

    Args:
        on_progress: Called with the forms done and all forms.
    """
    seed = settings.seed
    clients = _clients(settings)
    training = [_provider(seed, name, client) for client, providers in clients.items() for name in providers]
    sizes = {
        name: size for client, names in clients.items() for name, size in _sizes(settings, client, names)
    }
    plan = {
        "train": [provider for provider in training for _ in range(sizes[provider.name])],
        "valid": _held_out(settings, "valid", training),
        "test": _held_out(settings, "test", training),
    }
    description = "Made-up forms of providers with constants, as uneven as the competition's."
    info = DatasetInfo(name=NAME, description=description, clients=clients)
    folders = {"train": folder_public, "valid": folder_public, "test": folder_secret}
    return ImportSummary(info, write_drawn(folders, plan, info, partial(_write_form, settings), on_progress))


def _published_clients() -> list[Group]:
    parts = published_parts()
    clients = (parts[name] for name in sorted(parts) if name.startswith("client "))
    return [(client["providers"], client["documents"]) for client in clients]


def _clients(settings: SkewedSettings) -> dict[int, list[str]]:
    """Divide the providers among clients in the published proportions; every client has one."""
    shares = [providers for providers, _ in islice(cycle(_published_clients()), settings.clients)]
    spare = settings.providers - settings.clients
    ends = [round(spare * summed / sum(shares)) for summed in accumulate(shares, initial=0)]
    names = iter(f"provider-{number:05}" for number in range(settings.providers))
    return {
        client: list(islice(names, 1 + end - start)) for client, (start, end) in enumerate(pairwise(ends))
    }


def _sizes(settings: SkewedSettings, client: int, names: list[str]) -> list[tuple[str, int]]:
    """Return how many training forms each provider of a client has."""
    rng = data_stream(settings.seed, "sizes", client)
    ratios = [documents / providers for providers, documents in _published_clients()]
    mean = settings.documents * ratios[client % len(ratios)] / (sum(ratios) / len(ratios))
    least = mean * (PARETO_SHAPE - 1) / PARETO_SHAPE
    sizes = [min(MOST_DOCUMENTS, max(1, round(least * rng.paretovariate(PARETO_SHAPE)))) for _ in names]
    wanted = settings.training_forms(client, len(names))
    while wanted is not None and sum(sizes) != wanted:
        # The cut at the most documents leaves some over, which go to providers in proportion to their sizes.
        (place,) = rng.choices(range(len(sizes)), sizes)
        changed = sizes[place] + (1 if sum(sizes) < wanted else -1)
        sizes[place] = min(MOST_DOCUMENTS, max(1, changed))
    return list(zip(names, sizes, strict=True))


def _held_out(settings: SkewedSettings, split: str, training: list[SkewedProvider]) -> list[SkewedProvider]:
    """The provider of each form of a split: training providers first, then providers of the split's own."""
    (seen_providers, seen_forms), (unseen_providers, unseen_forms) = settings.held_out(split)
    rng = data_stream(settings.seed, "seen", split)
    seen = rng.sample(training, seen_providers)
    unseen = [
        _provider(settings.seed, f"{split}-provider-{number:05}", rng.randrange(settings.clients))
        for number in range(unseen_providers)
    ]
    return _repeated(seen, seen_forms) + _repeated(unseen, unseen_forms)


def _repeated(providers: list[SkewedProvider], forms: int) -> list[SkewedProvider]:
    """Return each provider as often as it has forms; their numbers of forms differ by at most one."""
    each, more = divmod(forms, len(providers))
    return [one for place, one in enumerate(providers) for _ in range(each + (place < more))]


def _provider(seed: int, name: str, client: int) -> SkewedProvider:
    usual = data_stream(seed, "usual", client).sample(PAIRS, USUAL)
    rng = data_stream(seed, "provider", name)
    pairs: list[Pair] = []
    while len(pairs) < PAIRS_A_PROVIDER:
        (pair,) = rng.choices(PAIRS, [USUAL_WEIGHT if pair in usual else 1 for pair in PAIRS])
        pairs += [pair] if pair not in pairs else []
    first, second, user, host = (rng.choice(NAMES) for _ in range(4))
    constants = {
        LABEL_OF_NAME: f"{first} {second}",
        "email": f"{user}@{host}",
        "tax": f"{rng.choice(CODES)}-{rng.randint(10, 99)}{rng.randint(10, 99)}",
    }
    lines = len(constants) + 2 * PAIRS_A_PROVIDER
    return SkewedProvider(
        name, constants, tuple(pairs), tuple(rng.sample(range(lines), lines)), rng.choice(COLORS)
    )


def _write_form(
    settings: SkewedSettings, folder: Path, split: str, number: int, provider: SkewedProvider
) -> tuple[Page, list[Question]]:
    """Write the image of a split's form of that number; return its page and questions."""
    rng = data_stream(settings.seed, split, number)
    constants = [Line(label, value) for label, value in provider.constants.items()]
    listed = [*constants, *(line for pair in provider.pairs for line in write_lines(pair, rng))]
    lines = [listed[place] for place in provider.order]
    is_in_logo_only = rng.random() < settings.logo_share
    words, boxes = lay_out([line for line in lines if not is_in_logo_only or line.label != LABEL_OF_NAME])
    page = Page(page=f"{split}-{number:05}_0", provider=provider.name, words=words, boxes=boxes)
    values = {line.label: line.value for line in lines}
    subjects: list[str] = []
    while len(subjects) < QUESTIONS_A_FORM:
        subject = _subject(provider, rng)
        subjects += [subject] if subject not in subjects else []
    meant = {word: meaning(pair, word) for pair in provider.pairs for word in pair.words}
    questions = [
        Question(
            question_id=f"{split}-{number:05}-{subject}",
            page=page.page,
            question=ask(subject, rng),
            answers=[without_currency(values[meant.get(subject, subject)])],
            key=subject,
        )
        for subject in subjects
    ]
    image = draw_form(words, boxes, provider.color, provider.constants[LABEL_OF_NAME])
    image.save(folder / "images" / f"{page.page}.jpg", quality=JPEG_QUALITY)
    return page, questions


def _subject(provider: SkewedProvider, rng: random.Random) -> str:
    """Return what a question is about: a constant, a label of one of the provider's pairs, or a word for one."""
    if rng.random() < CONSTANT_SHARE:
        (subject,) = rng.choices(list(CONSTANTS), list(CONSTANTS.values()))
        return subject
    pair = rng.choice(provider.pairs)
    return rng.choice(pair.labels if rng.random() < NAMED_SHARE else pair.words)
