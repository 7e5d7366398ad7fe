"""The steps of one evaluation, each a function from local files to a result.

Workers call `run_step` for a job from the broker, `pfl check` and `pfl evaluate` call it for files on a participant's
disk: the code is the same. Every step is idempotent.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from evaluator.checkpoints.inspection import inspect_checkpoint
from evaluator.checkpoints.weight_changes import changed_tensors
from evaluator.checkpoints.weight_sample import weight_sample
from evaluator.communication import log as communication
from evaluator.communication import plausibility
from evaluator.communication.first_downloads import FirstDownloads
from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding.counting import NOT_DECODED, Decoded, count
from evaluator.folding.decoding import NotDecodedError, decode_messages
from evaluator.messages.jobs import (
    AccountingResult,
    ArtifactKind,
    CommunicationResult,
    DrawnMeans,
    ScoringDetail,
    ScoringResult,
    SplitIdentity,
    Step,
    StepDetail,
    StepResult,
    TrackRules,
    ValidationResult,
    WeightSample,
)
from evaluator.messages.leakage import LeakageResult
from evaluator.messages.progress import OnProgress
from evaluator.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from evaluator.docvqa.dataset import Dataset
    from evaluator.docvqa.inference import Prediction
    from evaluator.scoring.metrics import QuestionScores

Result = TypeVar("Result", bound=StepResult, covariant=True)

WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class StepInputs:
    """The files and rules that a step works with.

    Attributes:
        challenge: What the site drew for the training record, or for the index of a large run's messages; None on a
            participant's own disk.
        reference: The folder of the reference architecture and base weights.
        test_set: The data folder, which only the steps that run the model read.
        split: The split of the data folder.
        kept: The folder of what is finished, from which such a step resumes after a crash; None to keep nothing.
        answers: The file for what it found of single questions and providers, which never leaves the machine; None to
            write none.
        sample_key: From which the places of the weight sample follow; None to take none.
        decoded: The messages of a codec plug-in, decoded before the step.
    """

    files: Mapping[ArtifactKind, Path]
    rules: TrackRules
    reference: Path
    challenge: str | None = None
    test_set: Path | None = None
    split: str = "test"
    kept: Path | None = None
    answers: Path | None = None
    sample_key: str | None = None
    decoded: Decoded = NOT_DECODED

    def file(self, kind: ArtifactKind) -> Path:
        """Return the path of an artifact; raises ProblemError (`E_ARTIFACT_MISSING`) if there is none."""
        try:
            return self.files[kind]
        except KeyError:
            raise ProblemError.of(
                ErrorCode.ARTIFACT_MISSING, where=kind, expected=f"a {kind.replace('_', ' ')}"
            ) from None


def untrained_files(folder: Path, reference: Path) -> dict[ArtifactKind, Path]:
    """Return what a team would submit that has trained nothing: the base weights, and a log without messages.

    Args:
        folder: The worker's own, to which the log is written once.
    """
    log = folder / "untrained.csv"
    if not log.exists():
        partial = log.with_suffix(f".{os.getpid()}.partial")
        communication.write_log(partial, [])
        partial.replace(log)
    return {ArtifactKind.CHECKPOINT: reference / WEIGHTS, ArtifactKind.COMMUNICATION_LOG: log}


@dataclass(frozen=True)
class StepOutput(Generic[Result]):
    """The result of a step, which everyone concerned may see; `detail` and `sample`, which only the organizers may.

    `drawn_means` are for the site alone.
    """

    result: Result
    detail: StepDetail | None = None
    sample: WeightSample | None = None
    drawn_means: Sequence[DrawnMeans] = ()


def run_step(step: Step, inputs: StepInputs, on_progress: OnProgress) -> StepOutput[StepResult]:
    """Run one step.

    Raises:
        ProblemError: The participant's files are rejected.
    """
    return STEPS[step](inputs, on_progress)


def validate(inputs: StepInputs, on_progress: OnProgress) -> StepOutput[ValidationResult]:
    """Compare the checkpoint with the reference, and list the tensors that training changed."""
    checkpoint, base = inputs.file(ArtifactKind.CHECKPOINT), inputs.reference / WEIGHTS
    result = inspect_checkpoint(checkpoint, base, trainable=inputs.rules.trainable, on_progress=on_progress)
    key = inputs.sample_key
    return StepOutput(result, sample=weight_sample(checkpoint, base, key) if key else None)


def count_communication(inputs: StepInputs, on_progress: OnProgress) -> StepOutput[CommunicationResult]:
    """Add up the communication log by the track's rule, and compute the checkpoint from the messages if attached.

    Where it is the participant's word, the log is compared with what changed in the weights.
    """
    traffic, downloads = plausibility.Traffic(), FirstDownloads()

    def gather(exchange: communication.Exchange) -> None:
        traffic.add(exchange)
        downloads.add(exchange)

    totals = communication.read_log(
        inputs.file(ArtifactKind.COMMUNICATION_LOG),
        clients=inputs.rules.clients,
        max_rounds=inputs.rules.max_rounds,
        on_exchange=gather,
    )
    base = inputs.reference / WEIGHTS
    changes = changed_tensors(base, inputs.file(ArtifactKind.CHECKPOINT))
    counting = count(
        inputs.files, base, inputs.rules, totals, changes, on_progress, inputs.decoded, inputs.challenge
    )
    checks = plausibility.checks(totals, traffic, changes, clients=inputs.rules.clients)
    result = CommunicationResult(
        rounds=totals.rounds,
        messages=totals.messages,
        bytes_down=totals.bytes_down,
        bytes_up=totals.bytes_up,
        bytes_total=downloads.ranked_bytes(totals, inputs.rules.first_download) + counting.decoder_bytes,
        decoder_bytes=counting.decoder_bytes,
        bytes_sent=totals.bytes_total,
        first_download_bytes=downloads.all_bytes,
        bytes_needed=plausibility.bytes_needed(changes),
        counting="counted" if counting.is_counted else "declared",
        not_counted_because=counting.because,
        rounds_folded=counting.rounds_folded,
        checks=plausibility.of_counted(checks) if counting.is_counted else checks,
    )
    return StepOutput(result)


def with_decoded(inputs: StepInputs, sandbox: Sandbox, folder: Path, *, confined: bool = True) -> StepInputs:
    """Return the inputs of the step `communication` with the messages of a codec plug-in decoded into `folder`.

    The sandbox runs the codec; the step, which computes the result, never does.

    Args:
        confined: Whether to refuse the codec where the kernel can't confine it.

    Raises:
        ProblemError: ``E_TRANSCRIPT_*``: the messages can't be decoded.
    """
    if ArtifactKind.TRANSCRIPT not in inputs.files:
        return inputs
    try:
        done = decode_messages(
            sandbox,
            inputs.files,
            folder,
            inputs.challenge,
            inputs.rules.drawn_rounds,
            confined=confined,
        )
        decoded = Decoded(folder if done else None)
    except NotDecodedError as error:
        decoded = Decoded(because=str(error))
    return replace(inputs, decoded=decoded)


def account(inputs: StepInputs, _: OnProgress) -> StepOutput[AccountingResult]:
    """Check the training record against the run's other files, and recompute its ε."""
    # Imported here: accounting takes a second to load, and half the tracks don't need it.
    from evaluator.records import epsilon as rules
    from evaluator.records.case import Case, RunFile
    from evaluator.records.check_table import check_record, failures
    from evaluator.records.reading import read_record

    privacy = inputs.rules.privacy
    if privacy is None:
        raise ValueError("a run without a privacy budget is not accounted")
    record = read_record(inputs.file(ArtifactKind.TRAINING_RECORD), max_rounds=inputs.rules.max_rounds)
    files = {
        RunFile.CHECKPOINT: inputs.file(ArtifactKind.CHECKPOINT),
        RunFile.BASE: inputs.reference / WEIGHTS,
        RunFile.LOG: inputs.file(ArtifactKind.COMMUNICATION_LOG),
        RunFile.ANNEX: inputs.file(ArtifactKind.TRAINING_ANNEX),
    }
    # What can't be accounted is rejected here, before the checks, which take longer.
    deciding = rules.releases(record, privacy.sampling_rule)
    checks = check_record(Case(record, inputs.rules, files, inputs.challenge))
    if problems := failures(checks):
        raise ProblemError(*problems)
    result = rules.account(record, privacy, checks, deciding)
    norms = [line.clip_norm for line in record.rounds]
    stated = {"noise": record.run.noise, "clip_norms": (min(norms), max(norms)) if norms else None}
    return StepOutput(result.model_copy(update=stated))


def score(inputs: StepInputs, on_progress: OnProgress) -> StepOutput[ScoringResult]:
    """Answer every question of the test set, and score the answers."""
    from evaluator.docvqa.dataset import Dataset, malformed
    from evaluator.scoring.groups import group_scores
    from evaluator.scoring.metrics import GoldAnswers
    from evaluator.scoring.paired_draws import drawn_means
    from evaluator.scoring.predictions import Scoring, answer_all
    from evaluator.scoring.split import private_questions, read_split

    if inputs.test_set is None:
        raise ValueError("scoring needs a test set")
    checkpoint = inputs.file(ArtifactKind.CHECKPOINT)
    dataset = Dataset(inputs.test_set, inputs.split)
    # Read now, so that a folder without it doesn't fail after minutes of work.
    _ = dataset.info
    if not dataset.questions:
        raise malformed(dataset.folder / dataset.split / "questions.jsonl", "questions to answer", "none")
    split = read_split(inputs.test_set)
    private = private_questions(dataset, split) if split else []
    scoring = Scoring(checkpoint, inputs.reference, dataset)
    with contextlib.ExitStack() as stack:
        kept = inputs.kept or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        answered = answer_all(scoring, kept=kept, on_progress=on_progress)
    scores = GoldAnswers([question.answers for question in dataset.questions]).score(
        [prediction.answer for prediction in answered.predictions]
    )
    if inputs.answers is not None:
        _write_answers(inputs.answers, answered.predictions, dataset, scores, private)
    detail = ScoringDetail(
        groups=group_scores(dataset, scores, private), pages_without_image=len(answered.without_image)
    )
    # The first is the whole test set.
    shown = detail.part("public") or detail.groups[0]
    result = ScoringResult(
        anls=shown.anls,
        anls_low=shown.anls_low,
        anls_high=shown.anls_high,
        accuracy=shown.accuracy,
        questions=shown.questions,
        precision=answered.precision,
        test_set_sha256=dataset.sha256(),
        split=split and SplitIdentity(sha256=split.sha256, private_fraction=split.private_fraction),
        checkpoint_sha256=answered.checkpoint_sha256,
    )
    return StepOutput(result, detail, drawn_means=drawn_means(dataset, scores, private))


def measure_leakage(inputs: StepInputs, on_progress: OnProgress) -> StepOutput[LeakageResult]:
    """Attack the checkpoint: which providers of the leakage set took part in its training?"""
    # Imported here, as in `score`.
    from evaluator.docvqa.dataset import Dataset
    from evaluator.leakage.assessment import Options
    from evaluator.leakage.models import assess_checkpoint
    from evaluator.leakage.published import detail_of, published
    from evaluator.messages.file_hash import sha256_of

    if inputs.test_set is None:
        raise ValueError("leakage is measured by a leakage set")
    checkpoint = inputs.file(ArtifactKind.CHECKPOINT)
    dataset = Dataset(inputs.test_set, inputs.split)
    # Hidden answers take five more passes, which `pfl leakage` makes for organizers who want them.
    found = assess_checkpoint(
        checkpoint,
        inputs.reference,
        dataset,
        options=Options(memorization=False),
        kept=inputs.kept,
        on_progress=on_progress,
    )
    if inputs.answers is not None:
        _replace(inputs.answers, [found.model_dump_json(indent=1)])
    result = LeakageResult(
        leakage=published(found),
        leakage_set_sha256=dataset.sha256(),
        checkpoint_sha256=sha256_of(checkpoint),
    )
    return StepOutput(result, detail_of(found))


STEPS: dict[Step, Callable[[StepInputs, OnProgress], StepOutput[StepResult]]] = {
    Step.VALIDATE: validate,
    Step.COMMUNICATION: count_communication,
    Step.ACCOUNTING: account,
    Step.SCORING: score,
    Step.LEAKAGE: measure_leakage,
}


def _write_answers(
    path: Path,
    predictions: "Sequence[Prediction]",
    dataset: "Dataset",
    scores: "QuestionScores",
    private: Sequence[bool],
) -> None:
    """Write one JSON line for each question, for the organizers' own analysis; the file is replaced as a whole."""
    rows = zip(
        predictions,
        dataset.questions,
        scores.anls.tolist(),
        scores.accuracy.tolist(),
        private or [False] * len(predictions),
        strict=True,
    )
    lines = (
        json.dumps(
            {
                "question_id": prediction.question_id,
                "page": question.page,
                "provider": dataset.pages[question.page].provider,
                "key": question.key,
                "answer": prediction.answer,
                "confidence": prediction.confidence,
                "gold": question.answers,
                "anls": anls,
                "accuracy": accuracy,
                "private": is_private,
            },
            ensure_ascii=False,
        )
        for prediction, question, anls, accuracy, is_private in rows
    )
    _replace(path, (f"{line}\n" for line in lines))


def _replace(path: Path, parts: Iterable[str]) -> None:
    """Write a file as a whole, whatever interrupts it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with partial.open("w", encoding="utf-8") as file:
        file.writelines(parts)
    partial.replace(path)
