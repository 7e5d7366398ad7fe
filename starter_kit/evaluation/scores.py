"""Scores of a checkpoint, by the workers' own scoring step."""

from pathlib import Path

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.weights import read_safetensors
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind, ScoringResult, TrackRules
from evaluator.messages.progress import OnProgress
from evaluator.pipeline import StepInputs, StepOutput, score


def score_checkpoint(
    checkpoint: Path, *, base: Path, data: Path, split: str, on_progress: OnProgress
) -> StepOutput[ScoringResult]:
    """Return ANLS and accuracy of a checkpoint on a split of a data folder, with their detail.

    Args:
        base: Folder of the base weights whose architecture the checkpoint has.
        on_progress: Called with the questions that are answered, and with their total.

    Raises:
        ProblemError: The checkpoint, the base weights or the data can't be read, no question has a gold answer, or the
            checkpoint has NaN or infinite values, which a worker's first step rejects.
    """
    require_finite(checkpoint)
    _require_answers(Dataset(data, split))
    rules = TrackRules(reference="local", test_set="local", clients=1)
    inputs = StepInputs(
        {ArtifactKind.CHECKPOINT: checkpoint}, rules, reference=base, test_set=data, split=split
    )
    return score(inputs, on_progress)


def require_finite(checkpoint: Path) -> None:
    """Reject a checkpoint with NaN or infinite values (`E_CHECKPOINT_NOT_FINITE`)."""
    for name, tensor in read_safetensors(checkpoint).items():
        if not tensor.isfinite().all():
            raise ProblemError.of(
                ErrorCode.CHECKPOINT_NOT_FINITE,
                where=f"{checkpoint}, tensor {name}",
                expected="finite numbers",
                found="NaN or an infinite value",
            )


def _require_answers(dataset: Dataset) -> None:
    if dataset.questions and not any(question.answers for question in dataset.questions):
        raise ProblemError.of(
            ErrorCode.DATASET_FORMAT,
            where=f"{dataset.folder / dataset.split}/questions.jsonl",
            expected="gold answers to score with",
            found="questions without answers",
            next_step="Write the checkpoint's answers to a file with `pfl predict`.",
        )
