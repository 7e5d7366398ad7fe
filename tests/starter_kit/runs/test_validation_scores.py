"""Scores on the validation split while a run trains, and which of them a private run may show."""

import json
import shutil
from pathlib import Path

import pytest

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from starter_kit.evaluation.scores import score_checkpoint
from starter_kit.reporting.metrics import METRICS, SUMMARY, read_metrics, read_summary
from tests.starter_kit.cut_off import CutOff
from tests.starter_kit.pocket_data import make_data
from tests.starter_kit.training_runs import trained


def test_a_run_is_scored_on_the_validation_split_as_it_goes(base: Path, data: Path, tmp_path: Path) -> None:
    run = trained("fedavg", base, data, tmp_path / "run", ["rounds=3", "evaluate_every=2", "dropout=true"])
    metrics = read_metrics(run.path / METRICS)
    assert [line.anls is not None for line in metrics] == [False, True, True]
    found = score_checkpoint(
        run.file(ArtifactKind.CHECKPOINT), base=base, data=data, split="valid", on_progress=lambda *_: None
    ).result
    assert metrics[-1].anls == pytest.approx(found.anls)
    assert read_summary(run.path / SUMMARY).anls == metrics[-1].anls


@pytest.mark.parametrize("missing", [False, True])
def test_a_run_that_has_nothing_to_validate_on_is_rejected_before_it_trains(
    base: Path, tmp_path: Path, missing: bool
) -> None:
    data = make_data(tmp_path / "data")
    (data / "valid" / "questions.jsonl").write_text("")
    if missing:
        shutil.rmtree(data / "valid")
    with pytest.raises(ProblemError) as caught:
        trained("fedavg", base, data, tmp_path / "run", ["evaluate_every=2"], watcher=CutOff(1))
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT
    assert not (tmp_path / "run.unfinished").exists()


def test_a_private_run_is_not_scored_on_protected_providers_unless_it_says_so(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = ["rounds=1", "evaluate_every=1"]
    with pytest.raises(ProblemError) as caught:
        trained("fl-provider-dp", base, data, tmp_path / "run", changes, watcher=CutOff(1))
    assert (caught.value.problem.code, caught.value.problem.where) == (
        ErrorCode.CONFIGURATION,
        "evaluate_every",
    )
    declared = trained(
        "fl-provider-dp", base, data, tmp_path / "run", [*changes, "validation_on_private_data=true"]
    )
    assert declared.record(max_rounds=1).run.validation_on_private_data


def test_a_private_run_is_scored_on_unseen_providers(base: Path, tmp_path: Path) -> None:
    data = make_data(tmp_path / "data")
    pages = data / "valid" / "pages.jsonl"
    lines = [json.loads(line) | {"provider": "nobody"} for line in pages.read_text().splitlines()]
    pages.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = trained("fl-provider-dp", base, data, tmp_path / "run", ["rounds=1", "evaluate_every=1"])
    assert not run.record(max_rounds=1).run.validation_on_private_data
