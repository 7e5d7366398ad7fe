"""What a participant reads of a score on their own data."""

import pytest

from evaluator.contracts import GroupScore, ScoringDetail, ScoringResult
from evaluator.pipeline import StepOutput
from starter_kit.evaluating import tell

RESULT = ScoringResult(
    anls=0.56789, accuracy=0.25, questions=1234, test_set_sha256="0" * 64, checkpoint_sha256="0" * 64
)


def told(capsys: pytest.CaptureFixture[str], detail: ScoringDetail | None) -> list[list[str]]:
    """The words of each line; a table's rules are left out."""
    tell(StepOutput(RESULT, detail), "valid")
    lines = [
        line.translate(dict.fromkeys(map(ord, "│┃"), " ")) for line in capsys.readouterr().out.splitlines()
    ]
    return [line.split() for line in lines if any(letter.isalnum() for letter in line)]


def test_the_means_stand_alone_where_nothing_more_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = told(capsys, None)
    assert " ".join(line) == "ANLS 0.5678, accuracy 0.2500 on 1234 questions (valid)"


def test_groups_are_a_table_below_the_means(capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"anls": 0.56789, "anls_low": 0.5, "anls_high": 0.59999, "accuracy": 0.25}
    groups = [
        GroupScore(by="all", group="all", questions=1234, **scores),
        GroupScore(by="key", group="[red]total", questions=617, **scores),
    ]
    _, header, *rows = told(capsys, ScoringDetail(groups=groups))
    assert header == ["by", "group", "questions", "ANLS", "95", "%", "interval", "accuracy"]
    assert rows == [
        ["all", "all", "1,234", "0.5678", "0.5000", "to", "0.5999", "0.2500"],
        ["key", "[red]total", "617", "0.5678", "0.5000", "to", "0.5999", "0.2500"],
    ]


def test_pages_that_the_model_could_not_see_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    _, line = told(capsys, ScoringDetail(pages_without_image=1_234))
    assert " ".join(line).startswith("Pages whose image is missing or can't be read: 1,234.")
