"""L3: a whole training of a run's attached files, again, scored as a worker scores."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.examinations import Comparison, RerunReport, Scores
from evaluator.messages.jobs import (
    AccountingResult,
    ArtifactKind,
    CommunicationResult,
    Outcome,
    ScoringResult,
    Step,
    StepResult,
    TrackRules,
    TrustLevel,
)
from evaluator.sandbox.limits import MIB, Limits
from evaluator.sandbox.sandbox import SandboxError
from evaluator.scoring.metrics import cut
from evaluator.scoring.split import read_split
from portal.accounts.models import User
from portal.evaluation.examining.examinations import conclude, reject_unscored
from portal.evaluation.examining.kit_sandbox import CannotExamineError, KitSandbox
from portal.evaluation.examining.repeated_scores import compare_anls, compare_bytes
from portal.evaluation.examining.run_files import RunFiles, fetched
from portal.evaluation.models import Examination, TestSet
from portal.submissions.models import Run

HOUR_S = 3600
GIB = 1024 * MIB
STEP_LIMITS = Limits(wall_s=HOUR_S, cpu_s=HOUR_S, memory_bytes=8 * GIB)
TERMS = TypeAdapter(list[str])
# Of the data folder, what a training reads. A test set that is there as well stays out of reach.
TRAINING_DATA = ("dataset.json", "train", "valid", "images")
FOUND_CHARACTERS = 300


@dataclass(frozen=True)
class RerunOptions:
    """What a rerun is made with.

    Attributes:
        data: The data folder with the training split.
        base: The folder of the base weights.
        test_set: The data folder with the test split, which no method ever sees.
        repeat: How often to train.
        hours: How long one training may take.
    """

    data: Path
    base: Path
    test_set: Path
    repeat: int
    hours: float

    @property
    def training_limits(self) -> Limits:
        """The limits of a training's process."""
        return Limits(
            wall_s=self.hours * HOUR_S,
            cpu_s=1000 * HOUR_S,
            memory_bytes=64 * GIB,
            file_bytes=16 * GIB,
            open_files=4096,
        )


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


def rerun(
    run: Run, options: RerunOptions, *, by: User | None, on_progress: Callable[[str], None]
) -> Examination:
    """Train the run's attached files again, and give the run its trust level if the scores agree.

    Raises:
        ProblemError: The run isn't scored, or has no settings attached; or the test set's split can't be read.
        CannotExamineError: Nothing can be examined here, or data, split and base aren't those of the run.
    """
    reject_unscored(run)
    _require_same_split(run, options.test_set)
    began = time.monotonic()
    optional = [ArtifactKind.METHOD_FILE, ArtifactKind.TRAINING_RECORD]
    with fetched(run, required=[ArtifactKind.SETTINGS], optional=optional) as files, KitSandbox() as kit:
        identity = kit.identify(files)
        report = _Rerun(run, options, files, kit, on_progress).report()
    report = report.model_copy(update={"seconds": time.monotonic() - began})
    return conclude(run, TrustLevel.RERUN, "rerun", report, identity, by=by)


class _Rerun:
    """The trainings of one rerun."""

    def __init__(
        self,
        run: Run,
        options: RerunOptions,
        files: RunFiles,
        kit: KitSandbox,
        on_progress: Callable[[str], None],
    ) -> None:
        self._run, self._options, self._files, self._kit = run, options, files, kit
        self._rules = TrackRules.model_validate(run.rules)
        self._say = on_progress
        self._questions = 0

    def report(self) -> RerunReport:
        """Return both scores, and whether the difference is explained; `seconds` is left to the caller."""
        report = RerunReport(submitted=self._submitted(), seconds=0.0)
        for number in range(self._options.repeat):
            self._say(f"Training {number + 1} of {self._options.repeat} …")
            with tempfile.TemporaryDirectory(prefix="rerun-") as folder:
                try:
                    trained = self._trained(Path(folder), number)
                    if number == 0 and (terms := self._other_terms(trained)):
                        return report.model_copy(update={"other_terms": terms})
                    scores = self._scored(trained)
                except ProblemError as error:
                    return report.model_copy(update={"problems": error.problems})
            report = report.model_copy(update={"repeats": [*report.repeats, scores]})
        return report.model_copy(update={"comparisons": self._comparisons(report)})

    def _submitted(self) -> Scores:
        results = self._run.results
        # Trainings are compared on the public part, before and after the private one is revealed.
        if results.public_anls is not None:
            public = {"anls": results.public_anls, "accuracy": results.public_accuracy}
            results = results.model_copy(update=public)
        assert results.anls is not None  # noqa: S101  (a database constraint on scored runs)
        assert results.bytes_total is not None  # noqa: S101  (the same)
        return Scores(
            anls=_public(results.anls),
            accuracy=_public(results.accuracy or 0.0),
            bytes_total=results.bytes_total,
            epsilon=results.epsilon,
        )

    def _trained(self, folder: Path, number: int) -> dict[ArtifactKind, Path]:
        """Return the files of one more training. Raises `ProblemError` if it ended without a run."""
        out = folder / "run"
        inputs = {
            "settings": str(self._files.settings),
            "data": str(self._options.data.resolve()),
            "base": str(self._options.base.resolve()),
            "out": str(out),
            "track": self._run.submission.track.slug,
            "further": number,
        }
        try:
            raw = self._kit.run(
                "starter_kit.rerunning",
                "train_again",
                inputs,
                readable=[
                    self._files.folder,
                    self._options.base,
                    *(self._options.data / name for name in TRAINING_DATA),
                ],
                writable=[folder],
                limits=self._options.training_limits,
            )
            trained = Trained.model_validate(raw)
        except (SandboxError, ValidationError) as error:
            output = error.output if isinstance(error, SandboxError) else ""
            raise _failed(f"{_first_line(error)} {output[-FOUND_CHARACTERS:]}") from error
        if trained.problems:
            raise ProblemError(*trained.problems)
        return {kind: regular_file(folder, out / name) for kind, name in trained.files.items()}

    def _other_terms(self, files: dict[ArtifactKind, Path]) -> list[str]:
        """Return what this training's record states differently from the submitted one."""
        submitted = self._files.paths.get(ArtifactKind.TRAINING_RECORD)
        if submitted is None:
            return []
        if ArtifactKind.TRAINING_RECORD not in files:
            return ["no training record"]
        repeated = files[ArtifactKind.TRAINING_RECORD]
        try:
            found = self._kit.run(
                "starter_kit.runs.code_identity",
                "differing_terms",
                {"submitted": str(submitted), "repeated": str(repeated)},
                readable=[submitted, repeated],
                limits=STEP_LIMITS,
            )
        except SandboxError as error:
            raise _failed("a training record that can't be read") from error
        terms = TERMS.validate_python(found)
        if "base_sha256" in terms:
            raise CannotExamineError(f"{self._options.base} has other base weights than the run's record.")
        return terms

    def _scored(self, files: dict[ArtifactKind, Path]) -> Scores:
        """Return the scores of these files, by every step that a worker makes."""
        found: dict[str, Any] = {}
        for step in self._rules.steps():
            result = self._step(step, files)
            match result:
                case CommunicationResult():
                    found["bytes_total"] = result.bytes_total
                case AccountingResult():
                    found["epsilon"] = result.epsilon
                case ScoringResult():
                    self._questions = result.questions
                    found |= {"anls": _public(result.anls), "accuracy": _public(result.accuracy)}
        return Scores.model_validate(found)

    def _step(self, step: Step, files: dict[ArtifactKind, Path]) -> StepResult | None:
        test_set = self._options.test_set if step is Step.SCORING else None
        request = {
            "step": step,
            "rules": self._rules.model_dump(mode="json"),
            "files": {kind: str(path) for kind, path in files.items()},
            "reference": str(self._options.base.resolve()),
            "test_set": test_set and str(test_set.resolve()),
        }
        raw = self._kit.run(
            "evaluator.worker.step_process",
            "run",
            request,
            readable=[*files.values(), self._options.base, *([test_set] if test_set else [])],
            limits=self._options.training_limits,
        )
        ended = StepEnded.model_validate(raw)
        if ended.outcome is Outcome.FAILED:
            raise CannotExamineError(f"The step {step} failed:\n{ended.operator_trace}")
        if ended.outcome is Outcome.REJECTED:
            raise ProblemError(*ended.problems)
        return ended.result

    def _comparisons(self, report: RerunReport) -> list[Comparison]:
        submitted, repeats = report.submitted, report.repeats
        compared = [compare_anls(submitted.anls, [one.anls for one in repeats], self._questions)]
        if self._run.budget is None:
            compared.append(compare_bytes(submitted.bytes_total, [one.bytes_total for one in repeats]))
        return compared


def _require_same_split(run: Run, folder: Path) -> None:
    """Raise `CannotExamineError` for a test set that is split otherwise: the team will read scores on its parts."""
    name = TrackRules.model_validate(run.rules).test_set
    test_set, split = TestSet.objects.filter(name=name).first(), read_split(folder)
    found = split.sha256 if split else ""
    if test_set and test_set.split_sha256 != found:
        raise CannotExamineError(
            f"The test set {name} is split by {test_set.split_sha256 or 'nothing'}, and the one in {folder} by "
            f"{found or 'nothing'}: give it the workers' split.json."
        )


def regular_file(folder: Path, path: Path) -> Path:
    """Return a file that an untrusted process wrote below `folder`.

    Raises `ProblemError` (`E_RERUN_TRAINING`) for a link, or one that is elsewhere: the next reader has other rights.
    """
    is_below = path.resolve().is_relative_to(folder.resolve())
    if path.is_symlink() or not path.is_file() or not is_below:
        raise _failed(f"{path.name} is no file of the run")
    return path


def _failed(found: str) -> ProblemError:
    return ProblemError.of(
        ErrorCode.RERUN_TRAINING, where="training", expected="a finished run", found=found.strip()
    )


def _public(score: float) -> float:
    """Return the score as the team may see it."""
    return float(cut(score))


def _first_line(error: Exception) -> str:
    return "it returned something else" if isinstance(error, ValidationError) else str(error)
