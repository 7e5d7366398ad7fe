"""The wordings of questions: several per key, one of which is drawn for each question.

The paper builds its questions the same way: templates for each key, the key's value as the answer (section 3).
"""

import random
from pathlib import Path

import yaml

_TABLES: dict[str, dict[str, list[str]]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
INVOICE_PHRASINGS, RECEIPT_PHRASINGS, DOCILE_PHRASINGS = (
    _TABLES[source] for source in ("invoices", "receipts", "docile")
)


def ask(phrasings: dict[str, list[str]], key: str, rng: random.Random) -> str:
    """Return a question about `key`, in a wording drawn from `rng`."""
    return rng.choice(phrasings[key])
