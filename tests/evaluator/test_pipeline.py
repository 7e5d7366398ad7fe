"""The steps over local files: what the workers and `pfl check` share."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.checkpoints import sha256_of
from evaluator.communication import LogEntry, write_log
from evaluator.contracts import (
    AccountingResult,
    ArtifactKind,
    CommunicationResult,
    PrivacyRules,
    ScoringResult,
    Step,
    StepResult,
    TrackRules,
    ValidationResult,
)
from evaluator.errors import ErrorCode, ProblemError
from evaluator.pipeline import NEEDS, Bench, run_step
from evaluator.records import EndLine
from tests.evaluator.test_records import record, text
from tests.evaluator.tiny_track import write_reference, write_test_set

RULES = TrackRules(
    reference="tiny", test_set="secret", clients=2, privacy=PrivacyRules(epsilon=8, delta=1e-5)
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A run of two rounds that handed in the base weights unchanged."""
    folder = tmp_path_factory.mktemp("run")
    write_reference(folder / "reference")
    write_test_set(folder / "test_set")
    checkpoint = folder / "reference" / "model.safetensors"
    log, training_record = folder / "log.csv", folder / "record.jsonl"
    write_log(log, [LogEntry(1, -1, 0, 10), LogEntry(1, 0, -1, 5), LogEntry(2, -1, 1, 10)])
    end = EndLine(rounds=2, checkpoint_sha256=sha256_of(checkpoint))
    training_record.write_text(text(replace(record(), end=end)))
    files = {
        ArtifactKind.CHECKPOINT: checkpoint,
        ArtifactKind.COMMUNICATION_LOG: log,
        ArtifactKind.TRAINING_RECORD: training_record,
    }
    return Bench(files, RULES, reference=folder / "reference", test_set=folder / "test_set")


def run(step: Step, bench: Bench) -> StepResult:
    return run_step(step, bench, lambda _done, _total: None)


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
    bench: Bench, step: Step, result: type[StepResult]
) -> None:
    only = replace(bench, files={kind: bench.files[kind] for kind in NEEDS[step]})
    first = run(step, only)
    assert type(first) is result
    assert run(step, only) == first


@pytest.mark.parametrize("step", Step)
def test_a_missing_artifact_is_named(bench: Bench, step: Step) -> None:
    with pytest.raises(ProblemError) as caught:
        run(step, replace(bench, files={}))
    assert caught.value.problem.code is ErrorCode.ARTIFACT_MISSING
    assert caught.value.problem.where == NEEDS[step][0]


def test_communication_is_added_up(bench: Bench) -> None:
    assert run(Step.COMMUNICATION, bench) == CommunicationResult(
        rounds=2, messages=3, bytes_total=25, bytes_down=20, bytes_up=5
    )


def test_a_record_of_another_checkpoint_is_refused(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    path.write_text(text(record()))
    with pytest.raises(ProblemError) as caught:
        run(Step.ACCOUNTING, replace(bench, files=bench.files | {ArtifactKind.TRAINING_RECORD: path}))
    assert caught.value.problem.code is ErrorCode.RECORD_CHECKPOINT


def test_scoring_tells_how_far_it_is_and_where_its_means_come_from(bench: Bench) -> None:
    told: list[tuple[int, int]] = []
    result = run_step(Step.SCORING, bench, lambda done, total: told.append((done, total)))
    assert told[0] == (0, 3)
    assert told[-1] == (3, 3)
    assert isinstance(result, ScoringResult)
    assert result.questions == 3
    assert result.checkpoint_sha256 == sha256_of(bench.files[ArtifactKind.CHECKPOINT])


def test_single_answers_are_written_only_where_asked(bench: Bench, tmp_path: Path) -> None:
    answers = tmp_path / "answers" / "run.jsonl"
    result = run(Step.SCORING, replace(bench, answers=answers))
    rows = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [row["gold"] for row in rows] == [["9.00"]] * 3
    assert list(answers.parent.iterdir()) == [answers]
    assert "9.00" not in result.model_dump_json()


def test_torch_is_loaded_for_scoring_only(bench: Bench) -> None:
    script = """
import sys
from pathlib import Path
from evaluator.contracts import ArtifactKind, Step, TrackRules
from evaluator.pipeline import Bench, run_step
rules = TrackRules(reference="r", test_set="t", clients=2)
files = {ArtifactKind.CHECKPOINT: Path(sys.argv[1]), ArtifactKind.COMMUNICATION_LOG: Path(sys.argv[2])}
bench = Bench(files, rules, reference=Path(sys.argv[3]))
for step in (Step.VALIDATE, Step.COMMUNICATION):
    run_step(step, bench, lambda done, total: None)
assert not {"torch", "transformers"} & set(sys.modules)
"""
    checkpoint, log = bench.files[ArtifactKind.CHECKPOINT], bench.files[ArtifactKind.COMMUNICATION_LOG]
    subprocess.run([sys.executable, "-c", script, checkpoint, log, bench.reference], check=True)
