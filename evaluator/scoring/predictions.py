"""All answers to a test set, in shards that outlast the process.

Every shard's answers are written to disk as soon as they are computed. A scoring that is started again, after a crash
or elsewhere on the machine, takes the finished shards and computes the others, each by itself as it would have been:
the result is the same. Finished shards stay for two weeks under a name that is a hash of all that they depend on. They
quote the answers to the test set and are as secret as it is.

Several GPUs share a scoring by its shards, each from a process of its own.
"""

import contextlib
import ctypes
import gc
import hashlib
import json
import logging
import multiprocessing
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from pydantic import ValidationError

from evaluator.checkpoints.contents import sha256_of
from evaluator.docvqa.dataset import Dataset, Question
from evaluator.docvqa.inference import (
    Answerer,
    Budget,
    Prediction,
    ShardAnswers,
    in_order,
    precision_of,
)
from evaluator.docvqa.loading import Shard, shards
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import VT5
from evaluator.errors.traces import trace_of
from evaluator.messages.jobs import evaluator_version
from evaluator.progress import OnProgress, ignore_progress

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

logger = logging.getLogger(__name__)

KEPT_S = 14 * 24 * 3600
POLL_S = 0.5
LIBRARIES = ("torch", "transformers", "tokenizers", "pillow", "numpy")

# Receives how many questions have been answered so far.
OnAnswered = Callable[[int], None]


@dataclass(frozen=True)
class Scoring:
    """What is scored: a checkpoint of the architecture of `reference` on a split of a data folder."""

    checkpoint: Path
    reference: Path
    dataset: Dataset


@dataclass(frozen=True)
class Answered:
    """All predictions, in the order of the questions; and where they come from.

    Attributes:
        without_image: The pages whose image the model didn't see.
    """

    predictions: list[Prediction]
    without_image: list[str]
    precision: str
    checkpoint_sha256: str


class ShardStore:
    """A folder of finished shards, one file each, which appears when it is complete."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, number: int, asked: Sequence[str]) -> ShardAnswers | None:
        """Return a finished shard with the answers to the questions of the ids `asked`; None if there is none."""
        path = self._path(number)
        try:
            answers = ShardAnswers.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            answers = None
        if answers is None or [prediction.question_id for prediction in answers.predictions] != list(asked):
            logger.warning("%s doesn't hold the answers to this shard; it is answered again", path)
            return None
        return answers

    def write(self, number: int, answers: ShardAnswers) -> None:
        """Store a finished shard; its file appears only when it is complete."""
        path = self._path(number)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(answers.model_dump_json(), encoding="utf-8")
        partial.replace(path)

    def _path(self, number: int) -> Path:
        return self.folder / f"shard-{number:05}.json"


@dataclass(frozen=True)
class _PlannedShards:
    """All shards of a scoring, by number, and where the finished ones are stored."""

    store: ShardStore
    plan: Sequence[Shard]
    questions: Sequence[Question]

    def finished(self) -> dict[int, ShardAnswers]:
        """Return the shards that an earlier process finished."""
        return {number: answers for number in range(len(self.plan)) if (answers := self._read(number))}

    def all_after(self, finished: Mapping[int, ShardAnswers]) -> list[ShardAnswers]:
        """Return all shards in order; those that are not in `finished` have been stored since.

        Raises:
            RuntimeError: A shard's file is gone.
        """
        in_plan = []
        for number in range(len(self.plan)):
            answers = finished.get(number) or self._read(number)
            if answers is None:
                raise RuntimeError(f"shard {number} was answered, and its file is gone")
            in_plan.append(answers)
        return in_plan

    def _read(self, number: int) -> ShardAnswers | None:
        shard = self.plan[number]
        return self.store.read(number, [self.questions[index].question_id for index in shard.questions])


def answer_all(
    scoring: Scoring,
    *,
    kept: Path,
    devices: Sequence[str] = (),
    budget: Budget | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Answered:
    """Answer every question, resuming from what `kept` holds of the same scoring.

    Args:
        kept: Folder of the finished shards of all scorings.
        devices: What to compute on, one process each where there are several; all GPUs by default, else the CPU.
        budget: The batch budget; by default the device's.
        on_progress: Receives the questions done and their total, after every pass through the model.

    Raises:
        ProblemError: The checkpoint, the reference or the test set can't be read.
        RuntimeError: A device's process died.
    """
    devices = devices or _all_devices()
    device = torch.device(devices[0])
    budget = budget or Budget.of(device)
    questions = scoring.dataset.questions
    plan = shards(questions, budget.pages)
    checkpoint_sha256 = sha256_of(scoring.checkpoint)
    name = _identity(scoring, checkpoint_sha256, device, budget)
    forget_old(kept, name)
    planned = _PlannedShards(ShardStore(kept / name), plan, questions)
    finished = planned.finished()
    _answer_missing(scoring, planned, finished.keys(), devices, budget, on_progress)
    _give_back_memory()
    in_plan = planned.all_after(finished)
    return Answered(
        predictions=in_order(plan, in_plan),
        without_image=[page for answers in in_plan for page in answers.without_image],
        precision=_name_of(precision_of(device)),
        checkpoint_sha256=checkpoint_sha256,
    )


def _answer_missing(
    scoring: Scoring,
    planned: _PlannedShards,
    finished: Collection[int],
    devices: Sequence[str],
    budget: Budget,
    on_progress: OnProgress,
) -> None:
    """Answer the shards that are not `finished` and store each, on as many devices as there are."""
    plan, total = planned.plan, len(planned.questions)
    missing = [number for number in range(len(plan)) if number not in finished]
    done = sum(len(plan[number].questions) for number in finished)
    on_progress(done, total)
    if finished and missing:
        logger.info("resuming after %d of %d shards", len(finished), len(plan))

    def on_answered(more: int) -> None:
        on_progress(done + more, total)

    if len(devices) == 1 or len(missing) < 2:
        wanted = [(number, plan[number]) for number in missing]
        _answer(scoring, wanted, planned.store, devices[0], budget, on_answered)
    else:
        _share(scoring, missing, planned.store, devices, budget, on_answered)


def _all_devices() -> list[str]:
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())] or ["cpu"]


def _answer(
    scoring: Scoring,
    wanted: Sequence[tuple[int, Shard]],
    store: ShardStore,
    device: str,
    budget: Budget,
    on_answered: OnAnswered,
) -> None:
    """Answer the `wanted` shards and store each; `on_answered` receives the number of their questions done."""
    if not wanted:
        return
    answerer = Answerer(
        VT5.from_checkpoint(scoring.reference, scoring.checkpoint),
        Tokenizer.from_folder(scoring.reference),
        device=device,
        budget=budget,
    )
    answered = answerer.answer_shards(
        scoring.dataset, scoring.dataset.questions, [shard for _, shard in wanted], on_answered
    )
    for (number, _), answers in zip(wanted, answered, strict=True):
        store.write(number, answers)


def _share(
    scoring: Scoring,
    missing: Sequence[int],
    store: ShardStore,
    devices: Sequence[str],
    budget: Budget,
    on_answered: OnAnswered,
) -> None:
    """Answer the `missing` shards on several devices at once, every device an equal part of them."""
    context = multiprocessing.get_context("spawn")
    # A dataset that wasn't read yet: pages and questions are read faster from disk than from another process.
    scoring = replace(scoring, dataset=Dataset(scoring.dataset.folder, scoring.dataset.split))
    counts = [context.Value("q", 0) for _ in devices]
    processes = [
        context.Process(
            target=_answer_part,
            args=(scoring, missing[place :: len(devices)], store, device, budget, count),
            name=f"scoring on {device}",
            daemon=True,
        )
        for place, (device, count) in enumerate(zip(devices, counts, strict=True))
    ]
    for process in processes:
        process.start()
    try:
        while any(process.is_alive() for process in processes):
            for process in processes:
                process.join(POLL_S / len(processes))
            _check_alive(processes)
            on_answered(sum(count.value for count in counts))
        _check_alive(processes)
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _check_alive(processes: Sequence[BaseProcess]) -> None:
    for process in processes:
        if process.exitcode:
            raise RuntimeError(f"{process.name} ended with exit code {process.exitcode}")


def _answer_part(
    scoring: Scoring,
    numbers: Sequence[int],
    store: ShardStore,
    device: str,
    budget: Budget,
    count: "Synchronized[int]",
) -> None:
    plan = shards(scoring.dataset.questions, budget.pages)

    def on_answered(done: int) -> None:
        count.value = done

    try:
        _answer(scoring, [(number, plan[number]) for number in numbers], store, device, budget, on_answered)
    except Exception as error:  # noqa: BLE001 - the process ends here, and its trace would quote the test set
        sys.stderr.write(f"scoring on {device} failed\n{trace_of(error, quoted=False)}\n")
        sys.exit(1)


def _give_back_memory() -> None:
    """Return what the model took: the C library holds on to freed pieces, and a worker runs for weeks."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    # The C library of another system may not have it.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _identity(scoring: Scoring, checkpoint_sha256: str, device: torch.device, budget: Budget) -> str:
    """Return a name for all that the answers depend on, to the last bit."""
    parts = {
        **circumstances(scoring.reference, scoring.dataset, device),
        "checkpoint": checkpoint_sha256,
        "code": {path.name: sha256_of(path) for path in sorted(Path(__file__).parent.glob("*.py"))},
        "budget": [budget.tokens, budget.rows, budget.pages],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def circumstances(reference: Path, dataset: Dataset, device: torch.device) -> dict[str, object]:
    """Return what a model's answers depend on besides its weights: architecture, data, code, libraries and device."""
    return {
        "reference": {path.name: sha256_of(path) for path in _small_files(reference)},
        "test_set": dataset.sha256(),
        "images": _images_digest(dataset),
        "evaluator": evaluator_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "precision": _name_of(precision_of(device)),
    }


def _small_files(reference: Path) -> Iterator[Path]:
    """Return the reference's configuration and tokenizer; its weights play no part."""
    return (
        path for path in sorted(reference.iterdir()) if path.is_file() and path.suffix in {".json", ".model"}
    )


def _images_digest(dataset: Dataset) -> str:
    """Return which images there are, by size and time: reading them would take as long as scoring."""
    digest = hashlib.sha256()
    for page in dataset.pages:
        try:
            stat = dataset.image_path(page).stat()
        except OSError:
            continue
        digest.update(f"{page} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def forget_old(kept: Path, current: str) -> None:
    """Make the folder `current` of `kept`, and remove those beside it that were not used for two weeks."""
    (kept / current).mkdir(parents=True, exist_ok=True)
    (kept / current).touch()
    for folder in kept.iterdir():
        # Another worker may be removing them as well.
        with contextlib.suppress(FileNotFoundError):
            if folder.name != current and time.time() - folder.stat().st_mtime > KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
