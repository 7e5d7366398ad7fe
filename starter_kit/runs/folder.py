"""A finished run as `pfl check` and `pfl submit` see it: a folder of artifacts."""

from collections.abc import Sequence
from pathlib import Path

from evaluator.checkpoints.sharding import INDEX, check_same, join, read_index, shard_names
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from evaluator.messages.run_files import ANSWER_FILES, RUN_FILES
from evaluator.records.lines import TrainingRecord
from evaluator.records.reading import read_record
from starter_kit.console import log
from starter_kit.reporting.metrics import SUMMARY
from starter_kit.settings.files import read_settings_file

# Without the settings, which only an examination needs.
FILES: dict[ArtifactKind, str] = {
    **{kind: name for kind, name in RUN_FILES.items() if kind is not ArtifactKind.SETTINGS},
    ArtifactKind.TRAINING_ANNEX: ANSWER_FILES[ArtifactKind.TRAINING_ANNEX],
}
SETTINGS = RUN_FILES[ArtifactKind.SETTINGS]
# The trained adapters, as PEFT stores them.
ADAPTER = "adapter"
# The opening of a replayable run's round, for the organizers only.
OPENING = ANSWER_FILES[ArtifactKind.ROUND_OPENING]
# The messages of the rounds that the site drew, of a run that is too large to attach all of them.
OPENED_MESSAGES = ANSWER_FILES[ArtifactKind.MESSAGES]


class RunFolder:
    """The folder that `pfl train` writes, or one with the same layout.

    A sharded checkpoint is joined into one file when its files are first used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, kind: ArtifactKind) -> Path:
        """Return the artifact's file.

        Raises:
            ProblemError: (`E_ARTIFACT_MISSING`) The file is missing; or the shards of a checkpoint can't be joined.
        """
        if kind is ArtifactKind.CHECKPOINT:
            self._join_shards()
        path = self.path / FILES[kind]
        if not path.is_file():
            raise ProblemError.of(
                ErrorCode.ARTIFACT_MISSING, where=str(path), expected=f"the {kind.replace('_', ' ')}"
            )
        return path

    def files(self) -> dict[ArtifactKind, Path]:
        """Return the files of all artifacts in the folder.

        Raises:
            ProblemError: The shards of a checkpoint can't be joined.
        """
        self._join_shards()
        return {kind: self.path / name for kind, name in FILES.items() if (self.path / name).is_file()}

    def examined_files(self) -> dict[ArtifactKind, Path]:
        """Return what an examination of the run needs: the settings, and the file of a method that isn't the kit's.

        There are none where the settings can't be read, for the folder may be of other software.
        """
        settings = self.path / SETTINGS
        try:
            method = str(read_settings_file(settings).get("method"))
        except ProblemError:
            return {}
        files = {ArtifactKind.SETTINGS: settings}
        own = self.path / Path(method).name
        if own.suffix == ".py" and own.is_file():
            files[ArtifactKind.METHOD_FILE] = own
        return files

    def record(self, *, max_rounds: int) -> TrainingRecord:
        """Read the training record.

        Raises:
            ProblemError: The record is missing, can't be read, or its chain doesn't hold.
        """
        return read_record(self.file(ArtifactKind.TRAINING_RECORD), max_rounds=max_rounds)

    def _join_shards(self) -> None:
        index, checkpoint = self.path / INDEX, self.path / FILES[ArtifactKind.CHECKPOINT]
        if not index.is_file():
            return
        if checkpoint.is_file():
            check_same(checkpoint, index)
            return
        shards = shard_names(read_index(index))
        log(f"{index}: joining {len(shards)} shards into {checkpoint.name}")
        try:
            join(index, checkpoint)
        except OSError as error:
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                message="The shards of the checkpoint can't be joined in the run folder.",
                where=str(checkpoint),
                expected="a folder to write into, with room for the joined checkpoint",
                found=error.strerror,
                next_step="Make room, or copy the run into a folder that you can write to.",
            ) from error


def require_new(folder: Path) -> None:
    """Check that there is nothing yet where a run's folder is to be.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) There is something.
    """
    if folder.exists() or folder.is_symlink():
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The folder already exists, and a new run needs a new one.",
            where=str(folder),
            expected="a new folder",
            found="a complete run" if (folder / SUMMARY).is_file() else "an existing folder",
            next_step="Choose another folder with --out, or remove this one.",
        )


def budget_of(record: TrainingRecord, budgets: Sequence[float]) -> float:
    """Return the smallest of a track's budgets that covers the ε claimed in the record.

    Raises:
        ProblemError: (`E_RECORD_RULES`) The record claims more than every budget.
    """
    claimed = record.claimed_epsilon
    covering = [budget for budget in sorted(budgets) if claimed <= budget]
    if not covering:
        raise ProblemError.of(
            ErrorCode.RECORD_RULES,
            where=f"{FILES[ArtifactKind.TRAINING_RECORD]}, claimed_epsilon",
            expected=f"at most {max(budgets):g}",
            found=f"{claimed:.4g}",
            next_step="Train with more noise: see `pfl privacy noise`.",
        )
    return covering[0]
