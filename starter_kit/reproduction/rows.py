"""What is trained for the reproduction, and what the papers say of the outcome.

The order is that of Tables 2 and 3 of the competition's paper and of Table A2 of the paper on privacy-aware document
VQA; tests of an order are paired, as every seed has all rows on the same data.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

CONFIGS = Path(__file__).parent / "configs"


@dataclass(frozen=True)
class Row:
    """A line of the table: a config, with `changes` as `pfl train --set` takes them."""

    name: str
    title: str
    config: str
    changes: tuple[str, ...] = ()

    @property
    def config_file(self) -> Path:
        return CONFIGS / f"{self.config}.yaml"

    @property
    def settings_sha256(self) -> str:
        """Of the config's bytes and the changes."""
        return hashlib.sha256(self.config_file.read_bytes() + "\n".join(self.changes).encode()).hexdigest()


def _private(config: str, title: str, server_learning_rates: Mapping[int, float]) -> list[Row]:
    """One row a budget. Less noise allows larger steps of the server."""
    return [
        Row(
            f"{config}-{epsilon}",
            f"{title}, ε = {epsilon}",
            config,
            (f"target_epsilon={epsilon}", f"server_learning_rate={rate}"),
        )
        for epsilon, rate in server_learning_rates.items()
    ]


ROWS = [
    Row("zero-shot", "Zero-shot", "zero-shot"),
    *_private("fl-provider-dp", "FL-PROVIDER-DP", {1: 0.6, 4: 0.9, 8: 1.2}),
    *_private("dp-lora", "DP-LoRA", {1: 0.6, 4: 1.0, 8: 1.3}),
    Row("lora-nf4", "LoRA, NF4", "lora-nf4"),
    Row("fedavg", "FedAvg", "fedavg"),
    Row("centralized", "Centralized", "centralized"),
]


class Outcome(BaseModel):
    """What one row came to with one seed, on the test split.

    Attributes:
        bytes_total: In both directions.
        epsilon: None where nothing is private.
        settings_sha256: Of the row's config and changes, as they were.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    row: str
    seed: int
    anls: float
    accuracy: float
    bytes_total: int
    epsilon: float | None
    settings_sha256: str


@dataclass(frozen=True)
class Claim:
    """A statement about two rows.

    Attributes:
        margin: By how much the first is below the second: of one seed's outcomes; positive where the claim holds.
    """

    text: str
    lower: str
    upper: str
    margin: Callable[[Outcome, Outcome], float]


def _below(lower: str, upper: str, *, or_equal: bool = False) -> Claim:
    by_name = {row.name: row.title for row in ROWS}
    sign = "≤" if or_equal else "<"
    return Claim(
        f"{by_name[lower]} {sign} {by_name[upper]} in ANLS", lower, upper, lambda a, b: b.anls - a.anls
    )


WITHIN = 0.05  # of FedAvg's ANLS, for LoRA with NF4
FEWER = 10  # times fewer bytes

CLAIMS = [
    _below("zero-shot", "fl-provider-dp-1"),
    _below("fl-provider-dp-1", "fl-provider-dp-4"),
    _below("fl-provider-dp-4", "fl-provider-dp-8"),
    _below("fl-provider-dp-8", "fedavg"),
    _below("fedavg", "centralized", or_equal=True),
    *(_below(f"fl-provider-dp-{epsilon}", f"dp-lora-{epsilon}") for epsilon in (1, 4, 8)),
    Claim(
        f"LoRA with NF4 reaches FedAvg's ANLS within {WITHIN:.0%}",
        "fedavg",
        "lora-nf4",
        lambda fedavg, lora: lora.anls - (1 - WITHIN) * fedavg.anls,
    ),
    Claim(
        f"LoRA with NF4 sends less than a {FEWER}th of FedAvg's bytes",
        "lora-nf4",
        "fedavg",
        lambda lora, fedavg: fedavg.bytes_total / FEWER - lora.bytes_total,
    ),
]
