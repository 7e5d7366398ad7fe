"""`pfl evaluate`: what a participant reads about a score on their own data, and what a run folder keeps of it."""

import json
import shutil
from pathlib import Path

import pytest

from evaluator.docvqa.dataset import Dataset, write_split
from evaluator.messages.jobs import GroupScore, ScoringDetail, ScoringResult
from evaluator.messages.results import supported_decimals
from evaluator.pipeline import StepOutput
from evaluator.scoring.metrics import GoldAnswers, cut
from starter_kit.commands.evaluate import print_scores
from tests.starter_kit.commands.pfl import pfl

RESULT = ScoringResult(
    anls=0.56789, accuracy=0.25, questions=1234, test_set_sha256="0" * 64, checkpoint_sha256="0" * 64
)


def printed(capsys: pytest.CaptureFixture[str], detail: ScoringDetail | None) -> list[list[str]]:
    """The words of each line; a table's rules are left out."""
    print_scores(StepOutput(RESULT, detail), "valid")
    lines = [
        line.translate(dict.fromkeys(map(ord, "│┃"), " ")) for line in capsys.readouterr().out.splitlines()
    ]
    return [line.split() for line in lines if any(letter.isalnum() for letter in line)]


def test_only_the_means_are_printed_where_nothing_more_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = printed(capsys, None)
    assert " ".join(line) == "ANLS 0.56, accuracy 0.25 on 1234 questions (valid)"


def test_groups_are_a_table_below_the_means(capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"anls": 0.56789, "anls_low": 0.5, "anls_high": 0.59999, "accuracy": 0.25}
    groups = [
        GroupScore(by="all", group="all", questions=1234, **scores),
        GroupScore(by="key", group="[red]total", questions=617, **scores),
    ]
    _, header, *rows = printed(capsys, ScoringDetail(groups=groups))
    assert header == ["by", "group", "questions", "ANLS", "95%", "interval", "accuracy"]
    assert rows == [
        ["all", "all", "1,234", "0.56", "0.50", "to", "0.60", "0.25"],
        ["key", "[red]total", "617", "0.56", "0.50", "to", "0.60", "0.25"],
    ]


def test_keys_with_few_questions_are_counted_and_no_interval_is_everything(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scores = {"anls": 0.5, "accuracy": 0.25}
    known, unknown = {"anls_low": 0.4, "anls_high": 0.6}, {"anls_low": 0.0, "anls_high": 1.0}
    groups = [
        GroupScore(by="key", group="often", questions=20, **scores, **known),
        GroupScore(by="key", group="seldom", questions=19, **scores, **known),
        GroupScore(by="key", group="of one provider", questions=50, **scores, **unknown),
        GroupScore(by="provider", group="unseen", questions=5, **scores, **unknown),
    ]
    _, _, *rows, last = printed(capsys, ScoringDetail(groups=groups))
    assert [row[1] for row in rows] == ["often", "unseen"]
    assert rows[1] == ["provider", "unseen", "5", "0.5", "–", "0.2"]
    assert " ".join(last).startswith("Not listed: 2 keys with too few questions or providers")


def test_pages_that_the_model_could_not_see_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    _, line = printed(capsys, ScoringDetail(pages_without_image=1_234))
    assert " ".join(line).startswith("Pages whose image is missing or can't be read: 1,234.")


def test_a_checkpoint_or_its_folder_is_evaluated(run: Path, scored: Path, base: Path, data: Path) -> None:
    by_folder = (scored / "printed").read_text()
    assert "ANLS" in by_folder
    assert "12 questions (valid)" in by_folder
    by_file = pfl("evaluate", run / "model.safetensors", "--base", base, "--data", data)
    assert by_file.stdout == by_folder


def test_a_split_without_gold_answers_is_answered_and_not_scored(
    run: Path, base: Path, data: Path, tmp_path: Path
) -> None:
    known = Dataset(data, "valid")
    folder = shutil.copytree(data, tmp_path / "data")
    secret = [question.model_copy(update={"answers": []}) for question in known.questions]
    write_split(folder, "test", known.pages.values(), secret)
    out = tmp_path / "answers.jsonl"
    printed = pfl("predict", run, out, "--base", base, "--data", folder).stdout
    assert f"answers to {len(secret)} questions (test)" in printed
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["question_id"] for row in rows] == [question.question_id for question in secret]
    assert all(row.keys() == {"question_id", "answer", "confidence"} for row in rows)
    gold = GoldAnswers([question.answers for question in known.questions])
    means = gold.score([row["answer"] for row in rows]).means()
    scored = pfl("evaluate", run, "--base", base, "--data", data).stdout
    assert f"ANLS {cut(means.anls, supported_decimals(means.questions))}," in scored

    rejected = pfl("evaluate", run, "--base", base, "--data", folder, "--split", "test", status=2).stderr
    assert "questions without answers" in rejected
    assert "`pfl predict`" in rejected


def test_scores_of_a_folder_without_a_summary_are_printed_and_kept_nowhere(
    run: Path, base: Path, data: Path, tmp_path: Path
) -> None:
    shutil.copy(run / "model.safetensors", tmp_path)
    assert "ANLS" in pfl("evaluate", tmp_path, "--base", base, "--data", data).stdout
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("name", ["nothing", "nothing/model.safetensors"])
def test_a_missing_checkpoint_is_reported(tmp_path: Path, base: Path, data: Path, name: str) -> None:
    rejected = pfl("evaluate", tmp_path / name, "--base", base, "--data", data, status=2).stderr
    assert "E_ARTIFACT_MISSING" in rejected
    assert str(tmp_path / name) in rejected


def test_an_unknown_split_is_rejected_with_those_that_exist(run: Path, base: Path, data: Path) -> None:
    rejected = pfl("evaluate", run, "--base", base, "--data", data, "--split", "tset", status=2).stderr
    assert all(name in rejected for name in ("tset", "train", "valid", "test"))
