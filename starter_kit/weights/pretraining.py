"""Base weights for trials: a tiny VT5 that has read made-up cards, which are nobody's data.

Federated training with differential privacy starts from public base weights, since little can be learned from scratch
under a small ε. The published weights come from public documents; this module makes the tiny model's from generated
ones. A card lists a few values under their labels and a question asks for one of them. Some questions ask for a label
that is not on the card, with the answer `unanswerable`, as in public question answering data. The tiny model learns
what values look like and hardly learns to read, so on pages that it doesn't know it mostly says `unanswerable`, which
scores nothing: that there always is an answer, and of which kind, is left for federated training to teach. A gain over
these base weights is therefore easier to make than one over weights that can read.
"""

import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from evaluator.docvqa.dataset import Box
from evaluator.docvqa.reference import create_reference
from evaluator.docvqa.vt5 import Batch

UNANSWERABLE = "unanswerable"
CARDS = 16_000
TOKENIZER_CARDS = 6_000
STEPS = 1_500
BATCH_SIZE = 24
LEARNING_RATE = 3e-3
WARM_UP_STEPS = 50
MAX_INPUT_TOKENS = 64
LABELS_PER_CARD = 5
UNANSWERABLE_SHARE = 0.12

PHRASINGS = (
    "What is the {}?",
    "Which {} is given?",
    "Tell me the {}.",
    "Read the {}.",
    "What does the {} say?",
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
SYLLABLES = (
    "an",
    "bel",
    "cor",
    "dan",
    "el",
    "fra",
    "gor",
    "hel",
    "in",
    "jo",
    "kar",
    "lin",
    "mor",
    "nor",
    "ol",
    "per",
)


@dataclass(frozen=True)
class Card:
    """A made-up card with its question. `boxes` as in `Page`."""

    question: str
    words: list[str]
    boxes: list[Box]
    answer: str


class CardMaker:
    """Cards without end, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  (made-up text, no secret)
        self._kinds: list[tuple[tuple[str, ...], Callable[[], str]]] = [
            (("date", "day", "birthday"), self._date),
            (("total", "amount", "price", "sum"), lambda: f"{self._number(3)}.{self._digits(2)}"),
            (
                ("company", "club", "shop"),
                lambda: f"{self._name()} {self._name()} {self._pick('ltd', 'inc', 'bhd')}",
            ),
            (
                ("address", "place"),
                lambda: f"{self._number(2)}, {self._name()} road, {self._digits(5)} {self._name()}",
            ),
            (("tax number", "plate"), lambda: f"{self._letters(2)}{self._digits(8)}"),
            (("terms", "notice"), lambda: f"{self._pick('7', '10', '14', '30', '60')} days"),
            (("e-mail", "contact"), lambda: f"info@{self._name()}-{self._name()}.example"),
            (("phone", "telephone"), lambda: f"+{self._number(2)} {self._digits(3)} {self._digits(4)}"),
            (("number", "reference"), lambda: f"{self._letters(2)}-{self._year()}-{self._digits(4)}"),
            (("author", "captain"), lambda: f"{self._name()} {self._name()}"),
            (("departure", "opening"), lambda: f"{self._number(1)}:{self._digits(2)}"),
            (("weight", "length"), lambda: f"{self._number(3)} {self._pick('kg', 'km', 'cm')}"),
            (("website",), lambda: f"www.{self._name()}.example"),
        ]

    def cards(self, count: int) -> Iterator[Card]:
        for _ in range(count):
            yield self._card()

    def _card(self) -> Card:
        kinds = self._random.sample(self._kinds, LABELS_PER_CARD + 1)
        rows = [(self._pick(*labels), make()) for labels, make in kinds]
        missing = rows.pop()
        if self._random.random() < UNANSWERABLE_SHARE:
            label, answer = missing[0], UNANSWERABLE
        else:
            label, answer = self._random.choice(rows)
        words, boxes = _lay_out(rows)
        words = [word if self._random.random() < 0.5 else word.title() for word in words]
        return Card(self._pick(*PHRASINGS).format(label), words, boxes, answer)

    def _date(self) -> str:
        day, month = f"{self._random.randint(1, 28):02d}", self._random.randint(1, 12)
        return self._pick(
            f"{day}/{month:02d}/{self._year()}",
            f"{self._year()}-{month:02d}-{day}",
            f"{day}-{month:02d}-{self._year()}",
            f"{day} {MONTHS[month - 1]} {self._year()}",
        )

    def _year(self) -> str:
        return str(self._random.randint(2010, 2029))

    def _name(self) -> str:
        return "".join(self._random.choices(SYLLABLES, k=self._random.randint(2, 3)))

    def _number(self, most_digits: int) -> str:
        return str(self._random.randrange(1, 10 ** self._random.randint(1, most_digits)))

    def _digits(self, count: int) -> str:
        return "".join(self._random.choices(string.digits, k=count))

    def _letters(self, count: int) -> str:
        return "".join(self._random.choices(string.ascii_lowercase, k=count))

    def _pick(self, *options: str) -> str:
        return self._random.choice(options)


def _lay_out(rows: list[tuple[str, str]]) -> tuple[list[str], list[Box]]:
    """One row a line, words from left to right."""
    words: list[str] = []
    boxes: list[Box] = []
    for number, (label, value) in enumerate(rows):
        left, top = 0.1, 0.1 + 0.15 * number
        for word in (*label.split(), *value.split()):
            right = min(1.0, left + 0.02 * len(word))
            words.append(word)
            boxes.append((round(left, 3), round(top, 3), round(right, 3), round(top + 0.04, 3)))
            left = min(0.95, right + 0.02)
    return words, boxes


def create_base(
    folder: Path, *, seed: int, vocab_size: int, on_progress: Callable[[int, int], None]
) -> float:
    """Write a reference folder with pre-trained weights; returns the mean loss over the last hundred steps.

    The same seed gives the same weights on the same machine and library versions.
    """
    cards = list(CardMaker(seed).cards(CARDS))
    texts = [" ".join([card.question, *card.words, card.answer]) for card in cards[:TOKENIZER_CARDS]]
    model, tokenizer = create_reference(folder, texts, seed=seed, vocab_size=vocab_size)
    size = model.config.visual.image_size
    blank = model.page_features(torch.ones(1, 3, size, size)).detach()
    encoded = [tokenizer.encode(card.question, card.words, card.boxes, MAX_INPUT_TOKENS) for card in cards]
    answers = tokenizer.encode_answers([card.answer for card in cards])
    optimizer = torch.optim.AdamW(model.trainable_parameters().values(), lr=LEARNING_RATE, weight_decay=0.0)
    draw = random.Random(seed)  # noqa: S311  (public data, no secret)
    losses = []
    model.eval()  # dropout only slows a model of this size down
    for step in range(STEPS):
        rate = min(1.0, (step + 1) / WARM_UP_STEPS) * max(0.1, 1 - step / STEPS)
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * rate
        chosen = [draw.randrange(CARDS) for _ in range(BATCH_SIZE)]
        features = blank.expand(BATCH_SIZE, -1, -1)
        loss = model.loss(Batch.pad([encoded[i] for i in chosen], features, [answers[i] for i in chosen]))
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(float(loss.detach()))
        on_progress(step + 1, STEPS)
    model.save(folder)
    return sum(losses[-100:]) / len(losses[-100:])
