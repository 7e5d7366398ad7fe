"""Checkpoints: safetensors files, read as data and compared with a reference architecture and its base weights.

Nothing in a checkpoint is executed or trusted. The header is parsed here, under hard caps, and the tensors are
read once, in chunks: memory does not grow with the file. The format is described at
https://huggingface.co/docs/safetensors: eight bytes with the header's length (little-endian), a JSON header with
a dtype, a shape and two offsets for each tensor, then the tensors end to end.

A checkpoint is one file, and its SHA-256 is that of the whole file, on a participant's disk, in the record and here.
Shards are joined on the participant's side, before the upload; the evaluator reads no index and no second file.
"""

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from io import SEEK_END, FileIO
from pathlib import Path

from evaluator.checkpoint_contents import Original, TensorBytes, read_contents
from evaluator.contracts import ValidationResult
from evaluator.errors import ErrorCode, Problem, ProblemError, shorten
from evaluator.untrusted_json import UntrustedJSONError, parse

MAX_HEADER_BYTES = 4 * 1024**2  # the format allows 100 MB; a thousand tensors take a tenth of one
MAX_TENSORS = 20_000
MAX_NAME_LENGTH = 256
MAX_RANK = 8
MAX_DIMENSION = 2**40
MAX_PROBLEMS = 20

SHARED_EMBEDDING = "language_backbone.shared.weight"
# T5 ties these to the shared embedding; some writers save them, and they may be there as exact copies.
ALIASES = frozenset(
    f"language_backbone.{name}.weight" for name in ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head")
)

ITEM_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1,
    "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip
OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive, as torch.save writes",
    b"\x80\x02": "a Python pickle",
    b"\x80\x03": "a Python pickle",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
    b"\x1f\x8b": "a gzip archive",
    b"\x89HDF": "an HDF5 file",
    b"GGUF": "a GGUF file",
    b"version https://git-lfs": "a Git LFS pointer instead of the file itself",
}


@dataclass(frozen=True)
class Tensor:
    """A tensor's entry in the header; `begin` and `end` are byte offsets from the first tensor."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Header:
    """A valid header: `tensors` by name, in the order of their bytes, the first of which is at `data_start`."""

    tensors: dict[str, Tensor]
    data_start: int

    @property
    def data_bytes(self) -> int:
        return sum(tensor.end - tensor.begin for tensor in self.tensors.values())


def read_header(path: Path) -> Header:
    """Parse and check a header without reading any tensor.

    Raises:
        ProblemError: ``E_CHECKPOINT_FORMAT``, ``_HEADER``, ``_DTYPE`` or ``_OFFSETS``.
    """
    with path.open("rb", buffering=0) as file:
        return _read_header(file)


def inspect_checkpoint(
    path: Path,
    reference: Path,
    *,
    trainable: Sequence[str] = (),
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> ValidationResult:
    """Hold a checkpoint against the base weights, reading each once.

    Args:
        path: The checkpoint.
        reference: The base weights, a safetensors file: their names, shapes and dtypes are asked for.
        trainable: Patterns, as a shell's, of the names of tensors that may differ from the base weights; where there
            is none, all may.
        on_progress: Called with the bytes read so far and in all.

    Returns:
        Number of tensors and parameters, the names of those that differ bit for bit from the base weights, copies of
        the shared embedding never counted or named, and the file's SHA-256.

    Raises:
        ProblemError: With everything that is wrong, the first `MAX_PROBLEMS` of it.
        ValueError: The reference is unusable; that is not the participant's fault.
    """
    with ExitStack() as files:

        def opened(file: Path) -> FileIO:
            return files.enter_context(file.open("rb", buffering=0))

        base, checkpoint = opened(reference), opened(path)
        base_header = _reference_header(base, reference)
        header = _read_header(checkpoint)
        expected = untied(base_header)
        originals = _originals(header, expected, base, base_header.data_start)
        own = {
            name: tensor for name, tensor in header.tensors.items() if name not in ALIASES or name in expected
        }
        if aliases := header.tensors.keys() - own.keys():
            # Opened once more: while the pass goes on in one place, the embedding is read in another.
            originals |= _originals_of_aliases(header, aliases, opened(path))
        size = header.data_start + header.data_bytes
        contents = read_contents(
            checkpoint,
            header.data_start,
            [
                TensorBytes(name, tensor.dtype, tensor.end - tensor.begin, originals.get(name))
                for name, tensor in header.tensors.items()
            ],
            on_progress=lambda done: on_progress(done, size),
        )
    unlike = [name for name in aliases if name not in originals or name in contents.differing]
    changed = [name for name in expected if name in contents.differing]
    problems = [
        *architecture_problems(own, expected),
        *_alias_problems(header, sorted(unlike)),
        *_not_finite_problems(contents.not_finite),
        *_frozen_problems(changed, trainable),
    ]
    if problems:
        raise ProblemError(*problems[:MAX_PROBLEMS])
    return ValidationResult(
        tensors=len(own),
        parameters=sum(tensor.numel for tensor in own.values()),
        sha256=contents.sha256,
        changed=changed,
    )


def untied(header: Header) -> dict[str, Tensor]:
    """The tensors without the copies of the shared embedding that some writers save beside it."""
    ties = ALIASES if SHARED_EMBEDDING in header.tensors else frozenset()
    return {name: tensor for name, tensor in header.tensors.items() if name not in ties}


def sha256_of(path: Path) -> str:
    """A file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _reference_header(file: FileIO, path: Path) -> Header:
    try:
        return _read_header(file)
    except ProblemError as error:
        raise ValueError(f"the reference {path} is no checkpoint: {error}") from error


def _read_header(file: FileIO) -> Header:
    size = file.seek(0, SEEK_END)
    file.seek(0)
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    if len(start) < 9 or start[8:] != b"{" or length > size - 8:
        file.seek(0)
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_FORMAT, expected="safetensors", found=_recognize(file.read(64))
        )
    if length > MAX_HEADER_BYTES:
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_HEADER, expected=f"at most {MAX_HEADER_BYTES} bytes", found=f"{length} bytes"
        )
    file.seek(8)
    try:
        entries = parse(file.read(length))
    except UntrustedJSONError as error:
        raise ProblemError.of(ErrorCode.CHECKPOINT_HEADER, expected="JSON", found=error) from error
    if not isinstance(entries, dict):
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_HEADER, expected="a JSON object", found=type(entries).__name__
        )
    _check_metadata(entries.pop("__metadata__", {}))
    if len(entries) > MAX_TENSORS:
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_HEADER, expected=f"at most {MAX_TENSORS} tensors", found=len(entries)
        )
    tensors = sorted(
        ((name, _read_entry(name, entry)) for name, entry in entries.items()),
        key=lambda item: (item[1].begin, item[1].end),
    )
    _check_layout(tensors, size - 8 - length)
    return Header(dict(tensors), 8 + length)


def _recognize(start: bytes) -> str:
    if not start:
        return "an empty file"
    return next((name for magic, name in OTHER_FORMATS.items() if start.startswith(magic)), "another format")


def _check_metadata(metadata: object) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_HEADER, where="__metadata__", expected="strings", found=metadata
        )


def _read_entry(name: str, entry: object) -> Tensor:
    where = _place(name)
    if len(name) > MAX_NAME_LENGTH:
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_HEADER,
            where=where,
            expected=f"a name of at most {MAX_NAME_LENGTH} characters",
            found=f"{len(name)} characters",
        )
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        found = ", ".join(map(str, entry)) if isinstance(entry, dict) else type(entry).__name__
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_HEADER, where=where, expected="dtype, shape and data_offsets", found=found
        )
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_DTYPE, where=where, expected=", ".join(ITEM_BYTES), found=dtype
        )
    if not _is_counts(shape) or len(shape) > MAX_RANK or any(extent > MAX_DIMENSION for extent in shape):
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_HEADER,
            where=where,
            expected=f"a shape of at most {MAX_RANK} whole numbers up to {MAX_DIMENSION}",
            found=shape,
        )
    if not _is_counts(offsets) or len(offsets) != 2:
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_OFFSETS, where=where, expected="two whole numbers from 0", found=offsets
        )
    tensor = Tensor(dtype, tuple(shape), *offsets)
    if tensor.end - tensor.begin != tensor.numel * ITEM_BYTES[dtype]:
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_OFFSETS,
            where=where,
            expected=f"{tensor.numel * ITEM_BYTES[dtype]} bytes for {dtype} {list(shape)}",
            found=f"{tensor.end - tensor.begin} bytes",
        )
    return tensor


def _is_counts(value: object) -> bool:
    """Whether `value` is a list of whole numbers from 0; JSON's true and 1.0 are none."""
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _check_layout(tensors: list[tuple[str, Tensor]], data_bytes: int) -> None:
    """Reject overlaps, holes and a file that ends early or late; `tensors` are in the order of their bytes."""
    position = 0
    for name, tensor in tensors:
        if tensor.begin != position:
            raise ProblemError.of(
                ErrorCode.CHECKPOINT_OFFSETS,
                where=_place(name),
                expected=f"to begin at byte {position}",
                found=f"byte {tensor.begin}",
            )
        position = tensor.end
    if position != data_bytes:
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_OFFSETS,
            where="end of file",
            expected=f"{position} bytes of tensors",
            found=f"{data_bytes} bytes",
        )


def _originals(
    header: Header, expected: Mapping[str, Tensor], base: FileIO, data_start: int
) -> dict[str, Original]:
    """The base weights' tensors of the same name, dtype and shape."""
    return {
        name: Original(base, data_start + wanted.begin)
        for name, wanted in expected.items()
        if (tensor := header.tensors.get(name)) and _is_alike(tensor, wanted)
    }


def _originals_of_aliases(
    header: Header, aliases: Collection[str], checkpoint: FileIO
) -> dict[str, Original]:
    """For each alias that could be a copy of the shared embedding, that embedding."""
    shared = header.tensors.get(SHARED_EMBEDDING)
    if shared is None:
        return {}
    original = Original(checkpoint, header.data_start + shared.begin)
    return {name: original for name in aliases if _is_alike(header.tensors[name], shared)}


def _is_alike(tensor: Tensor, other: Tensor) -> bool:
    return (tensor.dtype, tensor.shape) == (other.dtype, other.shape)


def architecture_problems(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> Iterator[Problem]:
    """What keeps `tensors` from having exactly the names, dtypes and shapes of `expected`."""
    for name, wanted in expected.items():
        tensor = tensors.get(name)
        if tensor is None:
            yield Problem.of(
                ErrorCode.CHECKPOINT_MISSING_TENSOR,
                where=_place(name),
                expected=_describe(wanted),
                found="nothing",
            )
            continue
        if tensor.dtype != wanted.dtype:
            yield Problem.of(
                ErrorCode.CHECKPOINT_DTYPE, where=_place(name), expected=wanted.dtype, found=tensor.dtype
            )
        if tensor.shape != wanted.shape:
            yield Problem.of(
                ErrorCode.CHECKPOINT_SHAPE,
                where=_place(name),
                expected=list(wanted.shape),
                found=list(tensor.shape),
            )
    for name, tensor in tensors.items():
        if name not in expected:
            yield Problem.of(
                ErrorCode.CHECKPOINT_EXTRA_TENSOR,
                where=_place(name),
                expected="nothing",
                found=_describe(tensor),
            )


def _alias_problems(header: Header, unlike: Sequence[str]) -> Iterator[Problem]:
    """Reject the aliases that are not the shared embedding, byte for byte."""
    shared = header.tensors.get(SHARED_EMBEDDING)
    for name in unlike:
        alias = header.tensors[name]
        is_alike = shared is not None and _is_alike(alias, shared)
        yield Problem.of(
            ErrorCode.CHECKPOINT_EXTRA_TENSOR,
            where=_place(name),
            expected=f"no such tensor, or an exact copy of {SHARED_EMBEDDING}",
            found=f"{_describe(alias)} with other values" if is_alike else _describe(alias),
        )


def _not_finite_problems(first: Mapping[str, int]) -> Iterator[Problem]:
    for name, element in first.items():
        yield Problem.of(
            ErrorCode.CHECKPOINT_NOT_FINITE,
            where=_place(name),
            expected="finite numbers",
            found=f"NaN or infinity at element {element}",
        )


def _frozen_problems(changed: Sequence[str], trainable: Sequence[str]) -> Iterator[Problem]:
    """Reject changes to tensors whose names match none of the patterns."""
    for name in changed:
        if trainable and not any(fnmatchcase(name, pattern) for pattern in trainable):
            yield Problem.of(
                ErrorCode.CHECKPOINT_FROZEN_TENSOR,
                where=_place(name),
                expected="the base weights, bit for bit",
                found="other values",
                next_step="Save it as it is in the base weights. In this track only tensors whose names match one of "
                f"these patterns may differ: {shorten(', '.join(trainable), 500)}.",
            )


def _place(name: str) -> str:
    return f"tensor {name}"


def _describe(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"
