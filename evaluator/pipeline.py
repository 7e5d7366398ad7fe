"""The steps of one evaluation, each a function from local files to a result.

Workers call `run_step` for a job that came over the broker, `pfl check` and `pfl evaluate` call it for files on a
participant's disk: the code is the same. Every step may run again; the outcome is the same.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from evaluator import communication, plausibility
from evaluator.checkpoints import inspect_checkpoint
from evaluator.checks import failures
from evaluator.contracts import (
    AccountingResult,
    ArtifactKind,
    CommunicationResult,
    ScoringDetail,
    ScoringResult,
    Step,
    StepResult,
    TrackRules,
    ValidationResult,
)
from evaluator.errors import ErrorCode, ProblemError
from evaluator.weight_changes import changed_tensors

if TYPE_CHECKING:
    from evaluator.docvqa.dataset import Dataset
    from evaluator.docvqa.inference import Prediction
    from evaluator.metrics import QuestionScores

Result = TypeVar("Result", bound=StepResult, covariant=True)
OnProgress = Callable[[int, int], None]  # units of work done, and their total

WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Bench:
    """What a step works with.

    Attributes:
        files: The run's artifacts.
        rules: The track's rules.
        reference: Folder of the reference architecture and base weights.
        test_set: Data folder; only scoring reads it.
        split: The split of the data folder that is scored.
        kept: Folder in which scoring keeps what it has finished, to go on from after a crash, or None.
        answers: File for the single predictions, or None. They never leave the machine.
    """

    files: Mapping[ArtifactKind, Path]
    rules: TrackRules
    reference: Path
    test_set: Path | None = None
    split: str = "test"
    kept: Path | None = None
    answers: Path | None = None

    def file(self, kind: ArtifactKind) -> Path:
        try:
            return self.files[kind]
        except KeyError:
            raise ProblemError.of(
                ErrorCode.ARTIFACT_MISSING, where=kind, expected=f"a {kind.replace('_', ' ')}"
            ) from None


@dataclass(frozen=True)
class Findings(Generic[Result]):
    """What a step found: the result that everyone concerned may see, and what is for the organizers alone."""

    result: Result
    detail: ScoringDetail | None = None


def run_step(step: Step, bench: Bench, on_progress: OnProgress) -> Findings[StepResult]:
    """Run one step.

    Raises:
        ProblemError: The participant's files are rejected.
    """
    return STEPS[step](bench, on_progress)


def validate(bench: Bench, on_progress: OnProgress) -> Findings[ValidationResult]:
    return Findings(
        inspect_checkpoint(
            bench.file(ArtifactKind.CHECKPOINT),
            bench.reference / WEIGHTS,
            trainable=bench.rules.trainable,
            on_progress=on_progress,
        )
    )


def count_communication(bench: Bench, _: OnProgress) -> Findings[CommunicationResult]:
    traffic = plausibility.Traffic()
    totals = communication.read_log(
        bench.file(ArtifactKind.COMMUNICATION_LOG),
        clients=bench.rules.clients,
        max_rounds=bench.rules.max_rounds,
        on_exchange=traffic.add,
    )
    changes = changed_tensors(bench.reference / WEIGHTS, bench.file(ArtifactKind.CHECKPOINT))
    result = CommunicationResult(
        rounds=totals.rounds,
        messages=totals.messages,
        bytes_total=totals.bytes_total,
        bytes_down=totals.bytes_down,
        bytes_up=totals.bytes_up,
        bytes_needed=plausibility.bytes_needed(changes),
        checks=plausibility.checks(totals, traffic, changes, clients=bench.rules.clients),
    )
    return Findings(result)


def account(bench: Bench, _: OnProgress) -> Findings[AccountingResult]:
    # Imported here: accounting takes a second to load, and half the tracks don't need it.
    from evaluator.accounting import rules
    from evaluator.records.check_groups import Case, RunFile, check_record
    from evaluator.records.reading import read_record

    privacy = bench.rules.privacy
    if privacy is None:
        raise ValueError("a run without a privacy budget is not accounted")
    record = read_record(bench.file(ArtifactKind.TRAINING_RECORD), max_rounds=bench.rules.max_rounds)
    files = {
        RunFile.CHECKPOINT: bench.file(ArtifactKind.CHECKPOINT),
        RunFile.BASE: bench.reference / WEIGHTS,
        RunFile.LOG: bench.file(ArtifactKind.COMMUNICATION_LOG),
        RunFile.ANNEX: bench.file(ArtifactKind.TRAINING_ANNEX),
    }
    rules.releases(record, privacy.sampling_rule)  # what can't be accounted needs no long checks
    checks = check_record(Case(record, bench.rules, files))
    if problems := failures(checks):
        raise ProblemError(*problems)
    return Findings(rules.account(record, privacy, checks))


def score(bench: Bench, on_progress: OnProgress) -> Findings[ScoringResult]:
    from evaluator.docvqa.dataset import Dataset
    from evaluator.docvqa.scoring import Scoring, answer_all  # torch is only loaded where a model runs
    from evaluator.metrics import GoldAnswers
    from evaluator.score_groups import group_scores

    if bench.test_set is None:
        raise ValueError("scoring needs a test set")
    checkpoint = bench.file(ArtifactKind.CHECKPOINT)
    dataset = Dataset(bench.test_set, bench.split)
    _ = dataset.info  # read now, so that a folder without it doesn't fail after minutes of work
    scoring = Scoring(checkpoint, bench.reference, dataset)
    with contextlib.ExitStack() as stack:
        kept = bench.kept or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        answered = answer_all(scoring, kept=kept, on_progress=on_progress)
    scores = GoldAnswers([question.answers for question in dataset.questions]).score(
        [prediction.answer for prediction in answered.predictions]
    )
    if bench.answers is not None:
        _write_answers(bench.answers, answered.predictions, dataset, scores)
    means = scores.means()
    result = ScoringResult(
        anls=means.anls,
        accuracy=means.accuracy,
        questions=means.questions,
        precision=answered.precision,
        test_set_sha256=dataset.sha256(),
        checkpoint_sha256=answered.checkpoint_sha256,
    )
    detail = ScoringDetail(
        groups=group_scores(dataset, scores), pages_without_image=len(answered.without_image)
    )
    return Findings(result, detail)


STEPS: dict[Step, Callable[[Bench, OnProgress], Findings[StepResult]]] = {
    Step.VALIDATE: validate,
    Step.COMMUNICATION: count_communication,
    Step.ACCOUNTING: account,
    Step.SCORING: score,
}


def _write_answers(
    path: Path, predictions: "Sequence[Prediction]", dataset: "Dataset", scores: "QuestionScores"
) -> None:
    """One JSON line a question, for the organizers' own analysis; replaced as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    rows = zip(predictions, dataset.questions, scores.anls.tolist(), scores.accuracy.tolist(), strict=True)
    with partial.open("w", encoding="utf-8") as file:
        for prediction, question, anls, accuracy in rows:
            row = {
                "question_id": prediction.question_id,
                "page": question.page,
                "provider": dataset.pages[question.page].provider,
                "key": question.key,
                "answer": prediction.answer,
                "confidence": prediction.confidence,
                "gold": question.answers,
                "anls": anls,
                "accuracy": accuracy,
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    partial.replace(path)
