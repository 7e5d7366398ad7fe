from pathlib import Path

from tests.studies.conformance.counting import Counts
from tests.studies.conformance.page import page
from tests.studies.mutants.catalog import CATALOG

PAGE = Path(__file__).parents[3] / "docs" / "conformance.md"


def counts() -> Counts:
    return Counts.model_validate_json(PAGE.with_suffix(".json").read_bytes())


def test_the_page_is_made_of_the_counts_beside_it() -> None:
    assert PAGE.read_text() == page(counts()), "run `make docs`"


def test_the_counts_are_of_the_mutants_as_they_are_and_all_were_found() -> None:
    assert {(found.mutant, found.fault) for found in counts().mutants} == {(m.name, m.fault) for m in CATALOG}
    assert all(found.caught_by for found in counts().mutants)
