"""The workers' own steps over a run folder, up to scoring."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.jobs import AccountingResult, ArtifactKind, Step, StepResult, TrackRules
from evaluator.messages.progress import OnProgress, ignore_progress
from evaluator.pipeline import StepInputs, run_step, with_decoded
from evaluator.sandbox.sandbox import Sandbox
from starter_kit.runs.folder import FILES, RunFolder
from starter_kit.weights.base_weights import read_base

ShowProgress = Callable[[Step], AbstractContextManager[OnProgress]]


@dataclass(frozen=True)
class StepOutcome:
    """How a step ended: with a result, or rejected with problems.

    Attributes:
        result: None where the step rejected the run.
        problems: Empty where there is a result.
    """

    step: Step
    result: StepResult | None
    problems: tuple[Problem, ...] = ()

    @property
    def accepted(self) -> bool:
        """Return whether the step passes the run: it has a result and, if it accounts ε, stays within the budget."""
        if isinstance(self.result, AccountingResult):
            return self.result.within_budget
        return self.result is not None


def require_run(folder: RunFolder) -> None:
    """Raise `ProblemError` (`E_RUN_FOLDER`) where there is no such folder."""
    if folder.path.is_dir():
        return
    unfinished = folder.path.with_name(f"{folder.path.name}.unfinished")
    interrupted = unfinished.is_dir()
    raise ProblemError.of(
        ErrorCode.RUN_FOLDER,
        message="There is no such run.",
        where=str(folder.path),
        expected="the folder that `pfl train` wrote, or one laid out alike",
        found=f"a run that was interrupted: {unfinished}" if interrupted else "no such folder",
        next_step="Finish it with `pfl train --resume`." if interrupted else "Name another folder.",
    )


def require_record(folder: RunFolder) -> None:
    """Raise `ProblemError` (`E_ARTIFACT_MISSING`) where a run has no training record, which track 2 requires."""
    record = folder.path / FILES[ArtifactKind.TRAINING_RECORD]
    if not record.is_file():
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            message="Track 2 requires a training record, and this run has none.",
            where=str(record),
            expected="the training record",
            found="no such file",
            next_step="Train with a method that protects providers (`pfl methods`), or check it with --track track-1.",
        )


def check_run(
    folder: RunFolder,
    rules: TrackRules,
    base: Path,
    show_progress: ShowProgress = lambda _step: nullcontext(ignore_progress),
) -> Iterator[StepOutcome]:
    """Take every step but scoring, and yield how it ended.

    Args:
        base: Folder of the track's base weights.
        show_progress: Opens the display of a step's progress.

    Raises:
        ProblemError: The base weights can't be read, or the shards of the checkpoint can't be joined.
    """
    read_base(base)
    inputs = StepInputs(folder.files(), rules, reference=base)
    for step in rules.steps():
        if step is not Step.SCORING:
            outcome = _outcome(step, inputs, show_progress)
            yield replace(outcome, problems=tuple(_located(one, folder) for one in outcome.problems))


def _located(problem: Problem, folder: RunFolder) -> Problem:
    """Return a problem with the path of the file that is missing, which workers know by its kind."""
    paths = {str(kind): str(folder.path / name) for kind, name in FILES.items()}
    return problem.model_copy(update={"where": paths.get(problem.where, problem.where)})


def _outcome(step: Step, inputs: StepInputs, show_progress: ShowProgress) -> StepOutcome:
    try:
        with show_progress(step) as on_progress, TemporaryDirectory(prefix="decoded-") as decoded:
            if step is Step.COMMUNICATION:
                # The codec is the participant's own: it runs here as it ran in the training.
                with Sandbox() as sandbox:
                    inputs = with_decoded(inputs, sandbox, Path(decoded), confined=False)
            return StepOutcome(step, run_step(step, inputs, on_progress).result)
    except ProblemError as error:
        return StepOutcome(step, None, tuple(error.problems))
