"""The content of one invoice: its items, and the text of each of its keys as printed."""

import random
from dataclasses import dataclass
from datetime import date, timedelta

from starter_kit.data.synthetic.providers import TABLES, Provider

FIRST_DAY = date(2017, 1, 1)
DAYS = 6 * 365


@dataclass(frozen=True)
class Invoice:
    """An invoice of `provider`. `values` maps every printed key to the text on the page."""

    provider: Provider
    values: dict[str, str]
    items: list[tuple[str, str]]  # article, amount as printed


def write_invoice(provider: Provider, rng: random.Random) -> Invoice:
    """Return an invoice that adds up: its total is the sum of its items, its due date follows from the terms."""
    style = provider.style
    issued = FIRST_DAY + timedelta(days=rng.randrange(DAYS))
    terms, days = provider.terms
    cents = [rng.randrange(500, 90_000) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
    values = {
        "provider_name": provider.name,
        "provider_email": provider.email,
        "tax_number": provider.tax_number,
        "phone": provider.phone,
        "invoice_number": style.number_format.format(n=rng.randrange(1, 9_999), y=issued.year),
        "invoice_date": style.print_date(issued),
        "due_date": style.print_date(issued + timedelta(days=days)),
        "payment_terms": terms,
        "total_amount": style.print_amount(sum(cents)),
        "currency": provider.currency,
    }
    for key in ("due_date", "payment_terms"):
        if key not in style.order:
            del values[key]
    articles = rng.sample(TABLES["articles"], len(cents))
    return Invoice(
        provider, values, [(a, style.print_amount(c)) for a, c in zip(articles, cents, strict=True)]
    )
