"""The frame: what is missing runs, outcomes are saved as they come, and pages are made of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.studies.__main__ import app
from tests.studies.catalog import STUDIES, derived_files
from tests.studies.study import DOCS, Study, completed


@dataclass
class Squares:
    """A study of three numbers that breaks off before one of them."""

    broken: int | None = None
    measured: list[int] = field(default_factory=list)

    def run(self, earlier: dict[int, int] | None) -> Iterator[dict[int, int]]:
        known = earlier or {}
        for found in completed([1, 2, 3], {n: (n, known[n]) for n in known}, self.measure):
            yield dict(found)

    def measure(self, number: int) -> tuple[int, int]:
        if number == self.broken:
            raise InterruptedError
        self.measured.append(number)
        return number, number**2

    def study(self) -> Study[dict[int, int]]:
        return Study("squares", dict[int, int], self.run, lambda found: f"{found}\n")


@pytest.mark.parametrize("command", STUDIES.values(), ids=STUDIES)
def test_each_page_is_made_of_the_outcomes_beside_it(command: Callable[[], Study[object]]) -> None:
    study = command()
    assert (DOCS / f"{study.name}.md").read_text() == study.page(study.read()), "run `make docs`"


def test_files_of_several_studies_are_made_of_the_outcomes_beside_them() -> None:
    assert {name: (DOCS / name).read_text() for name in derived_files()} == derived_files(), "run `make docs`"


def test_a_study_has_the_name_of_its_command() -> None:
    assert [command().name for command in STUDIES.values()] == list(STUDIES)


def test_an_interrupted_study_continues_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InterruptedError):
        Squares(broken=3).study().write(tmp_path)
    assert not (tmp_path / "squares.md").exists()
    resumed = Squares()
    assert resumed.study().write(tmp_path) == {1: 1, 2: 4, 3: 9}
    assert resumed.measured == [3]
    assert (tmp_path / "squares.md").read_text() == "{1: 1, 2: 4, 3: 9}\n"


def test_a_study_that_runs_again_keeps_no_outcome(tmp_path: Path) -> None:
    Squares().study().write(tmp_path)
    again = Squares()
    again.study().write(tmp_path, again=True)
    assert again.measured == [1, 2, 3]


def test_an_interruption_of_a_study_that_runs_again_leaves_no_earlier_outcome(tmp_path: Path) -> None:
    Squares().study().write(tmp_path)
    with pytest.raises(InterruptedError):
        Squares(broken=2).study().write(tmp_path, again=True)
    assert Squares().study().read(tmp_path) == {1: 1}


def test_outcomes_are_in_the_order_of_what_is_wanted_whatever_was_kept() -> None:
    *_, last = completed("abc", {"b": "kept"}, str.upper)
    assert last == ["A", "kept", "C"]


def test_the_command_writes_a_page_without_running_anything(tmp_path: Path) -> None:
    stored = (DOCS / "false-alarms.json").read_bytes()
    (tmp_path / "false-alarms.json").write_bytes(stored)
    result = CliRunner().invoke(app, ["--docs", str(tmp_path), "--page-only", "false-alarms"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "false-alarms.md").read_text() == (DOCS / "false-alarms.md").read_text()
    assert (tmp_path / "false-alarms.json").read_bytes() == stored


def test_the_command_simulates_what_is_missing_and_keeps_the_rest(tmp_path: Path) -> None:
    stored = (DOCS / "false-alarms.json").read_text()
    (tmp_path / "false-alarms.json").write_text(stored)
    arguments = ["--docs", str(tmp_path), "false-alarms", "--runs", "4", "--size", "adapters"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    page = (tmp_path / "false-alarms.md").read_text()
    assert "| short vectors | 3 | 700 | 100,000 | 0 |  |" in page
    assert "| adapters | 20 | 9,216 | 4 | 0 |  |" in page


def test_a_page_without_outcomes_is_reported(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--docs", str(tmp_path), "--page-only", "auditing"])
    assert result.exit_code == 2
    assert "auditing.json" in result.output


def test_a_stage_that_does_not_exist_is_rejected(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--docs", str(tmp_path), "full-size", "--stage", "nothing"])
    assert result.exit_code == 2
    assert "nothing is none of" in result.output
