"""What a training run leaves behind: a folder that `pfl check`, `pfl evaluate` and `pfl submit` take.

    settings.yaml           the settings, which `pfl train` reads again
    model.safetensors       the checkpoint (config.json and visual_config.json tell its architecture)
    communication_log.csv   every message's bytes
    training_record.jsonl   FL-PROVIDER-DP only: what the run did, round by round
    metrics.jsonl           bytes of every round

The folder is written under another name, `<folder>.unfinished`, and renamed at the end: a folder by its proper
name is complete.
"""

import hashlib
import json
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from torch import Tensor

from evaluator.checkpoints import sha256_of
from evaluator.communication import append_to_log, write_log
from evaluator.contracts import SERVER
from evaluator.docvqa.vt5 import VT5, WEIGHTS
from evaluator.errors import ErrorCode, refuse
from evaluator.records import EndLine, RoundLine, RunLine, write_line
from starter_kit.rounds import Round

CHECKPOINT = WEIGHTS
COMMUNICATION_LOG = "communication_log.csv"
TRAINING_RECORD = "training_record.jsonl"
SETTINGS = "settings.yaml"
METRICS = "metrics.jsonl"


class Recorder:
    """Writes one run's folder. Use as a context: leaving it without `finish` leaves the unfinished folder.

    Args:
        folder: The run folder to be; must not exist.
        settings: The settings as YAML.
        run: First line of the training record; without one no record is written.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) `folder` exists or can't be written.
    """

    def __init__(self, folder: Path, settings: str, run: RunLine | None) -> None:
        if folder.exists():
            raise refuse(
                ErrorCode.RUN_FOLDER, where=str(folder), expected="a new folder", found="an existing one"
            )
        self._folder = folder
        self._unfinished = folder.with_name(f"{folder.name}.unfinished")
        self._run = run
        self._rounds = 0
        try:
            shutil.rmtree(self._unfinished, ignore_errors=True)
            self._unfinished.mkdir(parents=True)
        except OSError as error:
            raise refuse(ErrorCode.RUN_FOLDER, where=str(folder), found=error.strerror) from error
        (self._unfinished / SETTINGS).write_text(settings, encoding="utf-8")
        write_log(self._unfinished / COMMUNICATION_LOG, [])
        self._metrics = (self._unfinished / METRICS).open("w", encoding="utf-8", buffering=1)
        self._record = (
            (self._unfinished / TRAINING_RECORD).open("w", encoding="utf-8", buffering=1) if run else None
        )
        if run and self._record:
            write_line(self._record, run)

    def round(self, round: Round) -> None:  # noqa: A002 - the field's own word
        """Record a finished round, also one in which nobody took part."""
        self._rounds += 1
        append_to_log(self._unfinished / COMMUNICATION_LOG, round.messages)
        down = sum(message.size_bytes for message in round.messages if message.sender == SERVER)
        up = sum(message.size_bytes for message in round.messages if message.receiver == SERVER)
        line = {"round": round.number, "bytes_down": down, "bytes_up": up}
        self._metrics.write(json.dumps(line) + "\n")
        if self._run and self._record:
            write_line(
                self._record,
                RoundLine(
                    round=round.number,
                    client_rate=self._run.sampling.client_rate,
                    provider_rate=self._run.sampling.provider_rate,
                    clip_norm=self._run.clip_norm,
                    noise_multiplier=self._run.noise.multiplier,
                    bytes_down=down,
                    bytes_up=up,
                    model_sha256=sha256_of_weights(round.weights),
                ),
            )

    def finish(self, model: VT5) -> None:
        """Write the checkpoint and give the folder its proper name."""
        model.save(self._unfinished)
        if self._record:
            checkpoint = sha256_of(self._unfinished / CHECKPOINT)
            write_line(self._record, EndLine(rounds=self._rounds, checkpoint_sha256=checkpoint))
        self._close()
        self._unfinished.rename(self._folder)

    def _close(self) -> None:
        self._metrics.close()
        if self._record:
            self._record.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._close()


def sha256_of_weights(weights: Tensor) -> str:
    """Hash of a weight vector (d,): of its float32 numbers, little-endian, in the order of the record's tensors."""
    return hashlib.sha256(weights.numpy().astype("<f4").tobytes()).hexdigest()
