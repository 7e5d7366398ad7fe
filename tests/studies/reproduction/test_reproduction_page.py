"""docs/reproduction.md is what the command made of its numbers, for the settings as they are."""

from pathlib import Path

from tests.studies.reproduction.experiment import Results, key_of
from tests.studies.reproduction.page import page
from tests.studies.reproduction.rows import ROWS

DOCS = Path(__file__).resolve().parents[3] / "docs"


def results() -> Results:
    return Results.model_validate_json((DOCS / "reproduction.json").read_text())


def test_the_page_is_made_of_the_numbers_beside_it() -> None:
    assert (DOCS / "reproduction.md").read_text() == page(results())


def test_every_row_was_trained_with_three_seeds_or_more_and_its_settings_as_they_are_now() -> None:
    found = sorted(key_of(outcome) for outcome in results().outcomes)
    seeds = {seed for _, seed, _ in found}
    assert len(seeds) >= 3
    listed = sorted((row.name, seed, row.settings_sha256) for row in ROWS for seed in seeds)
    assert found == listed, "run `make reproduce`"
