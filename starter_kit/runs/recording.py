"""What a training run leaves behind: a folder that `pfl check`, `pfl evaluate` and `pfl submit` take.

    settings.yaml           the settings, which `pfl train` reads again
    model.safetensors       the checkpoint (config.json and visual_config.json tell its architecture)
    communication_log.csv   every message's bytes
    metrics.jsonl           numbers of every round
    summary.json            those of the whole run
    report.html, plots/     the same for people
    training_record.jsonl   with provider-level privacy only: see private_recording.py
    training_annex.jsonl    likewise, for the organizers only

The folder is written under another name, `<folder>.unfinished`, and renamed at the end: a folder by its proper
name is complete. An unfinished one holds what a later process needs to go on (`starter_kit.runs.resuming`). It is
written by one process at a time, which holds `<folder>.lock`.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from filelock import FileLock, Timeout
from safetensors import SafetensorError

from evaluator.checkpoints.contents import sha256_of
from evaluator.communication.log import append_to_log, write_log
from evaluator.contracts import ArtifactKind
from evaluator.docvqa.vt5 import VT5
from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.lines import RunLine
from starter_kit.federation.rounds import Round
from starter_kit.reporting.files import replace_file
from starter_kit.reporting.metrics import (
    METRICS,
    SUMMARY,
    RoundMetrics,
    RunSummary,
    read_metrics,
    write_line,
    write_metrics,
    write_summary,
)
from starter_kit.reporting.plots import write_plots
from starter_kit.reporting.report import write_report
from starter_kit.runs.folder import FILES
from starter_kit.runs.private_recording import SUMS, PrivateRecorder
from starter_kit.runs.resuming import ResumeFolder, RunState, fsync_path, reading_unfinished_run

SETTINGS = "settings.yaml"


class Recorder:
    """Writes one run's folder. Use as a context: leaving it without `finish` leaves the unfinished folder.

    Args:
        folder: The run folder to be; must not exist.
        settings: The settings as YAML.
        inputs: What the run is made of beside them; see `RunSetup.inputs`.
        resume: Go on with the unfinished folder that an earlier process left.

    Attributes:
        state: Where the run goes on; None where it begins.
        metrics: Of the rounds so far.
        complete: Whether the run that was to go on lacked nothing but its proper name, which it now has.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) `folder` exists or can't be written, now or later; another process writes it; or
            there is nothing to resume, or it is a run with other settings or inputs.
    """

    def __init__(self, folder: Path, settings: str, inputs: str, *, resume: bool = False) -> None:
        self._folder = folder
        self._unfinished = folder.with_name(f"{folder.name}.unfinished")
        self._resume = ResumeFolder(self._unfinished)
        self._private: PrivateRecorder | None = None
        self._metrics_file: TextIO | None = None
        self._begun = False
        self.complete = False
        self.state: RunState | None = None
        self.metrics: list[RoundMetrics] = []
        with self._written():
            self._check_folders(resume)
            self._unfinished.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder.with_name(f"{folder.name}.lock"))
        try:
            self._check_folders(resume)  # again, for it may be another process that held the lock
            self._open(settings, inputs, resume)
        except BaseException:
            _release(self._lock)
            raise

    def keep_record(self, run: RunLine, key: Ed25519PrivateKey, providers: Mapping[int, int]) -> None:
        """From the next round on, keep a training record that begins with `run`; see `PrivateRecorder`.

        Where the run goes on after a break, what `run` claims is claimed from there on.
        """
        with self._written():
            self._private = PrivateRecorder(self._unfinished, run, key, providers, self.state)

    def begin(self, round_number: int, state: RunState) -> None:
        """Note that a round begins from `state`, before anything of it is sent."""
        with self._written():
            # So that there is a state to go on from, and a break is counted that led this far.
            if not self._begun:
                self._resume.save(state)
                self._begun = True
            self._resume.begin(round_number)

    def round(self, finished: Round, metrics: RoundMetrics, state: RunState) -> None:
        """Record a finished round, also one in which nobody took part, and the state that it led to.

        The state comes last, when all else of the round is on disk: where it is, nothing of the round is missing.
        """
        with self._written():
            append_to_log(self._log, finished.messages)
            if self._metrics_file:
                write_line(self._metrics_file, metrics)
            self.metrics.append(metrics)
            if self._private:
                self._private.round(finished)
            fsync_path(self._log)
            fsync_path(self._unfinished / METRICS)
            self._resume.save(state)

    def finish(self, model: VT5, summary: Callable[[str], RunSummary]) -> None:
        """Write the checkpoint and what is made of the whole run, and give the folder its proper name.

        Args:
            summary: Of a run whose checkpoint has the given SHA-256.
        """
        with self._written():
            model.save(self._unfinished)
            checkpoint = self._unfinished / FILES[ArtifactKind.CHECKPOINT]
            if self._private:
                self._private.finish(checkpoint)
            self._close()
            whole = summary(sha256_of(checkpoint))
            write_summary(self._unfinished / SUMMARY, whole)
            write_plots(self._unfinished, self.metrics, whole)
            write_report(self._unfinished)
            for path in (*self._unfinished.rglob("*"), self._unfinished):
                fsync_path(path)
            self._resume.mark_complete()
        self._give_name()

    @property
    def _log(self) -> Path:
        return self._unfinished / FILES[ArtifactKind.COMMUNICATION_LOG]

    def _check_folders(self, resume: bool) -> None:
        if self._folder.exists() or self._folder.is_symlink():
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                where=str(self._folder),
                expected="a new folder",
                found="a run that is complete" if (self._folder / SUMMARY).is_file() else "an existing one",
                next_step="Name another with --out, or remove this one.",
            )
        if resume and not (self._unfinished / SETTINGS).is_file():
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                where=str(self._unfinished),
                expected="an unfinished run",
                found="none",
                next_step="Leave --resume out to begin one.",
            )

    def _open(self, settings: str, inputs: str, resume: bool) -> None:
        if resume:
            self._reopen(settings, inputs)
        else:
            self._create(settings, inputs)
        if not self.complete:
            with self._written():
                self._metrics_file = (self._unfinished / METRICS).open("a", encoding="utf-8", buffering=1)

    def _create(self, settings: str, inputs: str) -> None:
        """Begin an empty folder, in which the settings come last: where they are, there is a run."""
        with self._written():
            (self._unfinished / SETTINGS).unlink(missing_ok=True)
            for path in self._unfinished.iterdir():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            self._resume.create(inputs)
            write_log(self._log, [])
            (self._unfinished / SETTINGS).write_text(settings, encoding="utf-8")

    def _reopen(self, settings: str, inputs: str) -> None:
        """Take up the unfinished folder as it was after its last whole round."""
        file = self._unfinished / SETTINGS
        with reading_unfinished_run(self._unfinished):
            if file.read_text(encoding="utf-8") != settings:
                raise _others(file, "settings", "Name the same config with the same --set")
        if not self._resume.path.exists() and (self._unfinished / SUMMARY).is_file():
            self._give_name()
            self.complete = True
            return
        with reading_unfinished_run(self._unfinished):
            if self._resume.inputs != inputs:
                raise _others(self._unfinished, "data and base weights", "Name the same --data and --base")
            state = self._resume.load()
            if state and state.interrupted_rounds < 0:
                raise ValueError(f"{state.round} rounds were finished, and fewer had begun")
        if state is None:  # no round had begun
            self._create(settings, inputs)
            return
        self.state = replace(state, breaks=state.breaks + 1)
        with reading_unfinished_run(self._unfinished):
            self.metrics = [
                line for line in read_metrics(self._unfinished / METRICS) if line.round <= state.round
            ]
            if [line.round for line in self.metrics] != list(range(1, state.round + 1)):
                raise ValueError(f"{METRICS} lacks some of the first {state.round} rounds")
            log = _log_of(self._log, state.round)
        with self._written():
            write_metrics(self._unfinished / METRICS, self.metrics)
            replace_file(self._log, log)
            for path in (self._log, self._unfinished / METRICS, self._unfinished):
                fsync_path(path)

    def _give_name(self) -> None:
        """Delete what only an unfinished run has, and give the folder its proper name."""
        with self._written():
            if (self._unfinished / SUMS).exists():
                shutil.rmtree(self._unfinished / SUMS)
            self._resume.remove()
        try:
            self._unfinished.rename(self._folder)
        except OSError as error:
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                message="The run is complete, and can't be given its name.",
                where=str(self._folder),
                expected="nothing there",
                found=error.strerror,
                next_step=f"Make way, then give the same command with --resume. The run is in {self._unfinished}.",
            ) from error

    @contextmanager
    def _written(self) -> Iterator[None]:
        """What can't be written inside is rejected; rounds that were recorded stay."""
        try:
            yield
        except (OSError, SafetensorError) as error:
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                where=str(self._unfinished),
                expected="a folder to write into, with room for the run",
                found=getattr(error, "strerror", None) or error,
                next_step="Make room there, or name another folder. --resume goes on after the last recorded round.",
            ) from error

    def _close(self) -> None:
        if self._metrics_file:
            self._metrics_file.close()
        if self._private:
            self._private.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        try:
            self._close()
        except OSError:  # of what could not be written, which is then told already
            if error is None:
                raise
        finally:
            _release(self._lock)


def _locked(path: Path) -> FileLock:
    """The lock `path`, held.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) Another process holds it.
    """
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            where=str(path),
            expected="a folder that no other process writes",
            found="a run that is going on",
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
        where=str(where),
        expected=f"the {what} of the unfinished run",
        found="others",
        next_step=f"{next_step}, or leave --resume out to begin again.",
    )


def _log_of(log: Path, rounds: int) -> str:
    """What the log says of the first `rounds` rounds, without later ones, which were never finished."""
    head, *lines = log.read_text(encoding="utf-8").splitlines(keepends=True) or [""]
    if not head.endswith("\n"):
        raise ValueError(f"{log.name} has lost its beginning")
    return "".join(
        [head, *(line for line in lines if line.endswith("\n") and int(line.split(",", 1)[0]) <= rounds)]
    )
