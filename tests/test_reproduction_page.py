"""docs/reproduction.md is what the command made of its numbers, for the settings as they are."""

from pathlib import Path

from starter_kit.reproduction.experiment import Results
from starter_kit.reproduction.page import page
from starter_kit.reproduction.rows import ROWS

DOCS = Path(__file__).resolve().parents[1] / "docs"


def results() -> Results:
    return Results.model_validate_json((DOCS / "reproduction.json").read_text())


def test_the_page_is_made_of_the_numbers_beside_it() -> None:
    assert (DOCS / "reproduction.md").read_text() == page(results())


def test_the_numbers_are_of_the_rows_settings_as_they_are_now() -> None:
    found = {(outcome.row, outcome.settings_sha256) for outcome in results().outcomes}
    assert found == {(row.name, row.settings_sha256) for row in ROWS}, "run `make reproduce`"
    assert len({outcome.seed for outcome in results().outcomes}) >= 3
