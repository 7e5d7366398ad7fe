"""What the noise checks would detect in runs of the kit's private configs, as docs/privacy.md lists it."""

import math
from pathlib import Path

import pytest

from evaluator.docvqa.reference import open_reference
from evaluator.records.certificate import BLOCK, drawn_blocks
from evaluator.records.noise_power import RoundSize, bare_share_detected, noise_detected, reuse_detected
from starter_kit.federation.rounds import Client
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.settings.config_files import config_names
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import LocalTrainingSettings
from starter_kit.weights import tiny_vt5

PAGE = Path(__file__).resolve().parents[2] / "docs" / "privacy.md"
# With so many providers, the second number being that of the demonstration.
CONFIGS = [
    ("`fl-provider-dp`, `secure-aggregation`, `centralized-dp`, `plugins/private-fedadam`", 400),
    ("`random-allocation`", 400),
    ("`dp-clgecl`, `dp-clgecl-momentum`", 400),
    ("`dp-lora`", 400),
    ("`fl-provider-dp`", 800),
    ("`dp-lora`", 800),
]
NONE = "no power"


def clients_of(providers: int) -> list[Client]:
    """Ten clients."""
    return [
        Client(client, {f"{client}-{one}": [0] for one in range(providers // 10)}) for client in range(10)
    ]


def sizes_of(config: str, providers: int, epsilon: int) -> list[RoundSize]:
    """The public numbers of every round of a run on the tiny VT5."""
    settings = load_settings(config, [f"target_epsilon={epsilon}"])
    assert isinstance(settings, LocalTrainingSettings)
    model, _ = open_reference(tiny_vt5.FOLDER)
    trained = TrainableModel(
        model,
        trainable=settings.trainable,
        frozen=settings.frozen,
        lora=settings.lora,
        dropout=settings.dropout,
    )
    plan, numel = settings.plan(clients_of(providers)), trained.start.numel()
    terms = plan.record_terms
    assert terms is not None
    opened = drawn_blocks("0" * 64, plan.rounds, [numel]).common
    size = RoundSize(
        coordinates=sum(min(BLOCK, numel - block * BLOCK) for block in opened),
        numel=numel,
        signal=terms.normalizer / terms.mechanism.noise.multiplier_of_sum(len(plan.clients)),
    )
    return [size] * plan.rounds


def cells(sizes: list[RoundSize]) -> list[str]:
    """The cells of the table: r², and what the checks of the noise detect, rounded to the side that promises less."""
    noise, bare, reuse = noise_detected(sizes), bare_share_detected(sizes), reuse_detected(sizes)
    return [
        f"{sizes[0].energy:.2g}",
        f"{math.floor(1000 * noise) / 10:g}%" if noise > 0.5 else NONE,
        f"{math.floor(1 / bare)}" if bare <= 0.5 else NONE,
        f"{math.ceil(100 * reuse)}%" if reuse <= 1 else NONE,
    ]


@pytest.mark.parametrize(("configs", "providers"), CONFIGS)
@pytest.mark.parametrize("epsilon", [1, 4, 8])
def test_every_check_of_the_noise_has_the_power_that_the_page_states(
    configs: str, providers: int, epsilon: int
) -> None:
    found = {tuple(cells(sizes_of(config.strip("` "), providers, epsilon))) for config in configs.split(",")}
    assert len(found) == 1
    stated = found.pop()
    assert NONE not in stated
    row = " | ".join([f"| {configs}", str(providers), str(epsilon), *stated]) + " |"
    assert row in PAGE.read_text().splitlines()


def test_every_config_for_the_tiny_model_that_writes_a_record_is_listed() -> None:
    names = [name for name in config_names() if not name.startswith("full/")]
    recorded = {name for name in names if load_settings(name).plan(clients_of(400)).record_terms}
    assert recorded == {config.strip("` ") for configs, _ in CONFIGS for config in configs.split(",")}
