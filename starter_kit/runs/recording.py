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
name is complete. An unfinished one holds what a later process needs to go on (`starter_kit.runs.resuming`).
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluator.checkpoints import sha256_of
from evaluator.communication import append_to_log, write_log
from evaluator.contracts import ArtifactKind
from evaluator.docvqa.vt5 import VT5
from evaluator.errors import ErrorCode, refuse
from evaluator.records.lines import RunLine
from starter_kit.federation.rounds import Round
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
from starter_kit.runs.private_recording import PrivateRecorder
from starter_kit.runs.resuming import ResumeFolder, RunState, make_durable

SETTINGS = "settings.yaml"


class Recorder:
    """Writes one run's folder. Use as a context: leaving it without `finish` leaves the unfinished folder.

    Args:
        folder: The run folder to be; must not exist.
        settings: The settings as YAML.
        resume: Go on with the unfinished folder that an earlier process left.

    Attributes:
        state: Where the run goes on; None where it begins.
        metrics: Of the rounds so far.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) `folder` exists or can't be written; or there is nothing to resume, or it is
            a run with other settings.
    """

    def __init__(self, folder: Path, settings: str, *, resume: bool = False) -> None:
        if folder.exists():
            raise refuse(
                ErrorCode.RUN_FOLDER, where=str(folder), expected="a new folder", found="an existing one"
            )
        self._folder = folder
        self._unfinished = folder.with_name(f"{folder.name}.unfinished")
        self._resume = ResumeFolder(self._unfinished)
        self._private: PrivateRecorder | None = None
        self._begun = False
        self.state: RunState | None = None
        self.metrics: list[RoundMetrics] = []
        if resume:
            self._reopen(settings)
        else:
            self._create(settings)
        self._metrics_file = (self._unfinished / METRICS).open("a", encoding="utf-8", buffering=1)

    def keep_record(self, run: RunLine, key: Ed25519PrivateKey, providers: Mapping[int, int]) -> None:
        """From the next round on, keep a training record that begins with `run`; see `PrivateRecorder`.

        Where the run goes on after a break, what `run` claims is claimed from there on.
        """
        self._private = PrivateRecorder(self._unfinished, run, key, providers, self.state)

    def begin(self, round_number: int, state: RunState) -> None:
        """Note that a round begins from `state`, before anything of it is sent."""
        if (
            not self._begun
        ):  # so that there is a state to go on from, and a break is counted that led this far
            self._resume.save(state)
            self._begun = True
        self._resume.begin(round_number)

    def round(self, finished: Round, metrics: RoundMetrics, state: RunState) -> None:
        """Record a finished round, also one in which nobody took part, and the state that it led to.

        The state comes last, when all else of the round is on disk: where it is, nothing of the round is missing.
        """
        append_to_log(self._log, finished.messages)
        write_line(self._metrics_file, metrics)
        self.metrics.append(metrics)
        if self._private:
            self._private.round(finished)
        make_durable(self._log)
        make_durable(self._unfinished / METRICS)
        self._resume.save(state)

    def finish(self, model: VT5, summary: Callable[[str], RunSummary]) -> None:
        """Write the checkpoint and what is made of the whole run, and give the folder its proper name.

        Args:
            summary: Of a run whose checkpoint has the given SHA-256.
        """
        model.save(self._unfinished)
        checkpoint = self._unfinished / FILES[ArtifactKind.CHECKPOINT]
        if self._private:
            self._private.finish(checkpoint)
        self._close()
        whole = summary(sha256_of(checkpoint))
        write_summary(self._unfinished / SUMMARY, whole)
        write_plots(self._unfinished, self.metrics, whole)
        write_report(self._unfinished)
        if self._private:
            self._private.forget()
        shutil.rmtree(self._resume.path)
        self._unfinished.rename(self._folder)

    @property
    def _log(self) -> Path:
        return self._unfinished / FILES[ArtifactKind.COMMUNICATION_LOG]

    def _create(self, settings: str) -> None:
        try:
            shutil.rmtree(self._unfinished, ignore_errors=True)
            self._unfinished.mkdir(parents=True)
        except OSError as error:
            raise refuse(ErrorCode.RUN_FOLDER, where=str(self._folder), found=error.strerror) from error
        (self._unfinished / SETTINGS).write_text(settings, encoding="utf-8")
        write_log(self._log, [])
        self._resume.create()

    def _reopen(self, settings: str) -> None:
        """Take up the unfinished folder as it was after its last whole round."""
        file = self._unfinished / SETTINGS
        if not file.is_file():
            raise refuse(
                ErrorCode.RUN_FOLDER,
                where=str(self._unfinished),
                expected="an unfinished run",
                found="none",
                next_step="Leave --resume out to begin one.",
            )
        if file.read_text(encoding="utf-8") != settings:
            raise refuse(
                ErrorCode.RUN_FOLDER,
                where=str(file),
                expected="the settings of the unfinished run",
                found="others",
                next_step="Name the same config with the same --set, or leave --resume out to begin anew.",
            )
        state = self._resume.load()
        if state is None:  # no round had begun
            self._create(settings)
            return
        self.state = replace(state, breaks=state.breaks + 1)
        self.metrics = [
            line for line in read_metrics(self._unfinished / METRICS) if line.round <= state.round
        ]
        write_metrics(self._unfinished / METRICS, self.metrics)
        _cut_log(self._log, state.round)

    def _close(self) -> None:
        self._metrics_file.close()
        if self._private:
            self._private.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._close()


def _cut_log(log: Path, rounds: int) -> None:
    """Drop what the log says of later rounds, which were never finished."""
    head, *lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if line.endswith("\n") and int(line.split(",", 1)[0]) <= rounds]
    new = log.with_name(f"{log.name}.new")
    new.write_text("".join([head, *kept]), encoding="utf-8")
    new.replace(log)
