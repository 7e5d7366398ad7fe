import pytest

from starter_kit.data.forms import FormSettings
from tests.studies.reproduction.claims import CLAIMS
from tests.studies.reproduction.experiment import Results
from tests.studies.reproduction.page import page
from tests.studies.reproduction.rows import ROWS, Outcome
from tests.studies.tiny_vt5.origin import read_origin

# Of every row, in the order of the papers.
ORDER = [
    "zero-shot",
    "client-dp",
    "laplace-fedavg",
    *(f"fl-provider-dp-{paper}-1" for paper in ("privacy-paper", "competition")),
    "dp-clgecl-1",
    "dp-clgecl-momentum-1",
    "dp-lora-published-1",
    *(
        f"{method}-{epsilon}"
        for epsilon in (4, 8)
        for method in (
            "fl-provider-dp-privacy-paper",
            "fl-provider-dp-competition",
            "dp-clgecl",
            "dp-lora-published",
        )
    ),
    *(f"centralized-dp-{epsilon}" for epsilon in (1, 4, 8)),
    *(f"{method}-{epsilon}" for epsilon in (1, 4, 8) for method in ("fl-provider-dp", "dp-lora")),
    "fedkseed",
    "lora-nf4",
    "lora-coded-nf4",
    "lora-published",
    "fedavg",
    "fedavg-published",
    "fedshampoo",
    "centralized",
]
ANLS = {name: 0.5 + number / 200 for number, name in enumerate(ORDER)}


def outcome(row: str, seed: int, anls: float) -> Outcome:
    private = row.rsplit("-", 1)[-1]
    return Outcome(
        row=row,
        seed=seed,
        anls=anls,
        accuracy=anls / 2,
        bytes_total=1_000_000,
        epsilon=float(private) if private.isdigit() else None,
        settings_sha256="0" * 64,
        made_with="kit 1, torch 2, m",
    )


def results(*changed: Outcome, seeds: int = 3) -> Results:
    outcomes = {
        (name, seed): outcome(name, seed, anls) for name, anls in ANLS.items() for seed in range(seeds)
    }
    outcomes |= {(one.row, one.seed): one for one in changed}
    return Results(
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
    assert f"| {ANLS['fedavg']:.4f} ± 0.0000 |" in line(text, "FedAvg |")
    assert "| 1.000 |" in line(text, "FL-PROVIDER-DP, ε = 1 |")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([-0.01], "holds on average, in 2 of 3 seeds"),
        ([-0.01, -0.01, -0.01], "**doesn't hold**"),
        ([0.0, 0.0, 0.0], "**doesn't hold**"),
    ],
)
def test_an_order_that_does_not_hold_is_told(changes: list[float], said: str) -> None:
    worse = [
        outcome("fl-provider-dp-1", seed, ANLS["zero-shot"] + change) for seed, change in enumerate(changes)
    ]
    assert said in line(page(results(*worse)), "Zero-shot < FL-PROVIDER-DP, ε = 1")


def test_too_low_a_score_breaks_the_claim_of_lora_with_nf4() -> None:
    low = [outcome("lora-nf4", seed, 0.5) for seed in range(3)]
    assert "doesn't hold" in line(page(results(*low)), "LoRA, NF4 reaches")


def test_seeds_are_compared_with_themselves_whatever_their_order() -> None:
    paired = [outcome("fedavg", 0, 0.5), outcome("centralized", 0, 0.6)]
    mixed = results(*paired)
    shuffled = mixed.model_copy(update={"outcomes": mixed.outcomes[::-1]})
    assert page(mixed) == page(shuffled)
    assert "holds in every seed" in line(page(mixed), "FedAvg ≤ Centralized")


def test_each_claim_has_the_table_that_says_so_and_its_margin_there() -> None:
    lower, upper = "FL-PROVIDER-DP, competition, ε = 4", "DP-LoRA as published, ε = 4"
    said = line(page(results()), f"{lower} < {upper}")
    assert "| competition, Table 3 | +0.1097 |" in said


def test_a_row_has_one_published_number_with_its_table_or_none() -> None:
    text = page(results())
    assert line(text, "FL-PROVIDER-DP, privacy paper, ε = 1 |").endswith(
        "| 0.5747 | privacy paper, Table A2 |"
    )
    assert line(text, "FL-PROVIDER-DP, competition, ε = 1 |").endswith("| 0.4832 | competition, Table 3 |")
    assert line(text, "FL-PROVIDER-DP, ε = 1 |").endswith("| – | – |")


def test_a_row_without_outcomes_is_not_run_and_neither_are_its_claims() -> None:
    kept = [one for one in results().outcomes if one.row != "fl-provider-dp-privacy-paper-8"]
    text = page(results().model_copy(update={"outcomes": kept}))
    row = "FL-PROVIDER-DP, privacy paper, ε = 8"
    assert line(text, f"{row} |").startswith(f"| {row} | – | not run | not run | – | 0.6581 |")
    assert line(text, f"{row} < Centralized DP").endswith("| +0.0138 | – | – | – | not run |")


def test_one_seed_has_no_spread() -> None:
    assert "±" not in line(page(results(seeds=1)), "FedAvg |")


def test_every_row_has_a_config_whose_change_would_be_noticed() -> None:
    assert all(row.config_file.is_file() for row in ROWS)
    assert len({row.settings_sha256 for row in ROWS}) == len(ROWS)
