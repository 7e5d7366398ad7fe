"""The way of `pfl check`: the workers' own steps over a run folder, each told as it ends."""

from pathlib import Path

from evaluator.checks import CHECKS
from evaluator.contracts import (
    AccountingResult,
    ArtifactKind,
    CommunicationResult,
    Step,
    StepResult,
    TrackRules,
    ValidationResult,
)
from evaluator.errors import ErrorCode, ProblemError
from evaluator.pipeline import StepInputs, run_step
from starter_kit.console import complain, console, progress, say
from starter_kit.runs.folder import FILES, RunFolder
from starter_kit.weights.base_weights import read_base

BUDGETS = (1, 4, 8)  # the competition's


def check_folder(folder: RunFolder) -> None:
    """Raises `ProblemError` (`E_RUN_FOLDER`) where there is no such folder."""
    if folder.path.is_dir():
        return
    unfinished = folder.path.with_name(f"{folder.path.name}.unfinished")
    raise ProblemError.of(
        ErrorCode.RUN_FOLDER,
        message="There is no such run.",
        where=str(folder.path),
        expected="the folder that `pfl train` wrote, or one laid out alike",
        found=f"a run that was interrupted: {unfinished}" if unfinished.is_dir() else "no such folder",
        next_step="Finish it with `pfl train --resume`." if unfinished.is_dir() else "Name another folder.",
    )


def check_record_is_there(folder: RunFolder) -> None:
    """Raises `ProblemError` (`E_ARTIFACT_MISSING`) for a run without a training record, which track 2 doesn't take."""
    record = folder.path / FILES[ArtifactKind.TRAINING_RECORD]
    if not record.is_file():
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            message="Track 2 takes runs with a training record, and this run has none.",
            where=str(record),
            expected="the training record",
            found="no such file",
            next_step="Train with a method that protects providers (`pfl methods`), or check it with --track track-1.",
        )


def check_run(folder: RunFolder, rules: TrackRules, base: Path) -> bool:
    """Print how each step but scoring ends; whether the run would be accepted, within its budget.

    Raises:
        ProblemError: The base weights can't be read, or the shards of the checkpoint can't be joined.
    """
    read_base(base)
    inputs = StepInputs(folder.files(), rules, reference=base)
    accepted = [_passes(step, inputs) for step in rules.steps() if step is not Step.SCORING]
    if rules.privacy:
        console.print("Whether the run token and the key are your team's is for the site to check.")
    console.print("docs/checks.md says what each check means, and what none can see.")
    return all(accepted)


def _passes(step: Step, inputs: StepInputs) -> bool:
    try:
        with progress(step) as show:
            result = run_step(step, inputs, show).result
    except ProblemError as error:
        console.print(f"{step}: rejected")
        complain(error.problems)
        return False
    within = not isinstance(result, AccountingResult) or result.within_budget
    verdict = "passed" if within else "not passed"
    console.print(f"{step}: {verdict}{_detail(result, inputs.rules)}", highlight=False, soft_wrap=True)
    if isinstance(result, CommunicationResult | AccountingResult):
        for check in result.checks:
            line = (
                f"  {check.id:<4}{check.status.replace('_', ' '):<16}{CHECKS[check.id].name}: {check.found}"
            )
            say(line)
    return within


def _detail(result: StepResult, rules: TrackRules) -> str:
    if isinstance(result, ValidationResult):
        return f", {len(result.changed)} of {result.tensors} tensors differ from the base weights"
    if isinstance(result, CommunicationResult):
        return f", {result.bytes_total:,} bytes in {result.rounds} rounds"
    if isinstance(result, AccountingResult) and rules.privacy:
        within = "within" if result.within_budget else "ABOVE"
        token = "" if result.run_token else "; no run token, so the run can't be submitted"
        return f", ε = {result.epsilon:.4f}, {within} the budget of {rules.privacy.epsilon:g}{token}"
    return ""
