"""Writing the folder of a run, round by round, and completing it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from evaluator.communication.log import append_to_log
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import ArtifactKind
from starter_kit.federation.rounds import Round
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.reporting.files import fsync_path
from starter_kit.reporting.metrics import RoundMetrics, RunSummary, write_line, write_summary
from starter_kit.runs.folder import ADAPTER, FILES
from starter_kit.runs.kept_models import KeptModels
from starter_kit.runs.opening import Unfinished, give_proper_name, writing_run
from starter_kit.runs.private_record import PrivateRecordWriter
from starter_kit.runs.resuming import ResumeFolder, TrainingState
from starter_kit.runs.round_progress import RoundProgress
from starter_kit.runs.transcript import TranscriptWriter


@dataclass
class RunWriter:
    """Appends rounds to the folder of an unfinished run.

    Attributes:
        kept: The models of earlier rounds that are kept.
        progress: What is saved of a round while it runs.
        record: Writes the training record; None where none is written.
        transcript: Writes the transcript; None where none is written.
        metrics: The metrics of all rounds so far.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) The folder can't be written; recorded rounds stay.
    """

    run: Unfinished
    kept: KeptModels
    progress: RoundProgress
    record: PrivateRecordWriter | None
    transcript: TranscriptWriter | None = None
    metrics: list[RoundMetrics] = field(init=False)
    _begun: bool = False

    def __post_init__(self) -> None:
        self.metrics = list(self.run.metrics)
        self._paths = self.run.paths
        self._resume = ResumeFolder(self._paths.unfinished)

    def begin(self, round_number: int, state: TrainingState) -> None:
        """Note that a round begins from `state`, before anything of it is sent."""
        with writing_run(self._paths):
            # Saved so that there is a state to resume from, and this process counts as a resumption if it is one.
            if not self._begun:
                self._resume.save(state)
                self._begun = True
            self._resume.begin(round_number)

    def round(self, finished: Round, metrics: RoundMetrics, state: TrainingState) -> None:
        """Record a finished round, even one in which nobody took part, and the state after it.

        The state is saved last, when the rest of the round is on disk: a saved state means a complete round.
        """
        with writing_run(self._paths):
            # First, as it takes longest: a run that is interrupted here has no line of the round yet.
            if self.transcript:
                self.transcript.round(finished)
            append_to_log(self._paths.log, finished.messages)
            with self._paths.metrics.open("a", encoding="utf-8") as file:
                write_line(file, metrics)
            self.metrics.append(metrics)
            if self.record:
                self.record.round(finished)
            fsync_path(self._paths.log)
            fsync_path(self._paths.metrics)
            self.kept.keep(self.metrics, state.weights)
            self._resume.save(state)
            self.progress.clear()
            self.kept.forget(self.metrics)

    def finish(
        self, model: TrainableModel, weights: Tensor, base_sha256: str, summary: Callable[[str], RunSummary]
    ) -> None:
        """Write the checkpoint at `weights` (d,) and the results of the whole run, and give the folder its proper name.

        Args:
            base_sha256: Of the base weights, which the adapters' files name.
            summary: Makes the summary of a run whose checkpoint has the given SHA-256.
        """
        unfinished = self._paths.unfinished
        with writing_run(self._paths):
            model.save(weights, unfinished)
            model.save_adapters(weights, unfinished / ADAPTER, base=f"SHA-256 {base_sha256}")
            checkpoint = unfinished / FILES[ArtifactKind.CHECKPOINT]
            if self.record:
                self.record.finish(checkpoint)
            if self.transcript:
                self.transcript.finish(checkpoint)
            whole = summary(sha256_of(checkpoint))
            write_summary(self._paths.summary, whole)
            for path in (*unfinished.rglob("*"), unfinished):
                fsync_path(path)
            self._resume.mark_complete()
        give_proper_name(self._paths)
