"""docs/genuine-runs.md is what `python -m tests.studies.genuine_runs` made of its counts."""

from pathlib import Path

from evaluator.mechanisms.noise import Placement
from tests.studies.genuine_runs import MORE, is_allowed, page, read_tallies

PAGE = Path(__file__).resolve().parents[2] / "docs" / "genuine-runs.md"


def test_the_page_is_made_of_the_counts_beside_it() -> None:
    assert PAGE.read_text() == page(read_tallies(PAGE.with_suffix(".json"))), "run `make docs`"


def test_no_genuine_run_was_flagged_in_any_count() -> None:
    tallies = read_tallies(PAGE.with_suffix(".json"))
    assert {tally.name for tally in tallies} >= set(MORE)
    assert [tally.name for tally in tallies if tally.alarms] == []


def test_only_placements_and_codecs_are_counted_that_a_config_allows() -> None:
    assert is_allowed("fl-provider-dp", Placement.CLIENT_FULL, "nf4")
    assert is_allowed("dp-lora", Placement.CLIENT_SHARE, "float32")
    assert not is_allowed("fl-provider-dp", Placement.SERVER, "nf4")
    assert not is_allowed("centralized-dp", Placement.CLIENT_SHARE, "float32")
