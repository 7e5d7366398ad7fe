"""Conversion of a checkpoint as frameworks save it into a float32 `model.safetensors`.

A pickle is a program, and this process never runs one. Another process reads the file, with tensors as the only allowed
content and without network, and writes safetensors; this one checks what it wrote as it would a stranger's file.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evaluator.checkpoints.header import read_header, untied
from evaluator.checkpoints.inspection import architecture_problems, require_finite
from evaluator.checkpoints.sharding import INDEX, check_same, join, read_index, shard_names
from evaluator.errors import ErrorCode, Problem, ProblemError, shorten
from evaluator.pipeline import WEIGHTS
from starter_kit.weights.base_weights import read_base
from starter_kit.weights.isolation import Ended, NotIsolatedError, run_with_network, run_without_network

PICKLED = "pytorch_model.bin"
PICKLED_INDEX = "pytorch_model.bin.index.json"
READER = "starter_kit.weights.state_dicts"
MAX_OUTCOME_BYTES = 1024**2
MAX_PROBLEMS = 20
MAX_NOTES = 20

Report = Callable[[str], None]


class Job(BaseModel):
    """The message to the reading process.

    Attributes:
        weight_map: The shard of each tensor, if `files` are shards.
        weights: The safetensors file to write.
        outcome: The file to write a `ConversionReport` into.
    """

    model_config = ConfigDict(frozen=True)

    files: list[Path]
    weight_map: dict[str, str] | None
    weights: Path
    outcome: Path


class ConversionReport(BaseModel):
    """The reading process's answer: there are weights if there are no problems."""

    model_config = ConfigDict(frozen=True)

    notes: list[str] = Field(max_length=MAX_NOTES)
    problems: list[Problem] = Field(max_length=MAX_PROBLEMS)


@dataclass(frozen=True)
class Source:
    """The checkpoint to convert.

    Attributes:
        files: A checkpoint, or its shards.
        index: The index of sharded safetensors, which are joined first.
        weight_map: The shard of each tensor, where `files` are pickled shards.
    """

    files: list[Path]
    index: Path | None = None
    weight_map: dict[str, str] | None = None

    @property
    def pickled(self) -> bool:
        """Return whether a file is not safetensors, and so has to be unpickled."""
        return not all(is_safetensors(file) for file in self.files)


def convert(source: Path, out: Path, *, base: Path | None, allow_network: bool, report: Report) -> Path:
    """Write the float32 safetensors file of the checkpoint `source`; return its path.

    Args:
        source: A file, or a folder as published, which may itself be named like a file; or the folder of a PEFT
            adapter, which is added to the base weights.
        out: The file to write where it ends in `.safetensors`, else the folder to write `model.safetensors` into.
        base: Folder of base weights, whose names and shapes the result must have; an adapter needs them.
        allow_network: Read pickles even if the reading process has network access.
        report: Called with each line that the user should see.

    Raises:
        ProblemError: Nothing was written.
    """
    target = _target(out)
    expected = untied(read_base(base)) if base else None
    if any(source.glob("adapter_config.json")):
        # Imported here: it needs torch in this process, which takes seconds to load.
        from starter_kit.weights.merging import merge

        with _written(target):
            merge(source, target, base=base, report=report)
        return target
    found = find(source)
    for file in found.files:
        report(f"reading {file}")
    existing = next(folder for folder in target.absolute().parents if folder.is_dir())
    with (
        _written(target),
        tempfile.TemporaryDirectory(dir=existing, prefix=".pfl-convert-") as folder,
    ):
        weights = _read_apart(found, Path(folder), allow_network=allow_network, report=report)
        header = read_header(weights)
        if expected is not None and (problems := [*architecture_problems(header.tensors, expected)]):
            raise ProblemError(*problems[:MAX_PROBLEMS])
        require_finite(weights)
        target.parent.mkdir(parents=True, exist_ok=True)
        weights.replace(target)
    parameters = sum(tensor.numel for tensor in header.tensors.values())
    report(f"{target}: {len(header.tensors)} tensors, {parameters:,} parameters")
    return target


@contextmanager
def _written(target: Path) -> Iterator[None]:
    """Report what keeps the block from writing `target`."""
    try:
        yield
    except OSError as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The converted checkpoint can't be written.",
            where=str(target),
            expected="a folder to write into, with room for twice the checkpoint",
            found=error.strerror,
            next_step="Make room, or name another folder.",
        ) from error


def find(source: Path) -> Source:
    """Return the checkpoint that a file or a folder holds.

    Raises:
        ProblemError: (`E_ARTIFACT_MISSING`) There is none; (`E_RUN_FOLDER`) There are two.
    """
    if source.is_file():
        return _sharded(source) if source.name.endswith(".index.json") else Source([source])
    if (source / WEIGHTS).is_file() and (source / INDEX).is_file():
        check_same(source / WEIGHTS, source / INDEX)
    for name in (WEIGHTS, INDEX, PICKLED, PICKLED_INDEX):
        if (source / name).is_file():
            return find(source / name)
    raise ProblemError.of(
        ErrorCode.ARTIFACT_MISSING,
        where=str(source),
        expected=f"a checkpoint, or a folder with {WEIGHTS}, {PICKLED} or the index of either",
        found="another folder" if source.is_dir() else "nothing",
        next_step="Name the checkpoint, or the folder that it was saved into.",
    )


def is_safetensors(path: Path) -> bool:
    """Return whether a file starts as safetensors do: a header that fits into the file, and its first bracket.

    Raises `ProblemError` (`E_ARTIFACT_MISSING`) if the file can't be read.
    """
    try:
        with path.open("rb") as file:
            start = file.read(9)
    except OSError as error:
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            message="The file can't be read.",
            where=str(path),
            expected="a checkpoint",
            found=error.strerror,
            next_step="Check that you may read the file, and that its disk is healthy.",
        ) from error
    return start[8:] == b"{" and int.from_bytes(start[:8], "little") <= path.stat().st_size - 8


def _sharded(index: Path) -> Source:
    if index.name == PICKLED_INDEX:
        weight_map = read_index(index, suffix=".bin")
        return Source([index.parent / name for name in shard_names(weight_map)], weight_map=weight_map)
    return Source([index.parent / name for name in shard_names(read_index(index))], index=index)


def _target(out: Path) -> Path:
    target = out if out.suffix == ".safetensors" else out / WEIGHTS
    there = next(path for path in (target.absolute(), *target.absolute().parents) if path.exists())
    if there == target.absolute() or not there.is_dir():
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="A checkpoint is never written over what is there.",
            where=str(there),
            expected="a new checkpoint to write",
            found="an existing file",
        )
    return target


def _read_apart(source: Source, folder: Path, *, allow_network: bool, report: Report) -> Path:
    """The checkpoint's tensors, read by another process, as a safetensors file in `folder`."""
    files = source.files
    if source.index:
        files = [folder / "joined.safetensors"]
        join(source.index, files[0])
    job = Job(
        files=[file.absolute() for file in files],
        weight_map=source.weight_map,
        weights=folder / WEIGHTS,
        outcome=folder / "outcome.json",
    )
    text = job.model_dump_json()
    if source.pickled and not allow_network:
        try:
            ended = run_without_network(READER, text)
        except NotIsolatedError as error:
            raise ProblemError.of(
                ErrorCode.CHECKPOINT_NETWORK, where=source.files[0].name, found=error
            ) from error
        report("the process that read it had no network: its attempt to connect failed, as it must")
    else:
        ended = run_with_network(READER, text)
    outcome = _outcome(job, ended, source.files)
    if outcome.problems:
        raise ProblemError(*outcome.problems)
    for note in outcome.notes:
        report(shorten(note))
    return job.weights


def _outcome(job: Job, ended: Ended, files: Iterable[Path]) -> ConversionReport:
    where = ", ".join(file.name for file in files)
    if ended.status != 0:
        by = f"signal {-ended.status}" if ended.status < 0 else f"status {ended.status}"
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_FORMAT,
            message="The process that read the file failed.",
            where=where,
            expected="a checkpoint",
            found=f"{by} {ended.last_line}",
            next_step="Check that the file is whole and that there is memory for it.",
        )
    try:
        with job.outcome.open("rb") as file:
            return ConversionReport.model_validate_json(file.read(MAX_OUTCOME_BYTES))
    except (OSError, ValidationError) as error:
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_FORMAT, where=where, expected="a checkpoint", found="no answer"
        ) from error
