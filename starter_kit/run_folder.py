"""A finished run as `pfl check` and `pfl submit` see it: a folder of artifacts."""

from collections.abc import Sequence
from pathlib import Path

from evaluator.contracts import ArtifactKind
from evaluator.errors import ErrorCode, refuse
from evaluator.records.lines import TrainingRecord
from evaluator.records.reading import read_record

FILES = {
    ArtifactKind.CHECKPOINT: "model.safetensors",
    ArtifactKind.COMMUNICATION_LOG: "communication_log.csv",
    ArtifactKind.TRAINING_RECORD: "training_record.jsonl",
    ArtifactKind.TRAINING_ANNEX: "training_annex.jsonl",
}


class RunFolder:
    """The folder that `pfl train` writes, or one laid out alike."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, kind: ArtifactKind) -> Path:
        """The artifact's file; raises `ProblemError` (`E_ARTIFACT_MISSING`) if it isn't there."""
        path = self.path / FILES[kind]
        if not path.is_file():
            raise refuse(
                ErrorCode.ARTIFACT_MISSING, where=str(path), expected=f"the {kind.replace('_', ' ')}"
            )
        return path

    def files(self) -> dict[ArtifactKind, Path]:
        """The artifacts that are there."""
        return {kind: self.path / name for kind, name in FILES.items() if (self.path / name).is_file()}

    def record(self, *, max_rounds: int) -> TrainingRecord:
        """The training record; raises `ProblemError` if it isn't there, can't be read or its chain doesn't hold."""
        return read_record(self.file(ArtifactKind.TRAINING_RECORD), max_rounds=max_rounds)


def budget_of(record: TrainingRecord, budgets: Sequence[float]) -> float:
    """The smallest of a track's budgets that covers the ε which the record claims.

    Raises:
        ProblemError: (`E_RECORD_RULES`) It claims more than every budget.
    """
    claimed = record.run.claimed_epsilon
    covering = [budget for budget in sorted(budgets) if claimed <= budget]
    if not covering:
        raise refuse(
            ErrorCode.RECORD_RULES,
            where=f"{FILES[ArtifactKind.TRAINING_RECORD]}, claimed_epsilon",
            expected=f"at most {max(budgets):g}",
            found=f"{claimed:.4g}",
            next_step="Train with more noise: see `pfl privacy noise`.",
        )
    return covering[0]
