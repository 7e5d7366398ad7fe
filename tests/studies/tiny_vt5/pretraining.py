"""How the tiny VT5 learned to read public cards, which are nobody's data.

Federated training with differential privacy starts from public base weights, since little can be learned from scratch
under a small ε. The published weights come from public documents; the tiny model's come from generated cards. It finds
the field that a question names and copies its value. Where a question's word could mean either of two fields it has
seen both meant, as public documents use words in more than one sense, and follows the more frequent reading, which is
not the forms' (`starter_kit.data.forms`). No form, and no provider of one, is among the cards.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import tokenizers
import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from tokenizers import models, normalizers

from evaluator.docvqa.architecture import VisualConfig, VT5Config
from evaluator.docvqa.dataset import Box
from evaluator.docvqa.tokenization import UNKNOWN, Tokenizer
from evaluator.docvqa.vt5 import VT5, Batch
from evaluator.messages.progress import OnProgress, ignore_progress
from starter_kit.data.forms.fields import (
    BARE_AMOUNT_SHARE,
    PAIRS,
    PUBLIC_SHARES,
    Pair,
    ask,
    lay_out,
    meaning,
    without_currency,
    write_lines,
)
from starter_kit.optimizers import AdamW
from tests.tiny_reference import mean_loss, random_vt5, tiny_config, trained_tokenizer

WARM_UP_STEPS = 100
LEAST_RATE = 0.05  # of the learning rate, at the end
MAX_INPUT_TOKENS = 64
TOKENIZER_CARDS = 6_000
VOCABULARY = 1_024  # an upper bound: bytes, two-digit numbers, and the words of the cards
BOTH_SHARE = 0.8  # pairs of which a card has both fields
EXAM_CARDS = 400


class PretrainingSettings(BaseModel):
    """How the tiny VT5 is pre-trained. The defaults, of the shipped weights, take four minutes on one CPU core.

    Attributes:
        kinds: Cards show the first so many of `PAIRS`: few make an easier world, for trials.
        pairs_per_card: Pairs of fields on a card.
        named_share: Questions that name a label; the others use a word that could mean either field.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 1
    steps: int = Field(default=2_500, ge=1)
    batch_size: int = Field(default=64, ge=1)
    learning_rate: float = Field(default=3e-3, gt=0)
    kinds: int = Field(default=len(PAIRS), ge=1, le=len(PAIRS))
    pairs_per_card: int = Field(default=3, ge=1)
    named_share: float = Field(default=0.6, ge=0, le=1)

    @model_validator(mode="after")
    def _enough_kinds(self) -> Self:
        if self.pairs_per_card > self.kinds:
            raise ValueError(f"a card can't show {self.pairs_per_card} of {self.kinds} pairs")
        return self


@dataclass(frozen=True)
class Card:
    """A public card with a question on it. `boxes` as in `Page`."""

    question: str
    words: list[str]
    boxes: list[Box]
    answer: str


def cards(settings: PretrainingSettings, rng: random.Random) -> Iterator[Card]:
    """Cards without end, the same for the same `rng`."""
    while True:
        yield _card(settings, rng)


def _card(settings: PretrainingSettings, rng: random.Random) -> Card:
    fields = []
    for pair in rng.sample(PAIRS[: settings.kinds], settings.pairs_per_card):
        both = write_lines(pair, rng)
        fields += both if rng.random() < BOTH_SHARE else [rng.choice(both)]
    rng.shuffle(fields)
    asked = rng.choice(fields)
    subject = asked.label
    if rng.random() >= settings.named_share:
        subject, label = _read_publicly(asked.pair, rng)
        asked = next((field for field in fields if field.label == label), asked)
    answer = without_currency(asked.value) if rng.random() < BARE_AMOUNT_SHARE else asked.value
    return Card(ask(subject, rng), *lay_out(fields), answer)


def _read_publicly(pair: Pair, rng: random.Random) -> tuple[str, str]:
    """One of `pair`'s words, and the label that is meant by it this time."""
    word, share = rng.choice(list(zip(pair.words, PUBLIC_SHARES, strict=True)))
    first, second = pair.labels
    meant = meaning(pair, word)
    other = second if meant == first else first
    return word, meant if rng.random() < share else other


def small_config(vocab_size: int) -> VT5Config:
    """The tiny VT5's architecture: about 0.4 million parameters, two layers each way."""
    visual = VisualConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=16
    )
    changes = {"dropout_rate": 0.0, "hidden_dropout_prob": 0.0, "visual": visual}
    return tiny_config(vocab_size).model_copy(update=changes)


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """A byte-pair tokenizer learned from `texts` that reads numbers two digits at a time.

    So a value has few tokens, and copying it is soon learned.
    """
    backend = tokenizers.Tokenizer(models.BPE(unk_token=UNKNOWN))
    backend.normalizer = normalizers.Prepend(" ")
    return trained_tokenizer(backend, texts, vocab_size, digits=2)


def pretrain(folder: Path, settings: PretrainingSettings, on_progress: OnProgress = ignore_progress) -> float:
    """Pre-train the model and write it as a reference folder; returns its accuracy (see `exam_accuracy`).

    The same settings give the same weights on the same machine and library versions.

    Args:
        on_progress: Called with the steps done and all steps.
    """
    stream = cards(settings, random.Random(settings.seed))
    tokenizer = _learn_tokenizer(stream)
    model = initial_model(tokenizer, settings)
    _train(model, tokenizer, stream, settings, on_progress)
    model.save(folder)
    tokenizer.save(folder)
    return exam_accuracy(model, tokenizer, settings)


def make_tokenizer(settings: PretrainingSettings) -> Tokenizer:
    """The tokenizer that `pretrain` writes; the same on every machine."""
    return _learn_tokenizer(cards(settings, random.Random(settings.seed)))


def initial_model(tokenizer: Tokenizer, settings: PretrainingSettings) -> VT5:
    """The model that pre-training starts from. Its image tower is never trained."""
    return random_vt5(small_config(tokenizer.vocab_size), seed=settings.seed).eval()


def exam_accuracy(model: VT5, tokenizer: Tokenizer, settings: PretrainingSettings) -> float:
    """The share of right answers on fresh public cards, to questions that name a label.

    An amount is right with and without its currency.
    """
    naming = settings.model_copy(update={"named_share": 1.0})
    stream = cards(naming, random.Random(f"exam/{settings.seed}"))
    exam = [next(stream) for _ in range(EXAM_CARDS)]
    ids, _ = model.generate(as_batch(model, tokenizer, exam))
    read = [tokenizer.decode(row) for row in ids.tolist()]
    right = [
        without_currency(answer) == without_currency(card.answer)
        for answer, card in zip(read, exam, strict=True)
    ]
    return sum(right) / len(exam)


def _learn_tokenizer(stream: Iterator[Card]) -> Tokenizer:
    seen = [next(stream) for _ in range(TOKENIZER_CARDS)]
    texts = [text for card in seen for text in (" ".join([card.question, *card.words]), card.answer)]
    return train_tokenizer(["question: context: ", *texts], VOCABULARY)


def _train(
    model: VT5,
    tokenizer: Tokenizer,
    stream: Iterator[Card],
    settings: PretrainingSettings,
    on_progress: OnProgress,
) -> None:
    optimizer = AdamW(model.trainable_parameters().values(), weight_decay=0.0)
    for step in range(settings.steps):
        rate = min((step + 1) / WARM_UP_STEPS, max(LEAST_RATE, 1 - step / settings.steps))
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * rate
        loss = mean_loss(
            model, as_batch(model, tokenizer, [next(stream) for _ in range(settings.batch_size)])
        )
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        on_progress(step + 1, settings.steps)


def as_batch(model: VT5, tokenizer: Tokenizer, asked: list[Card]) -> Batch:
    """Cards as the model takes them. They have no page image: their pages are blank."""
    size = model.config.visual.image_size
    blank = model.page_features(torch.ones(1, 3, size, size))
    texts = [tokenizer.encode(card.question, card.words, card.boxes, MAX_INPUT_TOKENS) for card in asked]
    answers = tokenizer.encode_answers([card.answer for card in asked])
    return Batch.pad(texts, blank.expand(len(asked), -1, -1), answers)
