"""L3: do whole trainings of the attached files score as submitted? Each is scored by every step of a worker."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.examinations import Comparison, ExaminationJob, RerunFindings, Scores
from evaluator.messages.jobs import (
    AccountingResult,
    ArtifactKind,
    CommunicationResult,
    Outcome,
    ScoringResult,
    Step,
    StepResult,
)
from evaluator.messages.rankings import COUNTED
from evaluator.pipeline import StepInputs
from evaluator.sandbox.limits import Limits
from evaluator.sandbox.sandbox import SandboxError
from evaluator.sandbox.written_files import is_own_file
from evaluator.scoring.metrics import cut
from starter_kit.examining.confined import (
    GIB,
    HOUR_S,
    CannotExamineError,
    Confined,
    in_brief,
    training_data,
    training_limits,
)
from starter_kit.examining.judging import Judgment
from starter_kit.examining.repeated_scores import compare_anls, compare_bytes

INPUTS = TypeAdapter(StepInputs)
RECORD_LIMITS = Limits(wall_s=HOUR_S, cpu_s=HOUR_S, memory_bytes=8 * GIB)


class Trained(BaseModel):
    """What a training's process returns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: dict[ArtifactKind, str]
    problems: list[Problem]


class StepEnded(BaseModel):
    """What a step's process returns, as far as a rerun needs it; see `evaluator.worker.step_process.StepEnding`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    outcome: Outcome
    result: StepResult | None = None
    problems: list[Problem] = []
    operator_trace: str = ""


def examine(job: ExaminationJob, confined: Confined, on_progress: Callable[[str], None]) -> Judgment:
    """Train the attached files again, and compare the scores.

    Raises:
        CannotExamineError: The base weights aren't those of the run, or a step failed by no fault of the files.
    """
    return _Rerun(job, confined).judgment(on_progress)


class _Rerun:
    """The trainings of one rerun."""

    def __init__(self, job: ExaminationJob, confined: Confined) -> None:
        self._job, self._confined = job, confined
        self._limits = training_limits(job.hours)
        self._data, self._base = job.folder(job.data), job.folder(job.base)
        self._questions = 0

    def judgment(self, on_progress: Callable[[str], None]) -> Judgment:
        """Return both scores, and whether the difference is explained."""
        found, count = RerunFindings(submitted=self._job.submitted), self._job.repeats
        for number in range(count):
            on_progress(f"Training {number + 1} of {count} …")
            with tempfile.TemporaryDirectory(prefix="rerun-") as folder:
                try:
                    trained = self._trained(Path(folder), number)
                    if number == 0 and (terms := self._other_terms(trained)):
                        return Judgment(found.model_copy(update={"other_terms": terms}), [])
                    scores = self._scored(trained)
                except ProblemError as error:
                    return Judgment(found, error.problems)
            found = found.model_copy(update={"repeats": [*found.repeats, scores]})
        return Judgment(found.model_copy(update={"comparisons": self._comparisons(found.repeats)}), [])

    def _trained(self, folder: Path, number: int) -> dict[ArtifactKind, Path]:
        """Return the files of one more training. Raises `ProblemError` if it ended without a run."""
        out = folder / "run"
        inputs = {
            "settings": str(self._job.settings),
            "data": str(self._data),
            "base": str(self._base),
            "out": str(out),
            "track": self._job.track,
            "further": number,
        }
        try:
            trained = self._confined.ask(
                Trained,
                "starter_kit.examining.training",
                "train_again",
                inputs,
                readable=[self._job.settings.parent, self._base, *training_data(self._data)],
                writable=[folder],
                limits=self._limits,
            )
        except SandboxError as error:
            raise _failed(in_brief(error)) from error
        if trained.problems:
            raise ProblemError(*trained.problems)
        return {kind: regular_file(folder, out / name) for kind, name in trained.files.items()}

    def _other_terms(self, files: dict[ArtifactKind, Path]) -> list[str]:
        """Return what this training's record states differently from the submitted one."""
        submitted = self._job.files.get(ArtifactKind.TRAINING_RECORD)
        if submitted is None:
            return []
        if ArtifactKind.TRAINING_RECORD not in files:
            return ["no training record"]
        repeated = files[ArtifactKind.TRAINING_RECORD]
        try:
            terms = self._confined.ask(
                list[str],
                "starter_kit.runs.code_identity",
                "differing_terms",
                {"submitted": str(submitted), "repeated": str(repeated)},
                readable=[submitted, repeated],
                limits=RECORD_LIMITS,
            )
        except SandboxError as error:
            raise _failed("a training record that can't be read") from error
        if "base_sha256" in terms:
            raise CannotExamineError(f"{self._base} has other base weights than the run's record.")
        return terms

    def _scored(self, files: dict[ArtifactKind, Path]) -> Scores:
        """Return the scores of these files, by every step that a worker makes."""
        found: dict[str, Any] = {}
        for step in self._job.rules.steps():
            match self._step(step, files):
                case CommunicationResult() as result:
                    self._check_counted(result)
                    found["bytes_total"] = result.bytes_total
                case AccountingResult() as result:
                    found["epsilon"] = result.epsilon
                case ScoringResult() as result:
                    self._questions = result.questions
                    found |= {"anls": float(cut(result.anls)), "accuracy": float(cut(result.accuracy))}
        return Scores.model_validate(found)

    def _step(self, step: Step, files: dict[ArtifactKind, Path]) -> StepResult | None:
        """Return the result of a worker's step. A step that returns nothing raises `SandboxError`."""
        test_set = self._job.folder(self._job.test_set) if step is Step.SCORING else None
        inputs = StepInputs(files, self._job.rules, reference=self._base, test_set=test_set)
        with tempfile.TemporaryDirectory(prefix="decoded-") as decoded:
            if step is Step.COMMUNICATION:
                inputs = self._confined.decoded(inputs, Path(decoded))
            folders = [path for path in (test_set, inputs.decoded.folder) if path]
            ended = self._confined.ask(
                StepEnded,
                "evaluator.worker.step_process",
                "run",
                {"step": step, "inputs": INPUTS.dump_python(inputs, mode="json")},
                readable=[*files.values(), self._base, *folders],
                limits=self._limits,
            )
        if ended.outcome is Outcome.FAILED:
            raise CannotExamineError(f"The step {step} failed:\n{ended.operator_trace}")
        if ended.outcome is Outcome.REJECTED:
            raise ProblemError(*ended.problems)
        return ended.result

    def _check_counted(self, result: CommunicationResult) -> None:
        """Raise `CannotExamineError` if the bytes of a repeat rest on its log, but not those that were submitted."""
        if self._job.is_counted and result.counting != COUNTED:
            because = result.not_counted_because or "it has no transcript."
            raise CannotExamineError(
                f"The bytes of the run were counted, but those of a repeat can't be: {because}"
            )

    def _comparisons(self, repeats: list[Scores]) -> list[Comparison]:
        submitted = self._job.submitted
        compared = [compare_anls(submitted.anls, [one.anls for one in repeats], self._questions)]
        if self._job.is_ranked_by_bytes:
            compared.append(compare_bytes(submitted.bytes_total, [one.bytes_total for one in repeats]))
        return compared


def regular_file(folder: Path, path: Path) -> Path:
    """Return a file that an untrusted process wrote below `folder`.

    Raises `ProblemError` (`E_RERUN_TRAINING`) for a link, or one that is elsewhere: the next reader has other rights.
    """
    is_below = path.resolve().is_relative_to(folder.resolve())
    if not is_below or not is_own_file(path):
        raise _failed(f"{path.name} is no file of the run")
    return path


def _failed(found: str) -> ProblemError:
    return ProblemError.of(
        ErrorCode.RERUN_TRAINING, where="training", expected="a finished run", found=found.strip()
    )
