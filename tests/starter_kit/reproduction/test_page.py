import pytest

from starter_kit.data.forms import FormSettings
from starter_kit.reproduction.experiment import Results
from starter_kit.reproduction.page import page, verdict
from starter_kit.reproduction.rows import CLAIMS, ROWS, Outcome
from starter_kit.weights.tiny_vt5.origin import read_origin

ANLS = {
    "zero-shot": 0.1,
    "fl-provider-dp-1": 0.2,
    "fl-provider-dp-4": 0.3,
    "fl-provider-dp-8": 0.4,
    "dp-lora-1": 0.25,
    "dp-lora-4": 0.35,
    "dp-lora-8": 0.45,
    "lora-nf4": 0.77,
    "fedavg": 0.8,
    "centralized": 0.85,
}


def outcome(row: str, seed: int, anls: float, sent: int = 1_000_000) -> Outcome:
    private = row.rsplit("-", 1)[-1]
    return Outcome(
        row=row,
        seed=seed,
        anls=anls,
        accuracy=anls / 2,
        bytes_total=20_000 if row == "lora-nf4" else sent,
        epsilon=float(private) if private.isdigit() else None,
        settings_sha256="0" * 64,
    )


def results(*changed: Outcome, seeds: int = 3) -> Results:
    outcomes = {
        (name, seed): outcome(name, seed, anls) for name, anls in ANLS.items() for seed in range(seeds)
    }
    outcomes |= {(one.row, one.seed): one for one in changed}
    return Results(
        kit_version="1",
        torch_version="2",
        machine="m",
        base=read_origin(),
        task=FormSettings(),
        outcomes=list(outcomes.values()),
    )


def line(text: str, start: str) -> str:
    (found,) = (line for line in text.splitlines() if line.startswith(f"| {start}"))
    return found


def test_the_papers_order_holds_where_the_numbers_say_so() -> None:
    text = page(results())
    assert text.count("holds in every seed") == len(CLAIMS)
    assert "| 0.8000 ± 0.0000 |" in line(text, "FedAvg |")
    assert "| 1.000 |" in line(text, "FL-PROVIDER-DP, ε = 1 |")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([0.05], "holds on average, in 2 of 3 seeds"),
        ([0.05, 0.05, 0.05], "**doesn't hold**"),
        ([0.1, 0.1, 0.1], "**doesn't hold**"),
    ],
)
def test_an_order_that_does_not_hold_is_told(changes: list[float], said: str) -> None:
    worse = [outcome("fl-provider-dp-1", seed, anls) for seed, anls in enumerate(changes)]
    assert said in line(page(results(*worse)), "Zero-shot < FL-PROVIDER-DP, ε = 1")


def test_too_many_bytes_or_too_low_a_score_break_the_claims_of_lora_with_nf4() -> None:
    low = [outcome("lora-nf4", seed, 0.75) for seed in range(3)]
    assert "doesn't hold" in line(page(results(*low)), "LoRA with NF4 reaches")
    few = [outcome("fedavg", seed, 0.8, sent=150_000) for seed in range(3)]
    assert "doesn't hold" in line(page(results(*few)), "LoRA with NF4 sends")


def test_seeds_are_compared_with_themselves_whatever_their_order() -> None:
    paired = [outcome("fedavg", 0, 0.5), outcome("centralized", 0, 0.6)]
    mixed = results(*paired)
    shuffled = mixed.model_copy(update={"outcomes": mixed.outcomes[::-1]})
    assert page(mixed) == page(shuffled)
    assert "holds in every seed" in line(page(mixed), "FedAvg ≤ Centralized")


def test_one_seed_has_no_spread() -> None:
    assert "±" not in line(page(results(seeds=1)), "FedAvg |")


def test_a_verdict_is_of_the_mean_and_of_every_seed() -> None:
    assert verdict([0.1, 0.2]) == "holds in every seed"
    assert verdict([-0.1, 0.2]) == "holds on average, in 1 of 2 seeds"
    assert verdict([-0.2, 0.1]) == "**doesn't hold**"
    assert verdict([0.0]) == "**doesn't hold**"


def test_every_row_has_a_config_whose_change_would_be_noticed() -> None:
    assert all(row.config_file.is_file() for row in ROWS)
    assert len({row.settings_sha256 for row in ROWS}) == len(ROWS)
