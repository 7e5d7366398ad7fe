"""A checkpoint's answers to questions, whether or not their gold answers are known."""

import json
import tempfile
from pathlib import Path

from evaluator.docvqa.dataset import Dataset, malformed
from evaluator.messages.progress import OnProgress
from evaluator.scoring.predictions import Answered, Scoring, answer_all
from starter_kit.disk import room_for
from starter_kit.evaluation.scores import require_finite


def write_predictions(
    checkpoint: Path, out: Path, *, base: Path, data: Path, split: str, on_progress: OnProgress
) -> Answered:
    """Answer every question of a split, as the workers do, and write a line of JSON for each.

    Args:
        base: Folder of the base weights whose architecture the checkpoint has.
        on_progress: Called with the questions that are answered, and with their total.

    Raises:
        ProblemError: The checkpoint, the base weights or the data can't be read, or the checkpoint has NaN or infinite
            values.
    """
    dataset = Dataset(data, split)
    if not dataset.questions:
        raise malformed(data / split / "questions.jsonl", "questions to answer", "none")
    require_finite(checkpoint)
    with tempfile.TemporaryDirectory() as kept:
        answered = answer_all(Scoring(checkpoint, base, dataset), kept=Path(kept), on_progress=on_progress)
    rows = (
        {"question_id": found.question_id, "answer": found.answer, "confidence": round(found.confidence, 6)}
        for found in answered.predictions
    )
    partial = out.with_name(f".{out.name}.partial")
    try:
        with room_for(out):
            partial.write_text(
                "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
            )
            partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return answered
