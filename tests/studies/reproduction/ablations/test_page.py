"""What docs/ablations.md says of outcomes that are made up, and of the paper's own."""

from itertools import pairwise

import pytest

from starter_kit.data.forms import FormSettings
from tests.studies.reproduction.ablations.claims import CLAIMS
from tests.studies.reproduction.ablations.page import page
from tests.studies.reproduction.ablations.rows import (
    CLIENTS,
    EPOCH_ROWS,
    EPOCHS,
    ROUND_ROWS,
    ROWS,
    STAGED_RUNS,
    STAGES,
    Stage,
)
from tests.studies.reproduction.experiment import Results
from tests.studies.reproduction.rows import Outcome, Row
from tests.studies.tiny_vt5.origin import read_origin

EXACT_ONE, EXACT_TWO, NF4_ONE, NF4_TWO = STAGED_RUNS
MEGABYTES = {EXACT_ONE: 55, EXACT_TWO: 110, NF4_ONE: 7.7, NF4_TWO: 15.4}


def outcome(row: Row, seed: int, anls: float, megabytes: float = 1.0) -> Outcome:
    return Outcome(
        row=row.name,
        seed=seed,
        anls=anls,
        accuracy=anls / 2,
        bytes_total=round(megabytes * 1e6),
        epsilon=None,
        settings_sha256="0" * 64,
        made_with="kit 1, torch 2, m",
    )


def _anls(row: Row) -> float:
    assert row.published
    return row.published.share


def published() -> dict[str, Outcome]:
    """The paper's numbers; where it has none, that of the stage before."""
    rows = [*EPOCH_ROWS.values(), *ROUND_ROWS.values()]
    found = {row.name: outcome(row, 1, _anls(row)) for row in rows}
    for run in STAGED_RUNS:
        anls = 0.4
        for number, stage in STAGES:
            row = run.row(number, stage)
            anls = row.published.share if row.published else anls
            sent = 2 * number - (stage in (Stage.DOWNLOAD, Stage.FINETUNING))
            found[row.name] = outcome(row, 1, anls, MEGABYTES[run] * sent / 4)
    return found


def results(*changed: Outcome) -> Results:
    outcomes = published() | {one.row: one for one in changed}
    return Results(base=read_origin(), task=FormSettings(), outcomes=list(outcomes.values()))


def line(text: str, start: str) -> str:
    (found,) = (line for line in text.splitlines() if line.startswith(f"| {start}"))
    return found


def test_the_page_of_the_papers_own_numbers_says_that_every_claim_holds() -> None:
    text = page(results())
    assert text.count("| holds in every seed |") == len(CLAIMS)
    assert f"Of {len(CLAIMS)} claims, {len(CLAIMS)} hold in every seed." in text


def test_every_number_is_beside_the_papers() -> None:
    row = EPOCH_ROWS[4, 9]
    text = page(results(outcome(row, 1, 0.25)))
    assert line(text, "4 | here |").endswith("| 0.2500 |")
    assert line(text, "4 | paper |").endswith("| 0.8089 |")
    assert "| 0.8513 |" in line(text, "2 | 2 | here |")
    assert "| 0.8255 | 0.8301 | 0.8253 |" in line(text, "1 | aggregation | here |")
    assert "| 0.8255 | – | 0.8253 |" in line(text, "1 | aggregation | paper |")


def test_bytes_are_listed_with_the_first_download_and_without_it() -> None:
    text = page(results())
    assert line(text, " | MB sent | here") == "|  | MB sent | here | 55.000 | 110.000 | 7.700 | 15.400 |"
    assert line(text, " | MB sent, the first").endswith("| 41.250 | 82.500 | 5.775 | 11.550 |")


@pytest.mark.parametrize(("fewer", "more"), [*pairwise(EPOCHS)])
@pytest.mark.parametrize("client", CLIENTS)
def test_more_epochs_that_gain_nothing_break_their_claim(client: int, fewer: int, more: int) -> None:
    lower, upper = EPOCH_ROWS[fewer, client], EPOCH_ROWS[more, client]
    text = page(results(outcome(upper, 1, _anls(lower))))
    assert "doesn't hold" in line(text, f"{lower.title} < {upper.title}")


def test_two_clients_that_are_better_than_twice_the_rounds_break_their_claim() -> None:
    text = page(results(outcome(ROUND_ROWS[2, 1, 4], 1, 0.9)))
    assert "doesn't hold" in line(text, "2 clients, 1 epoch, 4 rounds ≤ 1 client, 1 epoch, 8 rounds")


def test_quantization_that_costs_a_hundredth_or_saves_too_little_breaks_its_claims() -> None:
    last = NF4_ONE.row(2, Stage.AGGREGATION)
    text = page(results(outcome(last, 1, 0.8366, megabytes=7.8)))
    assert "doesn't hold" in line(text, "NF4, 1 client is less than 0.01 below")
    assert "doesn't hold" in line(text, "NF4, 1 client sends more than 7.1 times fewer bytes")
    assert "holds in every seed" in line(text, "NF4, 2 clients is less than 0.01 below")


def test_an_aggregation_that_does_not_recover_breaks_its_claims() -> None:
    text = page(results(outcome(EXACT_TWO.row(2, Stage.AGGREGATION), 1, 0.8)))
    aggregated = "Full precision, 2 clients, aggregation 2"
    assert "doesn't hold" in line(text, f"Full precision, 2 clients, fine-tuning 2 < {aggregated}")
    assert "doesn't hold" in line(text, f"Full precision, 1 client, aggregation 2 < {aggregated}")


def test_every_cell_is_a_row_of_its_own_and_trained_cells_have_settings_of_their_own() -> None:
    assert len({row.name for row in ROWS}) == len({row.title for row in ROWS}) == len(ROWS)
    trained = [*EPOCH_ROWS.values(), *ROUND_ROWS.values(), *(run.run for run in STAGED_RUNS)]
    assert all(row.config_file.is_file() for row in trained)
    assert len({row.settings_sha256 for row in trained}) == len(trained)
