"""The steps over local files: what the workers and `pfl check` share."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluator.checkpoints.header import read_header
from evaluator.docvqa import dataset
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import (
    FULL_MEAN,
    STEP_ARTIFACTS,
    AccountingResult,
    ArtifactKind,
    CheckStatus,
    CommunicationResult,
    FirstDownload,
    PrivacyRules,
    ScoringResult,
    Step,
    StepResult,
    TrackRules,
    ValidationResult,
)
from evaluator.messages.leakage import Leakage, LeakageDetail, LeakageResult
from evaluator.pipeline import StepInputs, run_step
from evaluator.records.check_table import CHECKS
from evaluator.records.lines import TrainableTensor
from evaluator.scoring.split import Split, write_split
from evaluator.worker import step_process
from evaluator.worker.step_process import StepEnding, StepRequest
from tests.evaluator.records.factories import make_record
from tests.evaluator.tiny_track import write_leakage_set, write_reference, write_test_set

RULES = TrackRules(
    reference="tiny", test_set="secret", clients=2, privacy=PrivacyRules(epsilon=8, delta=1e-5)
)


# The first of the reference's weights that come to mind: which of them are trained makes no difference here.
TRAINABLE = [TrainableTensor(name="language_backbone.encoder.final_layer_norm.weight", shape=[64])]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> StepInputs:
    """A run of two rounds."""
    folder = tmp_path_factory.mktemp("run")
    write_reference(folder / "reference")
    write_test_set(folder / "test_set")
    weights = folder / "reference" / "model.safetensors"
    made = make_record(folder / "run", base=weights, trainable=TRAINABLE)
    return StepInputs(made.files, RULES, reference=folder / "reference", test_set=folder / "test_set")


def run(step: Step, inputs: StepInputs) -> StepResult:
    return run_step(step, inputs, lambda _done, _total: None).result


@pytest.mark.parametrize(
    ("step", "result"),
    [
        (Step.VALIDATE, ValidationResult),
        (Step.COMMUNICATION, CommunicationResult),
        (Step.ACCOUNTING, AccountingResult),
        (Step.SCORING, ScoringResult),
    ],
)
def test_a_step_needs_what_it_says_and_does_the_same_twice(
    inputs: StepInputs, step: Step, result: type[StepResult]
) -> None:
    read = inputs.files.keys() & set(STEP_ARTIFACTS[step])
    only = replace(inputs, files={kind: inputs.files[kind] for kind in read})
    first = run(step, only)
    assert type(first) is result
    assert run(step, only) == first


@pytest.mark.parametrize("step", Step)
def test_a_missing_artifact_is_named(inputs: StepInputs, step: Step) -> None:
    with pytest.raises(ProblemError) as caught:
        run(step, replace(inputs, files={}))
    assert caught.value.problem.code is ErrorCode.ARTIFACT_MISSING
    assert caught.value.problem.where == STEP_ARTIFACTS[step][0]


def test_leakage_is_measured_once_and_names_of_providers_stay_on_the_machine(
    inputs: StepInputs, tmp_path: Path
) -> None:
    write_leakage_set(tmp_path / "set", "red")
    answers, kept = tmp_path / "answers" / "one.leakage.json", tmp_path / "kept"
    measuring = replace(inputs, test_set=tmp_path / "set", split="red", answers=answers, kept=kept)
    asked: list[int] = []
    first = run_step(Step.LEAKAGE, measuring, lambda done, _: asked.append(done))
    result = first.result
    assert isinstance(result, LeakageResult)
    # The checkpoint has the base weights: there is nothing to find.
    assert result.leakage == Leakage(providers=4)
    assert result.checkpoint_sha256 == sha256_of(inputs.files[ArtifactKind.CHECKPOINT])
    assert isinstance(first.detail, LeakageDetail)
    assert {measure.attack for measure in first.detail.measures} == {"likelihood"}
    assert [text.partition(":")[0] for text in first.detail.left_out] == ["T_5", "T_10"]
    assert "Ada Ltd" in answers.read_text()
    assert "Ada" not in first.detail.model_dump_json() + result.model_dump_json()
    written = {path: path.stat().st_mtime_ns for path in kept.glob("*/*.json")}
    assert run_step(Step.LEAKAGE, measuring, lambda _done, _total: None) == first
    assert {path: path.stat().st_mtime_ns for path in kept.glob("*/*.json")} == written
    assert asked[-1] == 8


def test_only_what_the_track_trains_may_differ_from_the_base_weights(
    inputs: StepInputs, tmp_path: Path
) -> None:
    name = TRAINABLE[0].name
    content = bytearray(inputs.files[ArtifactKind.CHECKPOINT].read_bytes())
    header = read_header(inputs.files[ArtifactKind.CHECKPOINT])
    content[header.data_start + header.tensors[name].begin] ^= 1
    checkpoint = tmp_path / "model.safetensors"
    checkpoint.write_bytes(content)

    def validated(*trainable: str) -> StepResult:
        rules = RULES.model_copy(update={"trainable": list(trainable)})
        return run(Step.VALIDATE, replace(inputs, files={ArtifactKind.CHECKPOINT: checkpoint}, rules=rules))

    for result in (validated(), validated("*.final_layer_norm.weight")):
        assert isinstance(result, ValidationResult)
        assert result.changed == [name]
    with pytest.raises(ProblemError) as caught:
        validated("*.bias")
    assert caught.value.problem.code is ErrorCode.CHECKPOINT_FROZEN_TENSOR


def test_communication_is_added_up(inputs: StepInputs) -> None:
    result = run(Step.COMMUNICATION, inputs)
    assert isinstance(result, CommunicationResult)
    assert (result.rounds, result.messages) == (2, 8)
    assert (result.bytes_sent, result.bytes_down, result.bytes_up) == (2048, 1024, 1024)
    assert result.counting == "declared"
    assert {check.id for check in result.checks} <= CHECKS.keys()


@pytest.mark.parametrize(("rule", "total"), [(FirstDownload.FREE, 1536), (FirstDownload.COUNTED, 2048)])
def test_the_track_says_whether_first_downloads_rank(
    inputs: StepInputs, rule: FirstDownload, total: int
) -> None:
    rules = RULES.model_copy(update={"first_download": rule})
    result = run(Step.COMMUNICATION, replace(inputs, rules=rules))
    assert isinstance(result, CommunicationResult)
    assert (result.bytes_total, result.bytes_sent, result.first_download_bytes) == (total, 2048, 512)


def test_accounting_carries_its_checks_its_token_and_its_key(inputs: StepInputs) -> None:
    result = run(Step.ACCOUNTING, inputs)
    assert isinstance(result, AccountingResult)
    assert {check.id for check in result.checks} <= CHECKS.keys()
    # The run is too small for any check of the noise.
    wrong = {check.id for check in result.checks} - {"record.data"}
    assert {check.status for check in result.checks if check.id in wrong} <= {
        CheckStatus.PASSED,
        CheckStatus.NO_POWER,
    }
    assert result.run_token == "token-for-one-run-only"
    assert result.clip_norms == (0.5, 0.5)
    assert result.noise is not None
    assert f'"placement":"{result.noise.placement}"' in inputs.files[ArtifactKind.TRAINING_RECORD].read_text()
    record = inputs.files[ArtifactKind.TRAINING_RECORD].read_text()
    assert f'"public_key":"{result.public_key}"' in record


def test_a_record_that_fails_its_checks_is_rejected_with_all_that_is_wrong(
    inputs: StepInputs, tmp_path: Path
) -> None:
    made = make_record(
        tmp_path,
        base=inputs.reference / "model.safetensors",
        trainable=TRAINABLE,
        delta=1e-4,
        end={"checkpoint_sha256": "f" * 64},
    )
    with pytest.raises(ProblemError) as caught:
        run(Step.ACCOUNTING, replace(inputs, files=made.files))
    codes = {problem.code for problem in caught.value.problems}
    assert codes == {ErrorCode.RECORD_CHECKPOINT, ErrorCode.RECORD_RULES}


def test_scoring_reports_its_progress_and_what_its_means_are_over(inputs: StepInputs) -> None:
    reported: list[tuple[int, int]] = []
    result = run_step(Step.SCORING, inputs, lambda done, total: reported.append((done, total))).result
    assert reported[0] == (0, 3)
    assert reported[-1] == (3, 3)
    assert isinstance(result, ScoringResult)
    assert result.questions == 3
    assert result.checkpoint_sha256 == sha256_of(inputs.files[ArtifactKind.CHECKPOINT])


def test_organizers_learn_what_a_score_is_made_of(inputs: StepInputs) -> None:
    findings = run_step(Step.SCORING, inputs, lambda _done, _total: None)
    assert findings.detail is not None
    (everything,) = findings.detail.groups
    assert (everything.by, everything.questions) == ("all", 3)
    assert findings.detail.pages_without_image == 0
    # Of three documents no interval follows.
    assert findings.drawn_means == []


def test_a_worker_reports_the_means_over_draws_of_a_test_set_with_enough_providers(
    inputs: StepInputs, tmp_path: Path
) -> None:
    pages = [
        dataset.Page(page=f"{number:024x}_0", words=["9.00"], boxes=[(0, 0, 0.5, 0.1)], provider=f"P{number}")
        for number in range(8)
    ]
    questions = [
        dataset.Question(
            question_id=page.page, page=page.page, question="What is the total?", answers=["9.00"]
        )
        for page in pages
    ]
    dataset.write_info(tmp_path, dataset.DatasetInfo(name="secret"))
    dataset.write_split(tmp_path, "test", pages, questions)
    request = StepRequest(step=Step.SCORING, inputs=replace(inputs, test_set=tmp_path))
    ending = StepEnding.model_validate(step_process.run(request.model_dump(mode="json"), lambda _: None))
    assert isinstance(ending.result, ScoringResult)
    (means,) = ending.drawn_means
    assert (means.part, means.clusters) == ("", 8)
    found = np.frombuffer(means.means, "<u2") / FULL_MEAN
    assert found.mean() == pytest.approx(ending.result.anls, abs=0.01)
    assert means.draws_sha256 not in ending.result.model_dump_json() + str(ending.detail)


def test_of_a_split_test_set_the_result_has_the_public_part_and_the_detail_both(
    inputs: StepInputs, tmp_path: Path
) -> None:
    folder = shutil.copytree(inputs.test_set or "", tmp_path / "test_set")
    split = Split(private_fraction=0.5, salt="5a" * 32)
    write_split(folder, split)
    found = run_step(
        Step.SCORING,
        replace(inputs, test_set=folder, answers=tmp_path / "answers"),
        lambda _done, _total: None,
    )
    result, detail = found.result, found.detail
    assert isinstance(result, ScoringResult)
    assert detail is not None
    public, private = detail.part("public"), detail.part("private")
    assert public is not None
    assert private is not None
    assert (result.anls, result.questions) == (public.anls, public.questions)
    assert public.questions + private.questions == 3
    assert result.split is not None
    assert result.split.sha256 == split.sha256
    assert split.salt not in result.model_dump_json() + detail.model_dump_json()
    rows = [json.loads(line) for line in (tmp_path / "answers").read_text().splitlines()]
    assert sum(row["private"] for row in rows) == private.questions


def test_single_answers_are_written_only_where_asked(inputs: StepInputs, tmp_path: Path) -> None:
    answers = tmp_path / "answers" / "run.jsonl"
    result = run(Step.SCORING, replace(inputs, answers=answers))
    rows = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [row["gold"] for row in rows] == [["9.00"]] * 3
    assert isinstance(result, ScoringResult)
    assert sum(row["anls"] for row in rows) / 3 == pytest.approx(result.anls)
    assert list(answers.parent.iterdir()) == [answers]
    assert "9.00" not in result.model_dump_json()


def test_torch_is_loaded_for_scoring_only(inputs: StepInputs) -> None:
    script = """
import sys
from pathlib import Path
from evaluator.messages.jobs import ArtifactKind, Step, TrackRules
from evaluator.pipeline import StepInputs, run_step
rules = TrackRules(reference="r", test_set="t", clients=2)
files = {ArtifactKind.CHECKPOINT: Path(sys.argv[1]), ArtifactKind.COMMUNICATION_LOG: Path(sys.argv[2])}
inputs = StepInputs(files, rules, reference=Path(sys.argv[3]))
for step in (Step.VALIDATE, Step.COMMUNICATION):
    run_step(step, inputs, lambda done, total: None)
assert not {"torch", "transformers"} & set(sys.modules)
"""
    checkpoint, log = inputs.files[ArtifactKind.CHECKPOINT], inputs.files[ArtifactKind.COMMUNICATION_LOG]
    subprocess.run([sys.executable, "-c", script, checkpoint, log, inputs.reference], check=True)
