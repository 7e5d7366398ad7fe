"""What the papers say of their rows' order, as statements about two rows that every seed can be asked.

A claim names the table that it is read from, and has the two numbers printed there. Tests of an order are paired, as
every seed has all rows on the same data. Bytes are compared at full size: docs/competition-tables.md.
"""

from collections.abc import Mapping

from starter_kit.published import Source, published
from tests.studies.reproduction.rows import EPSILONS, ROWS
from tests.studies.reproduction.verdicts import Claim, Printed, below

WITHIN = 0.05  # of federated averaging's ANLS, for the methods of track 1
BY_NAME = {row.name: row for row in ROWS}

# Which row trains a published one: the kit's variants, and the rows as published.
Names = Mapping[str, str]
PRIVACY_VARIANTS = {
    "VT5_0": "zero-shot",
    **{f"VT5_FL+DP, ε = {epsilon}": f"fl-provider-dp-{epsilon}" for epsilon in EPSILONS},
    "VT5_FL": "fedavg",
    "VT5_C": "centralized",
}
PRIVACY = PRIVACY_VARIANTS | {
    **{f"VT5_FL+DP, ε = {epsilon}": f"fl-provider-dp-privacy-paper-{epsilon}" for epsilon in EPSILONS},
    **{f"VT5_C+DP, ε = {epsilon}": f"centralized-dp-{epsilon}" for epsilon in EPSILONS},
    "VT5_FL": "fedavg-published",
}
TRACK_2_VARIANTS = {"baseline": "fl-provider-dp", "LoRA": "dp-lora", "DP-CLGECL": "dp-clgecl"}
TRACK_2 = {"baseline": "fl-provider-dp-competition", "LoRA": "dp-lora-published", "DP-CLGECL": "dp-clgecl"}
TRACK_1 = {"LoRA": "lora-published", "FedShampoo": "fedshampoo", "baseline": "fedavg-published"}


def _printed(source: Source, table: str, row: str, column: str = "anls") -> Printed:
    return Printed.of(published().table(source, table).number(row, column))


def _in_a2(rows: Names, lower: str, upper: str, sign: str = "<") -> Claim:
    """A claim of Table A2 of the paper on privacy-aware document VQA."""
    printed = _printed(Source.PRIVACY, "A2", lower), _printed(Source.PRIVACY, "A2", upper)
    return below(BY_NAME[rows[lower]], BY_NAME[rows[upper]], printed, sign)


def _federated(rows: Names) -> list[Claim]:
    return [
        _in_a2(rows, "VT5_0", "VT5_FL+DP, ε = 1"),
        _in_a2(rows, "VT5_FL+DP, ε = 1", "VT5_FL+DP, ε = 4"),
        _in_a2(rows, "VT5_FL+DP, ε = 4", "VT5_FL+DP, ε = 8"),
        _in_a2(rows, "VT5_FL+DP, ε = 8", "VT5_FL"),
        _in_a2(rows, "VT5_FL", "VT5_C", "≤"),
    ]


def _printed_3(method: str, epsilon: int) -> Printed:
    return _printed(Source.COMPETITION, "3", method, f"epsilon_{epsilon}")


def _in_track_2(rows: Names, lower: tuple[str, int], upper: tuple[str, int]) -> Claim:
    """A claim of Table 3 of the competition's paper, about two methods at an ε."""
    first, second = (BY_NAME[f"{rows[method]}-{epsilon}"] for method, epsilon in (lower, upper))
    return below(first, second, (_printed_3(*lower), _printed_3(*upper)))


def _at_every_budget(rows: Names, lower: str, upper: str) -> list[Claim]:
    return [_in_track_2(rows, (lower, epsilon), (upper, epsilon)) for epsilon in EPSILONS]


def _rising(rows: Names, method: str) -> list[Claim]:
    """More budget, a better model."""
    return [_in_track_2(rows, (method, 1), (method, 4)), _in_track_2(rows, (method, 4), (method, 8))]


def _in_track_1(lower: str, upper: str) -> Claim:
    """A claim of Table 2 of the competition's paper."""
    printed = _printed(Source.COMPETITION, "2", lower), _printed(Source.COMPETITION, "2", upper)
    return below(BY_NAME[TRACK_1[lower]], BY_NAME[TRACK_1[upper]], printed)


def _within(row: str, baseline: str, printed: Printed) -> Claim:
    return Claim(
        f"{BY_NAME[row].title} reaches the ANLS of {BY_NAME[baseline].title} within {WITHIN:.0%}",
        baseline,
        row,
        (_printed(Source.COMPETITION, "2", "baseline"), printed),
        lambda baseline, row: row.anls - (1 - WITHIN) * baseline.anls,
    )


PRIVACY_CLAIMS = [
    *_federated(PRIVACY),
    _in_a2(PRIVACY, "VT5_0", "VT5_C+DP, ε = 1"),
    _in_a2(PRIVACY, "VT5_C+DP, ε = 1", "VT5_C+DP, ε = 4"),
    _in_a2(PRIVACY, "VT5_C+DP, ε = 4", "VT5_C+DP, ε = 8"),
    _in_a2(PRIVACY, "VT5_C+DP, ε = 8", "VT5_C"),
    *(_in_a2(PRIVACY, f"VT5_FL+DP, ε = {epsilon}", f"VT5_C+DP, ε = {epsilon}") for epsilon in EPSILONS),
]
TRACK_1_CLAIMS = [
    _within("lora-published", "fedavg-published", _printed(Source.COMPETITION, "2", "LoRA")),
    _in_track_1("LoRA", "baseline"),
    _in_track_1("baseline", "FedShampoo"),
    _in_track_1("LoRA", "FedShampoo"),
]
TRACK_2_CLAIMS = [
    *_rising(TRACK_2, "baseline"),
    *_at_every_budget(TRACK_2, "baseline", "LoRA"),
    *_rising(TRACK_2, "LoRA"),
    *_at_every_budget(TRACK_2, "baseline", "DP-CLGECL"),
    *_rising(TRACK_2, "DP-CLGECL"),
    *_at_every_budget(TRACK_2, "DP-CLGECL", "LoRA"),
    below(
        BY_NAME["dp-clgecl-1"],
        BY_NAME["dp-clgecl-momentum-1"],
        (
            _printed_3("DP-CLGECL", 1),
            _printed(Source.COMPETITION, "Section 5.4", "DP-CLGECL with momentum"),
        ),
    ),
]
VARIANT_CLAIMS = [
    *_federated(PRIVACY_VARIANTS),
    *_at_every_budget(TRACK_2_VARIANTS, "baseline", "LoRA"),
    *_rising(TRACK_2_VARIANTS, "LoRA"),
    *_at_every_budget(TRACK_2_VARIANTS, "DP-CLGECL", "LoRA"),
    _within("lora-nf4", "fedavg", _printed(Source.COMPETITION, "A2", "Quantization")),
]
CLAIMS = [*PRIVACY_CLAIMS, *TRACK_1_CLAIMS, *TRACK_2_CLAIMS, *VARIANT_CLAIMS]
