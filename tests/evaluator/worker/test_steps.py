"""Steps in their processes: what they may read, and what is reported of those that return nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from evaluator.errors import ErrorCode
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import ArtifactKind, ArtifactRef, EvaluationJob, Outcome, Step
from evaluator.sandbox.sandbox import Sandbox
from evaluator.worker import steps
from evaluator.worker.steps import StepRunner
from tests.evaluator.worker.artifact_server import ArtifactServer
from tests.evaluator.worker.office import RULES, SECRET

INMATES = "tests.evaluator.sandbox.inmates"
TESTS = Path(__file__).parents[2]


class Replaced(Sandbox):
    """A sandbox in which another function runs than the step."""

    def __init__(self, function: str, inputs: object) -> None:
        super().__init__()
        self.function = function
        self.inputs = inputs

    def run(self, module: str, function: str, inputs: object, **options: Any) -> Any:
        options |= {"readable": [*options["readable"], TESTS], "preload": ()}
        return super().run(INMATES, self.function, self.inputs, **options)


@pytest.fixture
def job(home: Path) -> Iterator[EvaluationJob]:
    path = home / "references" / "tiny" / "model.safetensors"
    server = ArtifactServer(path.read_bytes())
    yield EvaluationJob(
        evaluation=uuid4(),
        attempt=1,
        step=Step.VALIDATE,
        secret=SECRET,
        rules=RULES,
        artifacts=[
            ArtifactRef(
                kind=ArtifactKind.CHECKPOINT,
                upload=uuid4(),
                url=server.url,
                size_bytes=path.stat().st_size,
                sha256=sha256_of(path),
            )
        ],
    )
    server.stop()


def run(home: Path, job: EvaluationJob, function: str, inputs: object = None) -> Any:
    runner = StepRunner(home)
    with Replaced(function, inputs) as runner.sandbox:
        return runner.run(job, lambda _done, _total: None)


@pytest.mark.parametrize(
    ("function", "inputs", "reason"),
    [
        ("crash", None, "the process crashed: SIGSEGV"),
        ("leave", 0, "the process crashed"),
        ("raise_error", None, "the process raised an exception"),
        ("send_garbage", "garbage\n", "the process sent what isn't a message"),
        ("hang", None, "the step's process sent what isn't progress"),
        ("surroundings", None, "returned no ending of a step"),
    ],
)
def test_a_process_that_returns_no_ending_is_a_fault_of_the_platform(
    home: Path, job: EvaluationJob, function: str, inputs: object, reason: str
) -> None:
    ending = run(home, job, function, inputs)
    assert ending.outcome is Outcome.FAILED
    assert [problem.code for problem in ending.problems] == [ErrorCode.PLATFORM_FAULT]
    assert reason in ending.operator_trace


def test_a_step_that_hangs_ends_with_a_report(
    home: Path, job: EvaluationJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "STEP_LIMITS", replace(steps.STEP_LIMITS, wall_s=1))
    ending = run(home, job, "spin")
    assert ending.outcome is Outcome.FAILED
    assert "took longer than allowed: 1 s" in ending.operator_trace


def test_a_step_reads_neither_test_set_nor_answers(home: Path, job: EvaluationJob) -> None:
    answers = home / "answers" / "some.jsonl"
    answers.parent.mkdir(exist_ok=True)
    answers.write_text("secret")
    for path in (answers, home / "test_sets" / "secret" / "test" / "questions.jsonl"):
        assert run(home, job, "fail_if_readable", str(path)).operator_trace.endswith(
            "RuntimeError: PermissionError\n"
        )


def test_what_a_process_wrote_about_the_test_set_is_not_reported(home: Path, job: EvaluationJob) -> None:
    scoring = job.model_copy(update={"step": Step.SCORING})
    ending = run(home, scoring, "raise_error")
    assert ending.outcome is Outcome.FAILED
    assert "not today" not in ending.operator_trace


def test_the_real_step_passes(home: Path, job: EvaluationJob) -> None:
    progress: list[tuple[int, int]] = []
    runner = StepRunner(home)
    with runner.sandbox:
        ending = runner.run(job, lambda done, total: progress.append((done, total)))
    assert ending.outcome is Outcome.PASSED, ending.operator_trace
    assert ending.hardware
    assert progress
