"""Made-up invoice providers, and the look of their invoices.

What identifies a provider (name, email address, tax number, phone, logo, layout) stays the same on all of its
invoices. Names are combined from word lists; addresses end in `.example`, which no one can own (RFC 2606).
"""

import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from starter_kit.randomness import data_stream

Rgb = tuple[int, int, int]


LETTERS = "ADHKMPTVWX"


@dataclass(frozen=True)
class Country:
    """The names and conventions of the providers of one country.

    Attributes:
        form: Of the company.
        currencies: As printed.
        tax: The pattern of tax numbers.
        dates: For `strftime`, without a locale's month names.
    """

    surnames: Sequence[str]
    cities: Sequence[str]
    form: str
    currencies: Sequence[str]
    tax: str
    dial: str
    dates: Sequence[str]
    decimal_comma: bool

    def tax_number(self, rng: random.Random) -> str:
        """Draw a tax number."""
        return re.sub(
            "#+|@", lambda m: rng.choice(LETTERS) if m[0] == "@" else _digits(rng, len(m[0])), self.tax
        )


def _digits(rng: random.Random, count: int) -> str:
    return str(rng.randrange(10 ** (count - 1), 10**count))


TABLES: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
COUNTRIES = tuple(Country(**country) for country in TABLES["countries"])
LABELS: dict[str, list[str]] = TABLES["labels"]
STREETS: list[str] = TABLES["streets"]

INKS: tuple[Rgb, ...] = ((20, 20, 20), (35, 35, 70), (60, 40, 30), (25, 60, 45))
ACCENTS: tuple[Rgb, ...] = ((170, 40, 40), (40, 90, 170), (40, 130, 80), (190, 120, 20))
ACCENTS += ((110, 50, 140), (30, 130, 140), (80, 80, 80), (190, 60, 120))
PAPERS: tuple[Rgb, ...] = ((255, 255, 255), (250, 248, 240), (244, 247, 250), (246, 246, 246))

LOGOS = ("disc", "ring", "square", "diamond", "bars", "triangle", "cross", "steps")
HEADERS = ("left", "right", "center")
ARRANGEMENTS = ("rows", "table", "columns")
NUMBERS = ("{n:05d}", "{y}-{n:04d}", "INV{n:05d}", "{y}/{n:04d}", "R{n:06d}", "{c}-{n:04d}")


@dataclass(frozen=True)
class Style:
    """The look of a provider's invoices. `order` is that of the fields, `labels` are printed before them."""

    font_px: int
    ink: Rgb
    accent: Rgb
    paper: Rgb
    logo: str
    logo_px: int
    header: str
    arrangement: str
    contact_in_footer: bool
    rules: bool
    title: str
    labels: dict[str, str]
    order: tuple[str, ...]
    number_format: str
    date_format: str
    currency_first: bool
    decimal_comma: bool

    def print_date(self, day: date) -> str:
        """Return the date in the provider's format."""
        return day.strftime(self.date_format)

    def print_amount(self, cents: int) -> str:
        """Return an amount, given in cents, with the country's decimal separator."""
        text = f"{cents / 100:,.2f}"
        return text.translate(str.maketrans(",.", ".,")) if self.decimal_comma else text


@dataclass(frozen=True)
class Provider:
    """What a provider prints on every invoice."""

    name: str
    email: str
    tax_number: str
    phone: str
    address: str
    currency: str
    terms: tuple[str, int]
    style: Style


def providers(seed: int, count: int) -> Iterator[Provider]:
    """Yield `count` providers of different names, email addresses and tax numbers, at most `len(all_names())`."""
    names = all_names()
    data_stream(seed, "names").shuffle(names)
    tax_numbers: set[str] = set()
    for number, (country, surname, trade) in enumerate(names[:count]):
        rng = data_stream(seed, "provider", number)
        while (tax_number := country.tax_number(rng)) in tax_numbers:
            continue
        tax_numbers.add(tax_number)
        mailbox = rng.choice(("info", "billing", "accounts", "office", "mail"))
        yield Provider(
            name=f"{surname} {trade} {country.form}",
            email=f"{mailbox}@{_ascii(surname)}-{trade.lower()}.example",
            tax_number=tax_number,
            phone=f"{country.dial} 555 {_digits(rng, 4)}",
            address=f"{rng.randrange(1, 99)} {rng.choice(TABLES['streets'])}, {rng.choice(country.cities)}",
            currency=rng.choice(country.currencies),
            terms=tuple(rng.choice(TABLES["terms"])),
            style=_style(rng, country, surname),
        )


def all_names() -> list[tuple[Country, str, str]]:
    """Return every name that can be made, as country, surname and trade."""
    return [
        (country, surname, trade)
        for country in COUNTRIES
        for surname in country.surnames
        for trade in TABLES["trades"]
    ]


def _style(rng: random.Random, country: Country, surname: str) -> Style:
    fields = ["invoice_number", "invoice_date"]
    fields += [key for key in ("due_date", "payment_terms") if rng.random() < 0.7]
    rng.shuffle(fields)
    return Style(
        font_px=rng.choice((11, 12, 13)),
        ink=rng.choice(INKS),
        accent=rng.choice(ACCENTS),
        paper=rng.choice(PAPERS),
        logo=rng.choice(LOGOS),
        logo_px=rng.randrange(26, 44),
        header=rng.choice(HEADERS),
        arrangement=rng.choice(ARRANGEMENTS),
        contact_in_footer=rng.random() < 0.5,
        rules=rng.random() < 0.6,
        title=rng.choice(("INVOICE", "Invoice", "Tax Invoice", "BILL")),
        labels={key: rng.choice(labels) for key, labels in LABELS.items()},
        order=tuple(fields),
        number_format=rng.choice(NUMBERS).replace("{c}", _ascii(surname)[:2].upper()),
        date_format=rng.choice(country.dates),
        currency_first=rng.random() < 0.6,
        decimal_comma=country.decimal_comma,
    )


def _ascii(text: str) -> str:
    """`text` in lower case, without its accents."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
