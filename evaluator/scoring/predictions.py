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
from functools import cached_property
from importlib.metadata import version
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from pydantic import ValidationError

from evaluator.docvqa.dataset import Dataset, Question
from evaluator.docvqa.devices import precision_of
from evaluator.docvqa.inference import (
    Answerer,
    Budget,
    Prediction,
    ShardAnswers,
    in_order,
)
from evaluator.docvqa.loading import Shard, shards
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import VT5
from evaluator.errors.traces import trace_of
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import evaluator_version
from evaluator.messages.progress import OnProgress, ignore_progress

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


@dataclass(frozen=True)
class _Shards:
    """All shards of a scoring, by number, and a folder of the finished ones, one file each.

    Attributes:
        budget: The batch budget, which says how many pages a shard has.
    """

    scoring: Scoring
    folder: Path
    budget: Budget

    @property
    def questions(self) -> list[Question]:
        return self.scoring.dataset.questions

    @cached_property
    def plan(self) -> list[Shard]:
        return shards(self.questions, self.budget.pages)

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

    def write(self, number: int, answers: ShardAnswers) -> None:
        """Store a finished shard; its file appears only when it is complete."""
        path = self._path(number)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(answers.model_dump_json(), encoding="utf-8")
        partial.replace(path)

    def _read(self, number: int) -> ShardAnswers | None:
        """Return a finished shard with the answers to its questions; None if there is none."""
        path = self._path(number)
        try:
            answers = ShardAnswers.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            answers = None
        asked = [self.questions[index].question_id for index in self.plan[number].questions]
        if answers is None or [prediction.question_id for prediction in answers.predictions] != asked:
            logger.warning("%s doesn't hold the answers to this shard; it is answered again", path)
            return None
        return answers

    def _path(self, number: int) -> Path:
        return self.folder / f"shard-{number:05}.json"


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
    checkpoint_sha256 = sha256_of(scoring.checkpoint)
    name = _identity(scoring, checkpoint_sha256, device, budget)
    forget_old(kept, name)
    all_shards = _Shards(scoring, kept / name, budget)
    finished = all_shards.finished()
    _answer_missing(all_shards, finished.keys(), devices, on_progress)
    _give_back_memory()
    in_plan = all_shards.all_after(finished)
    return Answered(
        predictions=in_order(all_shards.plan, in_plan),
        without_image=[page for answers in in_plan for page in answers.without_image],
        precision=_name_of(precision_of(device)),
        checkpoint_sha256=checkpoint_sha256,
    )


def _answer_missing(
    all_shards: _Shards, finished: Collection[int], devices: Sequence[str], on_progress: OnProgress
) -> None:
    """Answer the shards that are not `finished` and store each, on as many devices as there are."""
    plan, total = all_shards.plan, len(all_shards.questions)
    missing = [number for number in range(len(plan)) if number not in finished]
    done = sum(len(plan[number].questions) for number in finished)
    on_progress(done, total)
    if finished and missing:
        logger.info("resuming after %d of %d shards", len(finished), len(plan))

    def on_answered(more: int) -> None:
        on_progress(done + more, total)

    if len(devices) == 1 or len(missing) < 2:
        _answer(all_shards, missing, devices[0], on_answered)
    else:
        _share(all_shards, missing, devices, on_answered)


def _all_devices() -> list[str]:
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())] or ["cpu"]


def _answer(all_shards: _Shards, wanted: Sequence[int], device: str, on_answered: OnAnswered) -> None:
    """Answer the `wanted` shards and store each; `on_answered` receives the number of their questions done."""
    if not wanted:
        return
    scoring = all_shards.scoring
    answerer = Answerer(
        VT5.from_checkpoint(scoring.reference, scoring.checkpoint),
        Tokenizer.from_folder(scoring.reference),
        device=device,
        budget=all_shards.budget,
    )
    plan = [all_shards.plan[number] for number in wanted]
    answered = answerer.answer_shards(scoring.dataset, all_shards.questions, plan, on_answered)
    for number, answers in zip(wanted, answered, strict=True):
        all_shards.write(number, answers)


def _share(
    all_shards: _Shards, missing: Sequence[int], devices: Sequence[str], on_answered: OnAnswered
) -> None:
    """Answer the `missing` shards on several devices at once, every device an equal part of them."""
    context = multiprocessing.get_context("spawn")
    # A dataset that wasn't read yet: pages and questions are read faster from disk than from another process.
    dataset = all_shards.scoring.dataset
    unread = replace(all_shards.scoring, dataset=Dataset(dataset.folder, dataset.split))
    counts = [context.Value("q", 0) for _ in devices]
    processes = [
        context.Process(
            target=_answer_part,
            args=(replace(all_shards, scoring=unread), missing[place :: len(devices)], device, count),
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
    all_shards: _Shards, numbers: Sequence[int], device: str, count: "Synchronized[int]"
) -> None:
    def on_answered(done: int) -> None:
        count.value = done

    try:
        _answer(all_shards, numbers, device, on_answered)
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
