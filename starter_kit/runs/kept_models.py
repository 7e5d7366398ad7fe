"""The models of earlier rounds that a run keeps beside its last one, each as a run folder of its own.

    checkpoints/round-3/          every so many rounds: the model after the round, with log and transcript until then
    checkpoints/best-round-5/     likewise, of the round with the highest ANLS on the validation split

What is in such a folder can be checked and submitted like a run that ended after that round, where nothing is private.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from evaluator.messages.jobs import ArtifactKind
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.reporting.files import fsync_path
from starter_kit.reporting.metrics import RoundMetrics, best_round
from starter_kit.runs.folder import FILES
from starter_kit.runs.opening import RunPaths, writing_run
from starter_kit.runs.transcript import TranscriptWriter
from starter_kit.settings.run_settings import Checkpoints

CHECKPOINTS, BEST = "checkpoints", "best-round-"


@dataclass(frozen=True)
class KeptModels:
    """The models that the run of `paths` keeps, by its `settings`, each with the transcript of its rounds."""

    paths: RunPaths
    model: TrainableModel
    settings: Checkpoints
    transcript: TranscriptWriter | None = None

    def keep(self, metrics: Sequence[RoundMetrics], weights: Tensor) -> None:
        """Keep the model at `weights` (d,) if that of the last round is one to keep; the round's log is written."""
        number = metrics[-1].round
        if self.settings.every and number % self.settings.every == 0:
            self._write(f"round-{number}", weights)
        if self.settings.best and best_round(metrics) == number:
            self._write(f"{BEST}{number}", weights)

    def forget(self, metrics: Sequence[RoundMetrics]) -> None:
        """Delete models that were the best before; called when the last round is recorded."""
        best = f"{BEST}{best_round(metrics)}"
        for path in self._folder.glob(f"{BEST}*"):
            if path.name != best:
                shutil.rmtree(path)

    @property
    def _folder(self) -> Path:
        return self.paths.unfinished / CHECKPOINTS

    def _write(self, name: str, weights: Tensor) -> None:
        """Write a folder, which has its name when everything in it is on the disk."""
        new, path = self._folder / f"{name}.new", self._folder / name
        with writing_run(self.paths):
            for old in (new, path):
                # Of a round that was interrupted.
                shutil.rmtree(old, ignore_errors=True)
            new.mkdir(parents=True)
            self.model.save(weights, new)
            shutil.copyfile(self.paths.log, new / FILES[ArtifactKind.COMMUNICATION_LOG])
            if self.transcript:
                self.transcript.copy_to(new)
            for file in (*new.iterdir(), new):
                fsync_path(file)
            new.rename(path)
            fsync_path(self._folder)
