"""Synthetic invoices as a data set: its providers, clients, splits and questions.

The same seed gives the same bytes of JSON, and the same images as long as Pillow stays the same. So the test set
is as secret as the seed is.
"""

import hashlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluator.docvqa.dataset import DatasetInfo, Page, Question
from evaluator.messages.progress import OnProgress, ignore_progress
from starter_kit.data.folders import write_drawn
from starter_kit.data.partition import IID, Rule, deal
from starter_kit.data.phrasings import INVOICE_PHRASINGS, ask
from starter_kit.data.summary import Finding, Findings, ImportSummary, SplitTally
from starter_kit.data.synthetic.invoices import Invoice, write_invoice
from starter_kit.data.synthetic.providers import Provider, all_names, providers
from starter_kit.data.synthetic.rendering import draw_invoice
from starter_kit.randomness import data_stream

NAME = "synthetic-invoices"

# The relative frequencies of questions about a key.
KEY_WEIGHTS = {
    "provider_name": 4,
    "total_amount": 4,
    "invoice_date": 3,
    "invoice_number": 3,
    "provider_email": 2,
    "tax_number": 2,
    "due_date": 2,
    "currency": 2,
    "phone": 1,
    "payment_terms": 1,
}

SKEW = 1.0  # the exponent of the Zipf law by which training pages fall to providers
QUESTIONS_A_PAGE = (2, 3)  # one of these numbers
WIDTH_PX, HEIGHT_PX, JPEG_QUALITY = 300, 400, 80
PAGES_AN_UNSEEN_PROVIDER = 4  # pages of a held-out split, of which half are of seen providers


class SyntheticSettings(BaseModel):
    """The size and shape of a synthetic data set. The defaults are the demo's.

    Attributes:
        valid_pages: Pages of the split, half of them of unseen providers; `test_pages` likewise.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 7
    clients: int = Field(default=10, ge=1, le=1000)
    partition: Rule = IID
    train_providers: int = Field(default=400, ge=1)
    train_pages: int = Field(default=900, ge=1)
    valid_pages: int = Field(default=60, ge=2)
    test_pages: int = Field(default=120, ge=2)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not self.clients <= self.train_providers <= self.train_pages:
            raise ValueError("every client needs a training provider, and every training provider a page")
        if self.providers > len(all_names()):
            raise ValueError(
                f"at most {len(all_names())} providers can be named, {self.providers} are required"
            )
        return self

    @property
    def unseen_valid_providers(self) -> int:
        """Return the number of providers that only validation has."""
        return max(1, self.valid_pages // PAGES_AN_UNSEEN_PROVIDER)

    @property
    def unseen_test_providers(self) -> int:
        """Return the number of providers that only the test has."""
        return max(1, self.test_pages // PAGES_AN_UNSEEN_PROVIDER)

    @property
    def providers(self) -> int:
        """Return the number of all providers."""
        return self.train_providers + self.unseen_valid_providers + self.unseen_test_providers


def generate(
    folder_public: Path,
    folder_secret: Path,
    settings: SyntheticSettings,
    on_progress: OnProgress = ignore_progress,
) -> ImportSummary:
    """Write train and valid to one data folder and test to another, images included.

    Args:
        on_progress: Called with the pages done and all pages.
    """
    everyone = list(providers(settings.seed, settings.providers))
    training = everyone[: settings.train_providers]
    unseen_valid = everyone[settings.train_providers : -settings.unseen_test_providers]
    unseen_test = everyone[-settings.unseen_test_providers :]
    pages = pages_by_rank(settings)
    plan = {
        "train": [provider for provider, count in zip(training, pages, strict=True) for _ in range(count)],
        "valid": _held_out(settings, "valid", settings.valid_pages, training, pages, unseen_valid),
        "test": _held_out(settings, "test", settings.test_pages, training, pages, unseen_test),
    }
    sizes = {provider.name: count for provider, count in zip(training, pages, strict=True)}
    clients = deal(sizes, settings.clients, data_stream(settings.seed, "clients"), settings.partition)

    description = "Drawn invoices of made-up providers."  # without the seed: it would give the test set away
    info = DatasetInfo(name=NAME, description=description, partition=settings.partition, clients=clients)
    folders = {"train": folder_public, "valid": folder_public, "test": folder_secret}
    tallies = write_drawn(folders, plan, info, partial(write_page, settings.seed), on_progress)
    return ImportSummary(info, tallies, _lone_providers(tallies))


def pages_by_rank(settings: SyntheticSettings) -> list[int]:
    """Return the training pages of each provider: one each, the rest by a Zipf law over their ranks."""
    weights = list(accumulate((rank + 1) ** -SKEW for rank in range(settings.train_providers)))
    counts = [1] * settings.train_providers
    rest = settings.train_pages - settings.train_providers
    for rank in data_stream(settings.seed, "skew").choices(range(len(counts)), cum_weights=weights, k=rest):
        counts[rank] += 1
    return counts


def _held_out(
    settings: SyntheticSettings,
    split: str,
    pages: int,
    seen: list[Provider],
    seen_pages: list[int],
    unseen: list[Provider],
) -> list[Provider]:
    """The provider of each page of a split: half new invoices of seen providers, half of unseen ones."""
    rng = data_stream(settings.seed, "held out", split)
    plan = rng.choices(seen, weights=seen_pages, k=pages - pages // 2)
    plan += unseen + rng.choices(unseen, k=pages // 2 - len(unseen))
    rng.shuffle(plan)
    return plan


def write_page(
    seed: int,
    folder: Path,
    split: str,
    number: int,
    provider: Provider,
    questions_a_page: tuple[int, ...] = QUESTIONS_A_PAGE,
) -> tuple[Page, list[Question]]:
    """Write the image of a split's page of that number, an invoice of `provider`; return the page and its questions."""
    rng = data_stream(seed, split, number)
    invoice = write_invoice(provider, rng)
    sheet = draw_invoice(invoice, WIDTH_PX, HEIGHT_PX)
    name = hashlib.sha256(f"{NAME}/{seed}/{split}/{number}".encode()).hexdigest()[:24] + "_0"
    sheet.image.save(folder / "images" / f"{name}.jpg", quality=JPEG_QUALITY)
    page = Page(page=name, provider=provider.name, words=sheet.words, boxes=sheet.boxes)
    keys = _draw_keys(invoice, rng.choice(questions_a_page), rng.random)
    questions = [
        Question(
            question_id=f"{split}-{number}-{key}",
            page=name,
            question=ask(INVOICE_PHRASINGS, key, rng),
            answers=[invoice.values[key]],
            key=key,
        )
        for key in keys
    ]
    return page, questions


def _draw_keys(invoice: Invoice, count: int, draw: Callable[[], float]) -> list[str]:
    """`count` different printed keys, the likelier the heavier (Efraimidis and Spirakis, 2006)."""
    priority = {key: draw() ** (1 / KEY_WEIGHTS[key]) for key in invoice.values}
    return sorted(priority, key=priority.__getitem__, reverse=True)[:count]


def _lone_providers(tallies: dict[str, SplitTally]) -> Findings:
    findings = Findings()
    pages: Counter[str] = sum((tally.pages_by_provider for tally in tallies.values()), Counter())
    for provider in (provider for provider, count in pages.items() if count == 1):
        findings.note(Finding.ONE_DOCUMENT, provider)
    return findings
