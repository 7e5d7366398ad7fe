"""The contract of every parametrization: runs train, pass all checks, merge, replay, are counted and score."""

from pathlib import Path

import numpy as np
import pytest
import torch

from evaluator.docvqa.weights import read_safetensors
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind, CheckStatus, Step
from evaluator.parametrizations.known import PARAMETRIZATIONS
from evaluator.parametrizations.parametrization import added, doubles
from evaluator.pipeline import StepInputs, run_step
from evaluator.records.annex import read_annex
from evaluator.records.linkage_checks import adapter_tensors
from evaluator.records.merging import first_parts
from starter_kit.compression.peft_files import merged, read_adapter
from starter_kit.evaluation.scores import score_checkpoint
from starter_kit.runs.folder import ADAPTER, RunFolder
from starter_kit.runs.opened_round import open_rounds
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.replay.opened_runs import CHALLENGE, examined, replayable_run
from tests.starter_kit.training_runs import RULES, accounting, trained

RANK = 3
# Which parts leave a client.
TRAINED = {"lora": "AB", "ffa-lora": "B", "rs-lora": "AB", "core": "R", "alternating-lora": "AB"}

every = pytest.mark.parametrize("name", PARAMETRIZATIONS)


def ignored(_done: int, _total: int) -> None:
    """Show no progress."""


def changes(name: str) -> list[str]:
    return [f"lora={{type: {name}, rank: {RANK}}}", "trainable=null"]


@pytest.fixture(scope="module", params=PARAMETRIZATIONS)
def private(
    request: pytest.FixtureRequest, base: Path, data: Path, tmp_path_factory: pytest.TempPathFactory
) -> RunFolder:
    """A replayable private run of two rounds. Not to be changed."""
    out = tmp_path_factory.mktemp(request.param) / "run"
    return replayable_run(base, data, out, ["replayable=true", *changes(request.param)], "dp-lora")


def test_a_private_run_passes_every_check(private: RunFolder, base: Path) -> None:
    run = private.record(max_rounds=2).run
    assert {tensor.name[-len("X.weight")] for tensor in run.trainable} == set(TRAINED[run.parametrization])
    result = accounting(private.files(), base)
    found = {check.id: check for check in result.checks}
    good = (CheckStatus.PASSED, CheckStatus.NO_POWER, CheckStatus.NOT_APPLICABLE)
    assert all(check.status in good for check in found.values()), found
    for check in ("record.linkage", "record.tensors", "record.whole_change"):
        assert found[check].status is CheckStatus.PASSED
    assert result.within_budget


def test_a_merged_weight_is_that_of_the_evaluator_to_the_bit(private: RunFolder, base: Path) -> None:
    run = private.record(max_rounds=2).run
    annex = read_annex(private.file(ArtifactKind.TRAINING_ANNEX), max_rounds=2, clients=3)
    end = adapter_tensors(run, annex.adapters.end)
    before = read_safetensors(base / "model.safetensors")
    after = read_safetensors(private.file(ArtifactKind.CHECKPOINT))
    assert end is not None
    for adapter in run.adapters:
        first = first_parts(adapter, run.run_token or "", base / "model.safetensors")
        last = {letter: end[one.name].reshape(one.shape) for letter, one in adapter.tensors.items()}
        factors = adapter.parametrization.factors(doubles({**(first or {}), **last}))
        due = before[adapter.target].numpy() + added(run.lora_scale or 0.0, *factors)
        assert np.array_equal(after[adapter.target].numpy(), due.astype(np.float32))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {adapter.target for adapter in run.adapters}


def test_a_round_is_replayed_bit_for_bit(private: RunFolder, base: Path, data: Path) -> None:
    open_rounds(private.path, CHALLENGE, drawn=0)
    assert examined(private, base, data, drawn=0).exact


@every
def test_a_run_without_privacy_is_counted_exported_and_scored(
    name: str, base: Path, data: Path, tmp_path: Path
) -> None:
    run = trained("lora-nf4", base, data, tmp_path / "run", ["seed=1", *changes(name)])
    inputs = StepInputs(run.files(), RULES, reference=base)
    assert run_step(Step.COMMUNICATION, inputs, ignored).result.counting == "counted"
    checkpoint = run.file(ArtifactKind.CHECKPOINT)
    scores = score_checkpoint(checkpoint, base=base, data=data, split="valid", on_progress=ignored)
    assert scores.result.questions == 12
    before, after = read_safetensors(base / "model.safetensors"), read_safetensors(checkpoint)
    there = merged(read_adapter(run.path / ADAPTER), before)
    assert all(torch.allclose(there[one], after[one], atol=1e-6) for one in after)
    assert any(not torch.equal(before[one], after[one]) for one in after)


def test_an_unknown_one_is_rejected_with_the_names_of_those_that_are_known() -> None:
    with pytest.raises(ProblemError) as caught:
        load_settings("lora", ["lora.type=dora"])
    problem = caught.value.problem
    assert (problem.code, problem.where) == (ErrorCode.CONFIGURATION, "--set lora.type")
    assert all(name in problem.expected for name in PARAMETRIZATIONS)


def test_half_an_adapter_is_no_choice_of_tensors(base: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(ProblemError) as caught:
        trained("dp-lora", base, data, tmp_path / "run", ["trainable=null", "frozen=['*.lora_A.weight']"])
    problem = caught.value.problem
    assert (problem.code, problem.where) == (ErrorCode.CONFIGURATION, "frozen")
    assert "ffa-lora" in problem.next_step
