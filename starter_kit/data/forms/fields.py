"""What public cards and forms are made of: labels with values beside them, and words that mean one of two labels.

A page lists pairs of like fields: when it was issued and when it is due, who sells and who buys. A question either
names a label, or uses a word that could mean either field of a pair ("the date"). A reader who knows no convention
can't tell which is meant. Public cards use both readings, in the proportions given here; forms know one.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.docvqa.dataset import Box

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
CURRENCIES = ("eur", "usd", "gbp", "chf")
ROADS = ("road", "street", "lane", "square")
PERIODS = ("days", "weeks", "months", "years")
SYLLABLES = ("an", "bel", "cor", "dan", "fra", "gor", "hel", "kar", "lin", "mor", "nor", "per")
NAMES = tuple(first + second for first in SYLLABLES for second in SYLLABLES if first != second)
CODES = ("ab", "bk", "cd", "dx", "fz", "gh", "hq", "jk", "kp", "lt", "mv", "nw", "pr", "qs", "rt", "sv")

PHRASINGS = ("what is the {} ?", "which {} is given ?", "tell me the {} .", "read the {} .")

ROWS_TOP, ROW_STEP, ROW_HEIGHT = 0.1, 0.12, 0.05
LEFT, LETTER_WIDTH, GAP = 0.1, 0.02, 0.02


@dataclass(frozen=True)
class Pair:
    """Two fields of one kind, and the words that can mean either of them."""

    labels: tuple[str, str]
    words: tuple[str, str, str, str]


PAIRS = (
    Pair(("issued", "due"), ("date", "day", "time", "calendar")),
    Pair(("seller", "buyer"), ("name", "company", "party", "firm")),
    Pair(("origin", "destination"), ("place", "address", "site", "location")),
    Pair(("invoice", "order"), ("number", "reference", "code", "identifier")),
    Pair(("office", "mobile"), ("phone", "telephone", "line", "extension")),
    Pair(("gross", "net"), ("amount", "total", "sum", "price")),
    Pair(("notice", "warranty"), ("period", "term", "span", "duration")),
    Pair(("author", "agent"), ("contact", "person", "signer", "clerk")),
)
# How often public cards mean by a pair's first, second, third and fourth word what forms mean by it: the further
# below one half, the more there is to unlearn.
PUBLIC_SHARES = (0.4, 0.25, 0.12, 0.05)
BARE_AMOUNT_SHARE = 0.25  # how often public cards answer an amount without its currency, as forms do


@dataclass(frozen=True)
class Line:
    """One line of a page: its label and the words of its value."""

    label: str
    value: str


@dataclass(frozen=True)
class FormLine(Line):
    """A line of one of the fields of a pair."""

    pair: Pair


def write_lines(pair: Pair, rng: random.Random) -> list[FormLine]:
    """Both fields of `pair`, with values that differ."""
    first, second = write_value(pair, rng), write_value(pair, rng)
    while second == first:
        second = write_value(pair, rng)
    return [FormLine(pair.labels[0], first, pair), FormLine(pair.labels[1], second, pair)]


def meaning(pair: Pair, word: str) -> str:
    """The label that forms mean by one of `pair`'s words.

    It alternates, so that each word has to be learned by itself: which label the pair's other words mean is no help.
    """
    return pair.labels[pair.words.index(word) % 2]


def write_value(pair: Pair, rng: random.Random) -> str:
    """A value of the kind that `pair`'s first word names."""
    match pair.words[0]:
        case "date":
            return f"{rng.randint(1, 28)} {rng.choice(MONTHS)} {rng.randint(10, 29)}"
        case "amount":
            return f"{rng.randint(1, 99)}.{rng.randint(10, 99)} {rng.choice(CURRENCIES)}"
        case "place":
            return f"{rng.randint(1, 99)} {rng.choice(NAMES)} {rng.choice(ROADS)}"
        case "number":
            return f"{rng.choice(CODES)}-{rng.randint(10, 99)}{rng.randint(10, 99)}"
        case "phone":
            return f"{rng.randint(10, 99)} {rng.randint(10, 99)} {rng.randint(10, 99)}"
        case "period":
            return f"{rng.randint(2, 60)} {rng.choice(PERIODS)}"
        case _:
            return " ".join(rng.sample(NAMES, 2))


def without_currency(value: str) -> str:
    amount, _, currency = value.rpartition(" ")
    return amount if currency in CURRENCIES else value


def ask(subject: str, rng: random.Random) -> str:
    return rng.choice(PHRASINGS).format(subject)


def lay_out(fields: Sequence[Line]) -> tuple[list[str], list[Box]]:
    """The words of a page with their boxes: a field a line, its label first."""
    words: list[str] = []
    boxes: list[Box] = []
    for number, field in enumerate(fields):
        left, top = LEFT, ROWS_TOP + ROW_STEP * number
        for word in (field.label, *field.value.split()):
            right = left + LETTER_WIDTH * len(word)
            words.append(word)
            boxes.append((round(left, 3), round(top, 3), round(right, 3), round(top + ROW_HEIGHT, 3)))
            left = right + GAP
    return words, boxes
