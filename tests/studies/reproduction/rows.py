"""What is trained for the reproduction: rows of the papers' tables, and the kit's better variants beside them.

A row whose title ends with "as published" or names a paper samples clients and providers, trains and counts rounds as
that paper does, as far as a small task allows; every row says what still differs. What the papers claim of their order
is in `tests.studies.reproduction.claims`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from starter_kit.published import Number, Source, published

CONFIGS = Path(__file__).parent / "configs"
EPSILONS = (1, 4, 8)


@dataclass(frozen=True)
class Row:
    """A line of the table: a config, with `changes` as `pfl train --set` takes them.

    Attributes:
        published: ANLS of the published row that this one trains; None where no table has it.
        differs: In which ways the row isn't the papers', all but the model and the data.
    """

    name: str
    title: str
    config: str
    changes: tuple[str, ...] = ()
    published: Number | None = None
    differs: str = ""

    @property
    def config_file(self) -> Path:
        return CONFIGS / f"{self.config}.yaml"

    @property
    def settings_sha256(self) -> str:
        """Of the config's bytes and the changes."""
        return hashlib.sha256(self.config_file.read_bytes() + "\n".join(self.changes).encode()).hexdigest()


class Outcome(BaseModel):
    """What one row came to with one seed, on the test split.

    Attributes:
        bytes_total: In both directions.
        epsilon: None where nothing is private.
        settings_sha256: Of the row's config and changes, as they were.
        made_with: The versions and the machine that trained it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    row: str
    seed: int
    anls: float
    accuracy: float
    bytes_total: int
    epsilon: float | None
    settings_sha256: str
    made_with: str


def _private(
    config: str,
    title: str,
    server_learning_rates: Mapping[int, float],
    published: Mapping[int, Number],
    differs: str,
    setting: str = "server_learning_rate",
) -> list[Row]:
    """Return one row for each ε. Less noise allows larger steps of the server, whose size is in `setting`."""
    return [
        Row(
            f"{config}-{epsilon}",
            f"{title}, ε = {epsilon}",
            config,
            (f"target_epsilon={epsilon}", f"{setting}={rate}"),
            published.get(epsilon),
            differs,
        )
        for epsilon, rate in server_learning_rates.items()
    ]


def _anls(source: Source, table: str, row: str, column: str = "anls") -> Number:
    return published().table(source, table).number(row, column)


def _of_privacy_paper(model: str) -> dict[int, Number]:
    """Return the ANLS of a model of Table A2 of the paper on privacy, for each ε."""
    return {epsilon: _anls(Source.PRIVACY, "A2", f"{model}, ε = {epsilon}") for epsilon in EPSILONS}


def _of_track_2(method: str) -> dict[int, Number]:
    """Return the ANLS of a method of Table 3 of the competition's paper, for each ε."""
    return {epsilon: _anls(Source.COMPETITION, "3", method, f"epsilon_{epsilon}") for epsilon in EPSILONS}


# What keeps several rows from being the papers'.
ALL_CLIENTS = "All 10 clients take part in each of 6 rounds; in the paper, 2 clients in each of {rounds}."
ONE_STEP = (
    "Providers train for one step on four of their questions; in the papers, for one pass over all of them."
)
SIZES = "A client has 100 providers; in the competition, at least 400."
TWO_STAGE = (
    "Noise follows the two-stage rule; the papers count client sampling as amplification and add less noise."
)
COINS = "Coin flips select 30% of the providers of all clients; in the papers, clients are sampled too."
SGD = "Providers train with SGD; in the papers, with AdamW."
LEARNING_RATES = "Learning rates and clip norms were chosen for this task."
LEARNING_RATE = "The learning rate was chosen for this task."
NO_DROPOUT = "Adapters have no dropout."
NO_BOXES = "Only adapters are trained; in the paper, the box and image layers too."

ROWS = [
    Row(
        "zero-shot", "Zero-shot", "zero-shot", published=_anls(Source.PRIVACY, "A2", "VT5_0"), differs="None."
    ),
    *_private(
        "fl-provider-dp",
        "FL-PROVIDER-DP",
        {1: 0.6, 4: 0.9, 8: 1.2},
        {},
        f"{COINS} 16 rounds; in the paper, 10. {SGD} {ONE_STEP} {LEARNING_RATES}",
    ),
    *_private(
        "fl-provider-dp-privacy-paper",
        "FL-PROVIDER-DP, privacy paper",
        {1: 0.5, 4: 1.0, 8: 1.5},
        _of_privacy_paper("VT5_FL+DP"),
        f"{TWO_STAGE} {ONE_STEP} {LEARNING_RATES}",
    ),
    *_private(
        "fl-provider-dp-competition",
        "FL-PROVIDER-DP, competition",
        {1: 0.35, 4: 0.7, 8: 1.0},
        _of_track_2("baseline"),
        f"{TWO_STAGE} {SIZES} {ONE_STEP} Learning rates were chosen for this task.",
    ),
    *_private(
        "centralized-dp",
        "Centralized DP",
        {1: 0.8, 4: 1.6, 8: 2.4},
        _of_privacy_paper("VT5_C+DP"),
        f"5 rounds; in the paper, 10. {ONE_STEP} {LEARNING_RATES}",
    ),
    *_private(
        "dp-lora",
        "DP-LoRA",
        {1: 0.6, 4: 1.0, 8: 1.3},
        {},
        f"{COINS} 20 rounds; in the paper, 30. The server adds the mean; the team's server used FedAdam. {SGD} "
        f"{ONE_STEP} {LEARNING_RATES}",
    ),
    *_private(
        "dp-lora-published",
        "DP-LoRA as published",
        {1: 0.01, 4: 0.015, 8: 0.02},
        _of_track_2("LoRA"),
        f"{TWO_STAGE} {SIZES} {ONE_STEP} {LEARNING_RATES}",
        setting="server_optimizer.learning_rate",
    ),
    *_private(
        "dp-clgecl",
        "DP-CLGECL",
        {1: 6.0, 4: 12.0, 8: 18.0},
        _of_track_2("DP-CLGECL"),
        "All clients and a quarter of their providers take part in each of 4 rounds; in the paper, 2 of 10 clients and "
        f"50 of their providers in each of 14. Only the embedding is trained. AdamW's ε is large. {ONE_STEP} "
        f"{LEARNING_RATES}",
    ),
    Row(
        "dp-clgecl-momentum-1",
        "DP-CLGECL with momentum, ε = 1",
        "dp-clgecl-momentum",
        ("target_epsilon=1",),
        published=_anls(Source.COMPETITION, "Section 5.4", "DP-CLGECL with momentum"),
        differs="Like DP-CLGECL, with two steps of SGD with momentum.",
    ),
    Row(
        "client-dp",
        "Client-DP, ε = 8",
        "client-dp",
        differs="None of the papers has this method. It protects a client with all its data.",
    ),
    Row(
        "laplace-fedavg",
        "FedAvg with Laplace noise, ε = 8",
        "laplace-fedavg",
        differs="None of the papers has this method. It protects one question, replaced by another.",
    ),
    Row(
        "lora-nf4",
        "LoRA, NF4",
        "lora-nf4",
        published=_anls(Source.COMPETITION, "A2", "Quantization"),
        differs="All 10 clients take part in each of 6 rounds, with one pass; in the paper, 1 client in each of 2, "
        f"with 16 passes. {NO_BOXES} The first download counts. {LEARNING_RATE}",
    ),
    Row(
        "lora-coded-nf4",
        "LoRA, entropy-coded NF4",
        "lora-nf4",
        ("codec=coded-nf4",),
        differs="None of the papers codes its messages. Otherwise like LoRA, NF4.",
    ),
    Row(
        "lora-published",
        "LoRA as published",
        "lora-published",
        published=_anls(Source.COMPETITION, "2", "LoRA"),
        differs=f"{NO_DROPOUT} {LEARNING_RATE}",
    ),
    Row(
        "fedkseed",
        "FedKSeed",
        "fedkseed",
        differs="None of the papers has this method. 1 client in each of 4 rounds takes 400 steps along seeds, and "
        f"only the encoder's value projections are trained. {LEARNING_RATE}",
    ),
    Row(
        "fedshampoo",
        "FedShampoo",
        "fedshampoo",
        published=_anls(Source.COMPETITION, "2", "FedShampoo"),
        differs="A client takes 75 steps per round; in the paper, 5,000. The statistics are therefore updated every 5 "
        f"steps and the preconditioners every 20 steps; in the paper, every 10 and every 100. {LEARNING_RATE}",
    ),
    Row(
        "fedavg",
        "FedAvg",
        "fedavg",
        differs=f"{ALL_CLIENTS.format(rounds=10)} {LEARNING_RATE}",
    ),
    Row(
        "fedavg-published",
        "FedAvg as published",
        "fedavg-published",
        published=_anls(Source.COMPETITION, "2", "baseline"),
        differs=f"Batches of 16; in the paper, 10. {LEARNING_RATE}",
    ),
    Row(
        "centralized",
        "Centralized",
        "centralized",
        published=_anls(Source.PRIVACY, "A2", "VT5_C"),
        differs=f"20 passes in batches of 32; in the paper, 10 in batches of 10. {LEARNING_RATE}",
    ),
]
