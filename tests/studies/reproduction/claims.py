"""What the papers say of their rows' order, as statements about two rows that every seed can be asked.

The order is that of Tables 2, 3 and A2 and section 5.4 of the competition's paper and of Table A2 of the paper on
privacy-aware document VQA. Tests of an order are paired, as every seed has all rows on the same data.
"""

from tests.studies.reproduction.rows import EPSILONS, ROWS
from tests.studies.reproduction.verdicts import Claim, below

WITHIN = 0.05  # of federated averaging's ANLS, for the methods of track 1
BY_NAME = {row.name: row for row in ROWS}


def _below(lower: str, upper: str, sign: str = "<") -> Claim:
    return below(BY_NAME[lower], BY_NAME[upper], sign)


def _rising(method: str) -> list[Claim]:
    """More budget, a better model."""
    return [_below(f"{method}-1", f"{method}-4"), _below(f"{method}-4", f"{method}-8")]


def _at_every_budget(lower: str, upper: str) -> list[Claim]:
    return [_below(f"{lower}-{epsilon}", f"{upper}-{epsilon}") for epsilon in EPSILONS]


def _within(row: str, baseline: str) -> Claim:
    return Claim(
        f"{BY_NAME[row].title} reaches the ANLS of {BY_NAME[baseline].title} within {WITHIN:.0%}",
        baseline,
        row,
        lambda baseline, row: row.anls - (1 - WITHIN) * baseline.anls,
    )


def _fewer_bytes(row: str, baseline: str, factor: float) -> Claim:
    """Sent by `row` are fewer than 1/`factor` of the bytes of `baseline`."""
    text = f"{BY_NAME[row].title} sends less than 1/{factor:g} of the bytes of {BY_NAME[baseline].title}"
    if factor == 1:
        text = f"{BY_NAME[row].title} sends fewer bytes than {BY_NAME[baseline].title}"
    return Claim(text, row, baseline, lambda row, baseline: baseline.bytes_total / factor - row.bytes_total)


CLAIMS = [
    # Table A2 of the paper on privacy-aware document VQA, by the kit's variants.
    _below("zero-shot", "fl-provider-dp-1"),
    *_rising("fl-provider-dp"),
    _below("fl-provider-dp-8", "fedavg"),
    _below("fedavg", "centralized", "≤"),
    # The same as published.
    _below("zero-shot", "fl-provider-dp-published-1"),
    *_rising("fl-provider-dp-published"),
    _below("fl-provider-dp-published-8", "fedavg-published"),
    _below("fedavg-published", "centralized", "≤"),
    _below("zero-shot", "centralized-dp-1"),
    *_rising("centralized-dp"),
    _below("centralized-dp-8", "centralized"),
    *_at_every_budget("fl-provider-dp-published", "centralized-dp"),
    # Table 3 of the competition's paper, and section 5.4.
    *_at_every_budget("fl-provider-dp", "dp-lora"),
    *_rising("dp-lora"),
    *_at_every_budget("fl-provider-dp-published", "dp-lora-published"),
    *_rising("dp-lora-published"),
    *_at_every_budget("fl-provider-dp-published", "dp-clgecl"),
    *_rising("dp-clgecl"),
    *_at_every_budget("dp-clgecl", "dp-lora"),
    *_at_every_budget("dp-clgecl", "dp-lora-published"),
    _below("dp-clgecl-1", "dp-clgecl-momentum-1"),
    # Table 2 of the competition's paper, and Table A2 of its appendix C.
    _within("lora-nf4", "fedavg"),
    _fewer_bytes("lora-nf4", "fedavg", 10),
    _within("lora-published", "fedavg-published"),
    _below("lora-published", "fedavg-published"),
    _fewer_bytes("lora-published", "fedavg-published", 10),
    _below("fedavg-published", "fedshampoo"),
    _below("lora-published", "fedshampoo"),
    _fewer_bytes("fedshampoo", "fedavg-published", 1),
    _fewer_bytes("lora-published", "fedshampoo", 1),
    # Table A2 of the competition's paper's appendix C: packed messages are the smallest.
    _fewer_bytes("lora-nf4", "lora-published", 1),
]
