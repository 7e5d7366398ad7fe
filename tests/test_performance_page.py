from pathlib import Path

from tests.benchmarks.conftest import read_page, write_page

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
