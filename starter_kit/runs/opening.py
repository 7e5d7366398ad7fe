"""Opening the folder of a run: a new one, or one that an earlier process left unfinished.

    settings.yaml           the settings, which `pfl train` reads again
    model.safetensors       the checkpoint (config.json and visual_config.json describe its architecture)
    communication_log.csv   every message's bytes
    metrics.jsonl           numbers of every round
    summary.json            numbers of the whole run
    report.html, plots/     all of these numbers as tables and plots, which the commands draw of a complete run
    training_record.jsonl   with provider-level privacy only: see private_record.py
    training_annex.jsonl    with provider-level privacy only; for the organizers
    vectors/                with a run token only, until the run was submitted: see vectors.py
    replay/                 of a replayable run only; secret: see replayable.py

The folder is written under another name, `<folder>.unfinished`, and renamed at the end: a folder by its proper name is
complete. An unfinished one holds what a later process needs to resume the run (`starter_kit.runs.resuming`). It is
written by one process at a time, which holds `<folder>.lock`. `<folder>.training` is kept beside it until then, where a
site has issued the run's token.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from filelock import FileLock, Timeout
from safetensors import SafetensorError

from evaluator.communication.log import write_log
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from starter_kit.reporting.files import fsync_path, replace_file
from starter_kit.reporting.metrics import METRICS, SUMMARY, RoundMetrics, read_metrics, write_metrics
from starter_kit.runs.folder import FILES, require_new
from starter_kit.runs.private_record import remove_private_files
from starter_kit.runs.resuming import ResumeFolder, TrainingState, reading_unfinished_run


class RunPaths:
    """The files of a run that is not complete.

    Attributes:
        folder: The folder of the run once it is complete.
        unfinished: The folder that is written until then.
        lock: The file that the process that writes the run has locked.
        training: The file by which a training that starts over gets the same run token from the site.
        settings: The settings; a folder without them contains no run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unfinished = folder.with_name(f"{folder.name}.unfinished")
        self.lock = folder.with_name(f"{folder.name}.lock")
        self.training = folder.with_name(f"{folder.name}.training")
        self.settings = self.unfinished / "settings.yaml"
        self.metrics = self.unfinished / METRICS
        self.summary = self.unfinished / SUMMARY
        self.log = self.unfinished / FILES[ArtifactKind.COMMUNICATION_LOG]


@dataclass(frozen=True)
class Unfinished:
    """A run to be trained from its last whole round on.

    Attributes:
        state: The state that it resumes from; None where no round had begun.
        metrics, log: Of its whole rounds.
    """

    paths: RunPaths
    state: TrainingState | None = None
    metrics: Sequence[RoundMetrics] = ()
    log: str = ""


@contextmanager
def open_run(
    folder: Path, settings: str, inputs: str, *, resume: bool = False, may_add_rounds: bool = False
) -> Iterator[Unfinished | None]:
    """Inside the block only this process writes the run, which is in the state after its last whole round.

    Yields None for a run that turns out to be complete: it only had not been renamed.

    Args:
        folder: The run folder, which must not exist yet.
        settings: The settings as YAML.
        inputs: A hash of the run's other inputs; see `RunSetup.inputs`.
        resume: Resume the run that an earlier process left unfinished, instead of starting a new one.
        may_add_rounds: Whether a run may be resumed with more rounds than it was started with: not where they were part
            of what ε was computed from.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) `folder` exists or can't be written; another process writes it; there is nothing
            to resume; or the unfinished run has other settings or inputs.
    """
    paths = RunPaths(folder)
    with writing_run(paths):
        _check_folders(paths, resume=resume)
        paths.unfinished.mkdir(parents=True, exist_ok=True)
        lock = _acquire(paths.lock)
    try:
        # Checked again, because another process may have held the lock until now.
        _check_folders(paths, resume=resume)
        run = recover(paths, settings, inputs, may_add_rounds=may_add_rounds) if resume else Unfinished(paths)
        if run is None:
            give_proper_name(paths)
        elif run.state is None:
            _create(paths, settings, inputs)
        else:
            _rewind(run, settings)
        yield run
    except ProblemError:
        _remove_unstarted(paths)
        raise
    finally:
        _release(lock)


def recover(
    paths: RunPaths, settings: str, inputs: str, *, may_add_rounds: bool = False
) -> Unfinished | None:
    """Read the run that an earlier process left in the unfinished folder, without writing anything; None if complete.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) The run has other settings or inputs, or some of its files can't be read.
    """
    resume = ResumeFolder(paths.unfinished)
    with reading_unfinished_run(paths.unfinished):
        differing = _differing(paths.settings.read_text(encoding="utf-8"), settings)
        if differing and not (may_add_rounds and differing == {"rounds"}):
            raise _others(
                paths.settings,
                f"settings of the unfinished run, in {', '.join(sorted(differing))}",
                "Name the same config with the same --set",
            )
        if not resume.path.exists() and paths.summary.is_file():
            return None
        if resume.inputs != inputs:
            raise _others(
                paths.unfinished,
                "data and base weights of the unfinished run",
                "Name the same --data and --base",
            )
        state = resume.load()
        if state is None:
            return Unfinished(paths)
        if state.interrupted_rounds < 0:
            raise ValueError(f"{state.round} rounds were finished, and fewer had begun")
        if differing and (rounds := yaml.safe_load(settings)["rounds"]) < state.round:
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                message="The unfinished run has more rounds than are asked for.",
                where="rounds",
                expected=f"at least {state.round}, which are finished",
                found=rounds,
                next_step=f"Name at least {state.round} rounds, or omit --resume to start again.",
            )
        metrics = _metrics_of(paths.metrics, state.round)
        log = _log_of(paths.log, state.round)
    return Unfinished(paths, replace(state, breaks=state.breaks + 1), metrics, log)


@contextmanager
def writing_run(paths: RunPaths) -> Iterator[None]:
    """Inside the block, report an error of writing as a problem of the run folder; recorded rounds stay.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) Something can't be written.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The run can't be written any further.",
            where=str(paths.unfinished),
            expected="a folder to write into, with room for the run",
            found=getattr(error, "strerror", None) or error,
            next_step="Make room there and resume with --resume after the last recorded round, or name another folder.",
        ) from error


def give_proper_name(paths: RunPaths) -> None:
    """Delete what only an unfinished run has, and rename its folder.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) The folder could not be renamed.
    """
    with writing_run(paths):
        remove_private_files(paths.unfinished)
        ResumeFolder(paths.unfinished).remove()
        # Before the folder is renamed: a token is never used again for another run once its own is complete.
        paths.training.unlink(missing_ok=True)
    try:
        paths.unfinished.rename(paths.folder)
    except OSError as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The run finished, but its folder could not be renamed.",
            where=str(paths.folder),
            expected="nothing there",
            found=error.strerror,
            next_step=f"Remove {paths.folder}, then run the same command with --resume. The run is in "
            f"{paths.unfinished}.",
        ) from error


def _check_folders(paths: RunPaths, *, resume: bool) -> None:
    require_new(paths.folder)
    _check_unfinished(paths)
    if resume and not paths.settings.is_file():
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="There is no unfinished run to resume.",
            where=str(paths.unfinished),
            expected="an unfinished run",
            found="none",
            next_step="Omit --resume to start a new run.",
        )


def _remove_unstarted(paths: RunPaths) -> None:
    """Remove the folder of a run that was rejected before its first round: it has nothing to resume."""
    resume = ResumeFolder(paths.unfinished)
    if resume.path.is_dir() and not resume.begun and resume.load() is None:
        shutil.rmtree(paths.unfinished, ignore_errors=True)


def _check_unfinished(paths: RunPaths) -> None:
    """Check that what may be emptied is a run, or what one leaves that was interrupted while its folder was made."""
    ours = (paths.settings, paths.log, paths.metrics, ResumeFolder(paths.unfinished).path)
    if not paths.unfinished.is_dir() or any(path.exists() for path in ours):
        return
    if strange := sorted(path.name for path in paths.unfinished.iterdir()):
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The folder in which the run would be written holds something else.",
            where=str(paths.unfinished),
            expected="an interrupted run, or nothing",
            found=", ".join(strange[:5]),
            next_step="Move that away, or name another folder with --out.",
        )


def _create(paths: RunPaths, settings: str, inputs: str) -> None:
    """Create an empty run folder. The settings are written last: a folder without them contains no run."""
    with writing_run(paths):
        paths.settings.unlink(missing_ok=True)
        for path in paths.unfinished.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        ResumeFolder(paths.unfinished).create(inputs)
        write_log(paths.log, [])
        paths.metrics.touch()
        paths.settings.write_text(settings, encoding="utf-8")


def _rewind(run: Unfinished, settings: str) -> None:
    """Cut log and metrics back to the whole rounds, and keep the settings, which may have more of them now."""
    paths = run.paths
    with writing_run(paths):
        replace_file(paths.settings, settings)
        write_metrics(paths.metrics, run.metrics)
        replace_file(paths.log, run.log)
        for path in (paths.log, paths.metrics, paths.unfinished):
            fsync_path(path)


def _differing(stored: str, settings: str) -> set[str]:
    """Return the names of the settings in which two snapshots differ; of damaged ones, that of all."""
    try:
        before, now = yaml.safe_load(stored), yaml.safe_load(settings)
    except yaml.YAMLError:
        before, now = None, None
    if not isinstance(before, dict) or not isinstance(now, dict):
        return set() if stored == settings else {"all of them"}
    missing = object()
    return {
        name for name in before.keys() | now.keys() if before.get(name, missing) != now.get(name, missing)
    }


def _metrics_of(path: Path, rounds: int) -> list[RoundMetrics]:
    """Read the metrics of the first `rounds` rounds."""
    metrics = [line for line in read_metrics(path) if line.round <= rounds]
    if [line.round for line in metrics] != list(range(1, rounds + 1)):
        raise ValueError(f"{path.name} lacks some of the first {rounds} rounds")
    return metrics


def _log_of(log: Path, rounds: int) -> str:
    """Read the log of the first `rounds` rounds, without later ones, which were never finished."""
    head, *lines = log.read_text(encoding="utf-8").splitlines(keepends=True) or [""]
    if not head.endswith("\n"):
        raise ValueError(f"{log.name} has lost its beginning")
    return "".join(
        [head, *(line for line in lines if line.endswith("\n") and int(line.split(",", 1)[0]) <= rounds)]
    )


def _acquire(path: Path) -> FileLock:
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="Another process is training this run.",
            where=str(path),
            expected="a folder that no other process writes",
            found="a run that another process is training",
            next_step="Wait for it, or name another folder.",
        ) from error
    return lock


def _release(lock: FileLock) -> None:
    with suppress(OSError):
        Path(lock.lock_file).unlink()
    lock.release()


def _others(where: Path, what: str, next_step: str) -> ProblemError:
    return ProblemError.of(
        ErrorCode.RUN_FOLDER,
        message="The unfinished run has other settings or inputs.",
        where=str(where),
        expected=f"the {what}",
        found="others",
        next_step=f"{next_step}, or omit --resume to start again.",
    )
