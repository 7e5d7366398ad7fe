"""The two files of numbers: what they hold, what they reject, and what an interruption leaves of them."""

import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.reporting.metrics import (
    METRICS,
    SUMMARY,
    RoundMetrics,
    check_private,
    read_metrics,
    read_summary,
    write_line,
    write_metrics,
    write_summary,
)
from tests.starter_kit.reporting.runs import (
    open_rounds,
    open_summary,
    private_rounds,
    private_summary,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / METRICS


def rejected(file: Path) -> ProblemError:
    with pytest.raises(ProblemError) as error:
        read_metrics(file)
    assert error.value.problem.code is ErrorCode.RUN_FOLDER
    return error.value


def test_rounds_written_one_by_one_are_read_again(file: Path) -> None:
    rounds = open_rounds(3)
    with file.open("w") as lines:
        for line in rounds:
            write_line(lines, line)
    assert read_metrics(file) == rounds


def test_what_a_round_does_not_have_is_not_written(file: Path) -> None:
    write_metrics(file, [RoundMetrics(round=1, bytes_down=3, bytes_up=4, anls=0.5)])
    assert json.loads(file.read_text()) == {"round": 1, "bytes_down": 3, "bytes_up": 4, "anls": 0.5}


def test_a_file_without_rounds_is_that_of_a_run_that_did_not_begin(file: Path) -> None:
    file.write_text("")
    assert read_metrics(file) == []


@pytest.mark.parametrize("kept", [1, 20, 70])
def test_a_last_line_cut_short_is_left_out_and_the_rest_kept(file: Path, kept: int) -> None:
    rounds = open_rounds(3)
    write_metrics(file, rounds)
    *whole, last = file.read_text().splitlines(keepends=True)
    file.write_text("".join(whole) + last[:kept])
    assert read_metrics(file) == rounds[:-1]


def test_a_last_line_cut_within_a_character_is_left_out(file: Path) -> None:
    write_metrics(file, open_rounds(1))
    file.write_bytes(file.read_bytes() + '{"round": "€'.encode()[:-1])
    assert read_metrics(file) == open_rounds(1)


def test_a_broken_line_before_others_is_rejected_with_its_number(file: Path) -> None:
    write_metrics(file, open_rounds(3))
    first, second, *rest = file.read_text().splitlines()
    file.write_text("\n".join([first, second[:20], *rest]))
    assert rejected(file).problem.where.endswith("metrics.jsonl, line 2")


@pytest.mark.parametrize(
    "line",
    [
        '{"round": 4, "bytes_down": 1, "bytes_up": 1, "sampled": 7}',
        '{"round": 4, "bytes_down": 1}',
        '{"round": "4", "bytes_down": 1, "bytes_up": 1}',
        '{"round": 4, "bytes_down": -1, "bytes_up": 1}',
        '{"round": 4, "bytes_down": 1, "bytes_up": 1, "anls": 1.1}',
        "[]",
    ],
    ids=["unknown key", "key missing", "text for a number", "negative", "no score", "no object"],
)
def test_a_whole_last_line_that_is_no_round_is_rejected(file: Path, line: str) -> None:
    write_metrics(file, open_rounds(3))
    file.write_text(file.read_text() + line + "\n")
    rejected(file)


@pytest.mark.parametrize("again", [2, 3])
def test_rounds_that_go_back_are_rejected(file: Path, again: int) -> None:
    write_metrics(file, [*open_rounds(3), *open_rounds(3)[again:]])
    problem = rejected(file).problem
    assert (problem.expected, problem.found) == ("a round after 3", str(again))


def test_a_missing_file_is_rejected(file: Path) -> None:
    assert "No such file" in rejected(file).problem.found


def test_a_loss_that_is_not_finite_is_none() -> None:
    assert RoundMetrics(round=1, bytes_down=0, bytes_up=0, loss=math.nan).loss is None
    assert RoundMetrics(round=1, bytes_down=0, bytes_up=0, loss=1.5).loss == 1.5


@pytest.mark.parametrize("name", ["loss", "seconds", "providers"])
def test_a_private_round_has_no_place_for_what_it_hides(file: Path, name: str) -> None:
    with pytest.raises(ValidationError, match=name):
        RoundMetrics.model_validate({"round": 1, "bytes_down": 0, "bytes_up": 0, "epsilon": 0.0, name: 3})
    file.write_text(f'{{"round": 1, "bytes_down": 0, "bytes_up": 0, "epsilon": 0.5, "{name}": 3}}\n')
    rejected(file)


@pytest.mark.parametrize("name", ["loss", "seconds", "providers"])
def test_a_round_without_epsilon_may_not_report_it_either_in_a_private_run(name: str) -> None:
    line = RoundMetrics.model_validate({"round": 7, "bytes_down": 0, "bytes_up": 0, name: 3})
    check_private([line], open_summary())
    with pytest.raises(ProblemError) as error:
        check_private([*private_rounds(6), line], private_summary())
    assert (error.value.problem.where, error.value.problem.found) == ("metrics.jsonl, round 7", name)


def test_rounds_that_spend_epsilon_are_not_those_of_a_run_without() -> None:
    with pytest.raises(ProblemError, match="summary has none"):
        check_private(private_rounds(2), open_summary())


def test_a_summary_is_read_as_it_was_written(tmp_path: Path) -> None:
    for summary in (open_summary(), private_summary(), open_summary(anls=None, accuracy=None, split=None)):
        write_summary(tmp_path / SUMMARY, summary)
        assert read_summary(tmp_path / SUMMARY) == summary
    assert [path.name for path in tmp_path.iterdir()] == [SUMMARY]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"seconds": 51.0}, "seconds"),
        ({"data_sha256": "c" * 64}, "data_sha256"),
        ({"delta": None}, "delta"),
        ({"unit": None}, "unit"),
        ({"unit": "page"}, "unit"),
        ({"split": None}, "split"),
        ({"checkpoint_sha256": "b"}, "checkpoint_sha256"),
        ({"sampled": 7}, "sampled"),
    ],
)
def test_a_private_summary_that_lacks_a_field_or_reports_a_private_one_is_rejected(
    changes: dict[str, object], named: str
) -> None:
    with pytest.raises(ValidationError, match=named):
        private_summary(**changes)


def test_a_summary_that_cannot_be_read_is_rejected_with_its_field(tmp_path: Path) -> None:
    values = json.loads(open_summary().as_json()) | {"rounds": -1}
    (tmp_path / SUMMARY).write_text(json.dumps(values))
    with pytest.raises(ProblemError) as error:
        read_summary(tmp_path / SUMMARY)
    assert error.value.problem.code is ErrorCode.RUN_FOLDER
    assert error.value.problem.where.endswith("summary.json, rounds")


def test_a_folder_that_cannot_be_written_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ProblemError) as error:
        write_summary(tmp_path / "gone" / SUMMARY, open_summary())
    assert error.value.problem.code is ErrorCode.RUN_FOLDER
