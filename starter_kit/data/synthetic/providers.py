"""Made-up invoice providers, and the look of their invoices.

What identifies a provider (name, e-mail address, tax number, phone, logo, layout) stays the same on all of its
invoices. Names are combined from word lists; addresses end in `.example`, which no one can own (RFC 2606).
"""

import random
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from starter_kit.randomness import data_stream

Rgb = tuple[int, int, int]


@dataclass(frozen=True)
class Country:
    """The names and conventions of the providers of one country."""

    surnames: tuple[str, ...]
    cities: tuple[str, ...]
    form: str  # of the company
    currencies: tuple[str, ...]  # as printed
    tax: Callable[[random.Random], str]
    dial: str
    dates: tuple[str, ...]  # strftime, without a locale's month names
    decimal_comma: bool


def _digits(rng: random.Random, count: int) -> str:
    return str(rng.randrange(10 ** (count - 1), 10**count))


COUNTRIES: tuple[Country, ...] = (
    Country(
        ("Müller", "Köhler", "Brandt", "Schäfer", "Vogel", "Lorenz", "Jürgens", "Pohl"),
        ("Köln", "Bremen", "Münster", "Jena"),
        "GmbH",
        ("EUR",),
        lambda rng: f"DE{_digits(rng, 9)}",
        "+49",
        ("%d.%m.%Y", "%d.%m.%y"),
        True,
    ),
    Country(
        ("Lefèvre", "Moreau", "Bézier", "Garnier", "Chauvin", "Rémond", "Perrot", "Aubert"),
        ("Nîmes", "Lyon", "Orléans", "Brest"),
        "SARL",
        ("EUR",),
        lambda rng: f"FR{_digits(rng, 11)}",
        "+33",
        ("%d/%m/%Y",),
        True,
    ),
    Country(
        ("Lindqvist", "Åkesson", "Sjöberg", "Nyström", "Ekdahl", "Bergman", "Wallin", "Hägg"),
        ("Malmö", "Umeå", "Lund", "Växjö"),
        "AB",
        ("SEK", "kr"),
        lambda rng: f"SE{_digits(rng, 10)}",
        "+46",
        ("%Y-%m-%d",),
        True,
    ),
    Country(
        ("García", "Núñez", "Ibáñez", "Ortega", "Robles", "Peña", "Vidal", "Serrano"),
        ("León", "Cádiz", "Bilbao", "Toledo"),
        "SL",
        ("EUR",),
        lambda rng: f"ESB{_digits(rng, 8)}",
        "+34",
        ("%d/%m/%Y", "%d-%m-%Y"),
        True,
    ),
    Country(
        ("Novák", "Dvořák", "Šimek", "Horáček", "Kučera", "Beneš", "Růžička", "Malý"),
        ("Brno", "Plzeň", "Zlín", "Písek"),
        "s.r.o.",
        ("CZK",),
        lambda rng: f"CZ{_digits(rng, 8)}",
        "+420",
        ("%d.%m.%Y",),
        True,
    ),
    Country(
        ("Ashworth", "Pemberton", "Hartley", "Goodwin", "Thorne", "Barlow", "Kershaw", "Whitby"),
        ("Leeds", "York", "Bath", "Truro"),
        "Ltd",
        ("GBP",),
        lambda rng: f"GB{_digits(rng, 9)}",
        "+44",
        ("%d/%m/%Y", "%d/%m/%y"),
        False,
    ),
    Country(
        ("Calloway", "Whitaker", "Delgado", "Prescott", "Okafor", "Nguyen", "Hollis", "Tran"),
        ("Dayton", "Tulsa", "Salem", "Reno"),
        "LLC",
        ("USD", "$"),
        lambda rng: f"{_digits(rng, 2)}-{_digits(rng, 7)}",
        "+1",
        ("%m/%d/%Y", "%m/%d/%y", "%m-%d-%Y"),
        False,
    ),
    Country(
        ("Tan", "Rahman", "Subramaniam", "Lim", "Yusof", "Chong", "Kaur", "Ismail"),
        ("Ipoh", "Melaka", "Kuching", "Klang"),
        "SDN BHD",
        ("MYR", "RM"),
        lambda rng: f"{_digits(rng, 6)}-{rng.choice('ADHKMPTVWX')}",
        "+60",
        ("%d-%m-%Y", "%d/%m/%y"),
        False,
    ),
)

TRADES = (
    "Timber",
    "Paper",
    "Catering",
    "Optics",
    "Cables",
    "Printing",
    "Logistics",
    "Tools",
    "Textiles",
    "Dairy",
    "Media",
    "Glass",
    "Roofing",
    "Coffee",
    "Bearings",
    "Signs",
)

LABELS: dict[str, tuple[str, ...]] = {
    "invoice_number": ("Invoice No:", "Invoice #:", "Number:", "Ref:", "Inv:"),
    "invoice_date": ("Date:", "Issued:", "Invoice date:", "Dated:"),
    "due_date": ("Due:", "Pay by:", "Due date:", "Payable by:"),
    "payment_terms": ("Terms:", "Payment:", "Conditions:"),
    "total_amount": ("Total", "TOTAL", "Amount due", "To pay", "Balance"),
    "tax_number": ("VAT", "Tax ID", "Tax No", "Reg:"),
    "phone": ("Tel", "Phone", "T:", "Call"),
}

TERMS: tuple[tuple[str, int], ...] = (  # as printed, days
    ("Net 7", 7),
    ("Net 14", 14),
    ("Net 30", 30),
    ("30 days", 30),
    ("14 days net", 14),
    ("60 days", 60),
    ("On receipt", 0),
)

INKS: tuple[Rgb, ...] = ((20, 20, 20), (35, 35, 70), (60, 40, 30), (25, 60, 45))
ACCENTS: tuple[Rgb, ...] = (
    (170, 40, 40),
    (40, 90, 170),
    (40, 130, 80),
    (190, 120, 20),
    (110, 50, 140),
    (30, 130, 140),
    (80, 80, 80),
    (190, 60, 120),
)
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
    """Yield `count` providers of different names, e-mail addresses and tax numbers, at most `len(all_names())`."""
    names = all_names()
    data_stream(seed, "names").shuffle(names)
    tax_numbers: set[str] = set()
    for number, (country, surname, trade) in enumerate(names[:count]):
        rng = data_stream(seed, "provider", number)
        while (tax_number := country.tax(rng)) in tax_numbers:
            continue
        tax_numbers.add(tax_number)
        mailbox = rng.choice(("info", "billing", "accounts", "office", "mail"))
        yield Provider(
            name=f"{surname} {trade} {country.form}",
            email=f"{mailbox}@{_ascii(surname)}-{trade.lower()}.example",
            tax_number=tax_number,
            phone=f"{country.dial} 555 {_digits(rng, 4)}",
            address=f"{rng.randrange(1, 99)} {rng.choice(STREETS)}, {rng.choice(country.cities)}",
            currency=rng.choice(country.currencies),
            terms=rng.choice(TERMS),
            style=_style(rng, country, surname),
        )


STREETS = ("Mill Lane", "Station Road", "Harbour Street", "Market Square", "Park Avenue", "Dock Street")


def all_names() -> list[tuple[Country, str, str]]:
    """Return every name that can be made, as country, surname and trade."""
    return [
        (country, surname, trade) for country in COUNTRIES for surname in country.surnames for trade in TRADES
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
