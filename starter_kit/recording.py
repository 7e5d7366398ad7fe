"""What a training run leaves behind: a folder that `pfl check`, `pfl evaluate` and `pfl submit` take.

    settings.yaml           the settings, which `pfl train` reads again
    model.safetensors       the checkpoint (config.json and visual_config.json tell its architecture)
    communication_log.csv   every message's bytes
    metrics.jsonl           bytes of every round
    training_record.jsonl   FL-PROVIDER-DP only: see private_recording.py
    training_annex.jsonl    likewise, for the organizers only

The folder is written under another name, `<folder>.unfinished`, and renamed at the end: a folder by its proper
name is complete.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluator.communication import append_to_log, write_log
from evaluator.contracts import ArtifactKind
from evaluator.docvqa.vt5 import VT5
from evaluator.errors import ErrorCode, refuse
from evaluator.records.lines import RunLine
from starter_kit.private_recording import PrivateRecorder
from starter_kit.rounds import Round
from starter_kit.run_folder import FILES

SETTINGS = "settings.yaml"
METRICS = "metrics.jsonl"


class Recorder:
    """Writes one run's folder. Use as a context: leaving it without `finish` leaves the unfinished folder.

    Args:
        folder: The run folder to be; must not exist.
        settings: The settings as YAML.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) `folder` exists or can't be written.
    """

    def __init__(self, folder: Path, settings: str) -> None:
        if folder.exists():
            raise refuse(
                ErrorCode.RUN_FOLDER, where=str(folder), expected="a new folder", found="an existing one"
            )
        self._folder = folder
        self._unfinished = folder.with_name(f"{folder.name}.unfinished")
        self._private: PrivateRecorder | None = None
        try:
            shutil.rmtree(self._unfinished, ignore_errors=True)
            self._unfinished.mkdir(parents=True)
        except OSError as error:
            raise refuse(ErrorCode.RUN_FOLDER, where=str(folder), found=error.strerror) from error
        self.settings_file.write_text(settings, encoding="utf-8")
        write_log(self._log, [])
        self._metrics = (self._unfinished / METRICS).open("w", encoding="utf-8", buffering=1)

    @property
    def settings_file(self) -> Path:
        return self._unfinished / SETTINGS

    @property
    def _log(self) -> Path:
        return self._unfinished / FILES[ArtifactKind.COMMUNICATION_LOG]

    def keep_record(self, run: RunLine, key: Ed25519PrivateKey, providers: Mapping[int, int]) -> None:
        """From the next round on, keep a training record that begins with `run`; see `PrivateRecorder`."""
        self._private = PrivateRecorder(self._unfinished, run, key, providers)

    def round(self, round: Round) -> None:  # noqa: A002 - the field's own word
        """Record a finished round, also one in which nobody took part."""
        append_to_log(self._log, round.messages)
        line = {"round": round.number, "bytes_down": round.bytes_down, "bytes_up": round.bytes_up}
        self._metrics.write(json.dumps(line) + "\n")
        if self._private:
            self._private.round(round)

    def finish(self, model: VT5) -> None:
        """Write the checkpoint and give the folder its proper name."""
        model.save(self._unfinished)
        if self._private:
            self._private.finish(self._unfinished / FILES[ArtifactKind.CHECKPOINT])
        self._close()
        self._unfinished.rename(self._folder)

    def _close(self) -> None:
        self._metrics.close()
        if self._private:
            self._private.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._close()
