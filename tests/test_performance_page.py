from pathlib import Path

import pytest

from tests.benchmarks.conftest import read_page, write_page
from tests.benchmarks.floors import Speed, expect

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
BENCHMARKS = {path.stem for path in (Path(__file__).parent / "benchmarks").glob("test_*.py")}


def test_every_benchmark_has_its_section() -> None:
    assert read_page(PAGE).keys() == BENCHMARKS


def test_the_page_has_no_figures_of_a_benchmark_that_failed() -> None:
    assert "FAILED" not in PAGE.read_text()


def test_sections_outlast_being_written_again(tmp_path: Path) -> None:
    page, sections = tmp_path / "page.md", {"test_a": "## A\n\n1\n\n", "test_b": "## B\n\n2\n\n"}
    write_page(page, sections)
    assert read_page(page) == sections
    write_page(page, read_page(page) | {"test_b": "## B\n\n3\n\n"})
    assert read_page(page) == sections | {"test_b": "## B\n\n3\n\n"}
    assert read_page(tmp_path / "none.md") == {}


def test_the_page_says_which_targets_are_not_reached() -> None:
    assert str(Speed("a / here", 2.0, target=1.5, at_floor=3.0)) == "2.00 (target 1.5; 3.00 at the floor)"
    missed = Speed("b / here", 1.2, target=1.5, at_floor=3.0)
    assert str(missed) == "1.20 (target 1.5, not reached; 3.00 at the floor)"
    with pytest.raises(pytest.xfail.Exception, match=r"b / here: 1\.20"):
        expect([missed])


def test_where_the_floor_forbids_a_target_three_quarters_of_the_floor_will_do() -> None:
    expect([Speed("a / here", 1.5, target=3.0, at_floor=2.0)])
    with pytest.raises(pytest.xfail.Exception):
        expect([Speed("a / here", 1.49, target=3.0, at_floor=2.0)])


def test_being_slower_than_the_reference_is_a_failure() -> None:
    with pytest.raises(AssertionError):
        expect([Speed("a / here", 0.9, target=3.0, at_floor=0.95)])
