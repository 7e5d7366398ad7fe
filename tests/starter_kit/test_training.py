"""Whole training runs on pocket data: what lies in the run folder is what the evaluator accepts."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from evaluator.checkpoints import sha256_of
from evaluator.contracts import ArtifactKind, PrivacyRules, Step, TrackRules
from evaluator.docvqa.weights import read_safetensors
from evaluator.errors import ErrorCode, ProblemError
from evaluator.pipeline import Bench, run_step
from evaluator.records import read_record
from starter_kit.configuration import load_settings
from starter_kit.learning import Learner
from starter_kit.run_folder import RunFolder
from starter_kit.training import evaluate, train

RULES = TrackRules(
    reference="local", test_set="local", clients=3, privacy=PrivacyRules(epsilon=8, delta=1e-5)
)
FEW_STEPS = ["rounds=2", "local.max_steps=1", "max_input_tokens=32"]


def trained(config: str, base: Path, data: Path, out: Path, changes: Sequence[str] = ()) -> RunFolder:
    train(
        load_settings(config, [*FEW_STEPS, *changes]),
        data=data,
        base=base,
        out=out,
        track="track-2",
        on_progress=lambda what, done, total: None,
    )
    return RunFolder(out)


@pytest.mark.parametrize(
    ("config", "steps"),
    [
        ("fedavg", [Step.VALIDATE, Step.COMMUNICATION]),
        ("fl-provider-dp", [Step.VALIDATE, Step.COMMUNICATION, Step.ACCOUNTING]),
    ],
)
def test_the_evaluator_accepts_what_a_baseline_leaves(
    config: str, steps: list[Step], base: Path, data: Path, tmp_path: Path
) -> None:
    run = trained(config, base, data, tmp_path / "run")
    bench = Bench(run.files(), RULES, reference=base)
    for step in steps:
        run_step(step, bench, lambda done, total: None)


def test_the_record_tells_what_was_done(base: Path, data: Path, tmp_path: Path) -> None:
    run = trained("fl-provider-dp", base, data, tmp_path / "run", ["target_epsilon=4"])
    record = read_record(run.file(ArtifactKind.TRAINING_RECORD), max_rounds=10)
    assert len(record.rounds) == record.end.rounds == 2
    assert 3.9 < record.run.claimed_epsilon <= 4
    assert record.run.normaliser == 7 * record.run.sampling.provider_rate  # the six providers and Ghost
    assert record.end.checkpoint_sha256 == sha256_of(run.file(ArtifactKind.CHECKPOINT))
    assert len({line.model_sha256 for line in record.rounds}) == 2
    size = sum(torch.Size(tensor.shape).numel() for tensor in record.run.trainable)
    assert {line.bytes_down for line in record.rounds} == {3 * 4 * size}
    assert run.budget([1, 4, 8], max_rounds=10) == 4


def test_only_the_chosen_tensors_change(base: Path, data: Path, tmp_path: Path) -> None:
    pattern = "language_backbone.decoder.*.wo.weight"
    run = trained("fl-provider-dp", base, data, tmp_path / "run", [f"trainable=['{pattern}']"])
    before = read_safetensors(base / "model.safetensors")
    after = read_safetensors(run.file(ArtifactKind.CHECKPOINT))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {
        f"language_backbone.decoder.block.{n}.layer.2.DenseReluDense.wo.weight" for n in (0, 1)
    }


def test_no_rounds_give_the_base_weights_and_an_empty_log(base: Path, data: Path, tmp_path: Path) -> None:
    run = trained("fedavg", base, data, tmp_path / "run", ["rounds=0"])
    before = read_safetensors(base / "model.safetensors")
    after = read_safetensors(run.file(ArtifactKind.CHECKPOINT))
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert len(run.file(ArtifactKind.COMMUNICATION_LOG).read_text().splitlines()) == 1
    assert ArtifactKind.TRAINING_RECORD not in run.files()


def test_settings_are_kept_so_that_the_run_can_be_repeated(base: Path, data: Path, tmp_path: Path) -> None:
    trained("fl-provider-dp", base, data, tmp_path / "run", ["target_epsilon=4"])
    again = load_settings(str(tmp_path / "run" / "settings.yaml"))
    assert again == load_settings("fl-provider-dp", [*FEW_STEPS, "target_epsilon=4"])


def test_nothing_is_written_about_single_providers(base: Path, data: Path, tmp_path: Path) -> None:
    run = trained("fl-provider-dp", base, data, tmp_path / "run")
    metrics = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert [set(line) for line in metrics] == [{"round", "bytes_down", "bytes_up"}] * 2
    assert len({(line["bytes_down"], line["bytes_up"]) for line in metrics}) == 1
    assert "Ash" not in run.file(ArtifactKind.TRAINING_RECORD).read_text()


def test_a_run_that_diverges_ends_with_the_round_where_it_did(base: Path, data: Path, tmp_path: Path) -> None:
    wild = ["local.learning_rate=1.0e+30", "local.batch_size=1", "local.max_steps=3"]
    with pytest.raises(ProblemError) as caught:
        trained("fedavg", base, data, tmp_path / "run", wild)
    assert caught.value.problem.code is ErrorCode.CHECKPOINT_NOT_FINITE
    assert "round 1" in caught.value.problem.where
    assert not (tmp_path / "run").exists()


def test_a_folder_that_exists_is_never_written_to(base: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(ProblemError) as caught:
        trained("fedavg", base, data, tmp_path / "run")
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER
    assert list((tmp_path / "run").iterdir()) == []


def test_a_run_that_breaks_off_leaves_no_folder_by_the_proper_name(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(*_: object) -> None:
        raise RuntimeError("the power went")

    with monkeypatch.context() as patched:
        patched.setattr(Learner, "update", break_off)
        with pytest.raises(RuntimeError, match="power"):
            trained("fedavg", base, data, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run.unfinished"]
    assert trained("fedavg", base, data, tmp_path / "run").files()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_checkpoint_is_scored_by_the_evaluator(base: Path, data: Path) -> None:
    told: list[tuple[int, int]] = []
    checkpoint = base / "model.safetensors"
    result = evaluate(
        checkpoint, base=base, data=data, split="valid", on_progress=lambda *step: told.append(step)
    )
    assert result.questions == 12
    assert result.checkpoint_sha256 == sha256_of(checkpoint)
    assert told[-1] == (12, 12)


def test_a_run_over_every_budget_has_none(base: Path, data: Path, tmp_path: Path) -> None:
    run = trained("fl-provider-dp", base, data, tmp_path / "run", ["target_epsilon=20"])
    with pytest.raises(ProblemError) as caught:
        run.budget([1, 4, 8], max_rounds=10)
    assert caught.value.problem.code is ErrorCode.RECORD_RULES
