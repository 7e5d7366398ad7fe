"""Checkpoints: safetensors files, read as data and held against a reference architecture.

Nothing in a checkpoint is executed or trusted. The header is parsed here, under hard caps, and the tensors are
read once, in chunks: memory does not grow with the file. The format is described at
https://huggingface.co/docs/safetensors: eight bytes with the header's length (little-endian), a JSON header with
a dtype, a shape and two offsets for each tensor, then the tensors end to end.
"""

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

import numpy as np

from evaluator.contracts import ValidationResult
from evaluator.errors import ErrorCode, Problem, ProblemError, refuse
from evaluator.untrusted_json import UntrustedJSONError, parse

MAX_HEADER_BYTES = 4 * 1024**2  # the format allows 100 MB; a thousand tensors take a tenth of one
MAX_TENSORS = 20_000
MAX_NAME_LENGTH = 256
MAX_RANK = 8
MAX_DIMENSION = 2**40
MAX_PROBLEMS = 20
CHUNK_BYTES = 8 * 1024**2  # a multiple of every item size

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
# A floating-point number is NaN or infinite where all bits of its exponent are set.
EXPONENT_BITS = {
    "F64": ("<u8", 0x7FF0_0000_0000_0000),
    "F32": ("<u4", 0x7F80_0000),
    "F16": ("<u2", 0x7C00),
    "BF16": ("<u2", 0x7F80),
}
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


def read_header(path: Path) -> Header:
    """Parse and check a header without reading any tensor.

    Raises:
        ProblemError: ``E_CHECKPOINT_FORMAT``, ``_HEADER``, ``_DTYPE`` or ``_OFFSETS``.
    """
    with path.open("rb") as file:
        return _read_header(file, path.stat().st_size)


def inspect_checkpoint(
    path: Path,
    reference: Path,
    *,
    sha256: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> ValidationResult:
    """Hold a checkpoint against the reference architecture, reading it once.

    Args:
        path: The checkpoint.
        reference: A safetensors file whose tensors have the names, shapes and dtypes that are asked for.
        sha256: The hash that was announced with the file.
        on_progress: Called with the bytes read so far and in all.

    Returns:
        Number of tensors and parameters, aliases of the shared embedding not counted, and the file's SHA-256.

    Raises:
        ProblemError: With everything that is wrong, the first `MAX_PROBLEMS` of it.
        ValueError: The reference is unusable; that is not the participant's fault.
    """
    try:
        expected = read_header(reference).tensors
    except ProblemError as error:
        raise ValueError(f"the reference {reference} is no checkpoint: {error}") from error
    size = path.stat().st_size
    with path.open("rb") as file:
        header = _read_header(file, size)
        aliases = (ALIASES - expected.keys()) & header.tensors.keys()
        contents = _read_contents(
            file,
            header,
            size,
            hash_each=aliases | {SHARED_EMBEDDING} if aliases else frozenset(),
            on_progress=on_progress,
        )
    own = {name: tensor for name, tensor in header.tensors.items() if name not in aliases}
    problems = [
        *_hash_problems(sha256, contents.sha256),
        *architecture_problems(own, expected),
        *_alias_problems(header, aliases, contents.tensor_sha256),
        *contents.problems,
    ]
    if problems:
        raise ProblemError(*problems[:MAX_PROBLEMS])
    return ValidationResult(
        tensors=len(own),
        parameters=sum(tensor.numel for tensor in own.values()),
        sha256=contents.sha256,
        changed=[],
    )


def sha256_of(path: Path) -> str:
    """A file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_header(file: BufferedReader, size: int) -> Header:
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    if len(start) < 9 or start[8:] != b"{" or length > size - 8:
        file.seek(0)
        raise refuse(ErrorCode.CHECKPOINT_FORMAT, expected="safetensors", found=_recognise(file.read(64)))
    if length > MAX_HEADER_BYTES:
        raise refuse(
            ErrorCode.CHECKPOINT_HEADER, expected=f"at most {MAX_HEADER_BYTES} bytes", found=f"{length} bytes"
        )
    file.seek(8)
    try:
        entries = parse(file.read(length))
    except UntrustedJSONError as error:
        raise refuse(ErrorCode.CHECKPOINT_HEADER, expected="JSON", found=error) from error
    if not isinstance(entries, dict):
        raise refuse(ErrorCode.CHECKPOINT_HEADER, expected="a JSON object", found=type(entries).__name__)
    _check_metadata(entries.pop("__metadata__", {}))
    if len(entries) > MAX_TENSORS:
        raise refuse(
            ErrorCode.CHECKPOINT_HEADER, expected=f"at most {MAX_TENSORS} tensors", found=len(entries)
        )
    tensors = sorted(
        ((name, _read_entry(name, entry)) for name, entry in entries.items()),
        key=lambda item: (item[1].begin, item[1].end),
    )
    _check_layout(tensors, size - 8 - length)
    return Header(dict(tensors), 8 + length)


def _recognise(start: bytes) -> str:
    if not start:
        return "an empty file"
    return next((name for magic, name in OTHER_FORMATS.items() if start.startswith(magic)), "another format")


def _check_metadata(metadata: object) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise refuse(ErrorCode.CHECKPOINT_HEADER, where="__metadata__", expected="strings", found=metadata)


def _read_entry(name: str, entry: object) -> Tensor:
    where = _place(name)
    if len(name) > MAX_NAME_LENGTH:
        raise refuse(
            ErrorCode.CHECKPOINT_HEADER,
            where=where,
            expected=f"a name of at most {MAX_NAME_LENGTH} characters",
            found=f"{len(name)} characters",
        )
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        found = ", ".join(map(str, entry)) if isinstance(entry, dict) else type(entry).__name__
        raise refuse(
            ErrorCode.CHECKPOINT_HEADER, where=where, expected="dtype, shape and data_offsets", found=found
        )
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise refuse(ErrorCode.CHECKPOINT_DTYPE, where=where, expected=", ".join(ITEM_BYTES), found=dtype)
    if not _is_counts(shape) or len(shape) > MAX_RANK or any(extent > MAX_DIMENSION for extent in shape):
        raise refuse(
            ErrorCode.CHECKPOINT_HEADER,
            where=where,
            expected=f"a shape of at most {MAX_RANK} whole numbers up to {MAX_DIMENSION}",
            found=shape,
        )
    if not _is_counts(offsets) or len(offsets) != 2:
        raise refuse(
            ErrorCode.CHECKPOINT_OFFSETS, where=where, expected="two whole numbers from 0", found=offsets
        )
    tensor = Tensor(dtype, tuple(shape), *offsets)
    if tensor.end - tensor.begin != tensor.numel * ITEM_BYTES[dtype]:
        raise refuse(
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
    """Refuse overlaps, holes and a file that ends early or late; `tensors` are in the order of their bytes."""
    position = 0
    for name, tensor in tensors:
        if tensor.begin != position:
            raise refuse(
                ErrorCode.CHECKPOINT_OFFSETS,
                where=_place(name),
                expected=f"to begin at byte {position}",
                found=f"byte {tensor.begin}",
            )
        position = tensor.end
    if position != data_bytes:
        raise refuse(
            ErrorCode.CHECKPOINT_OFFSETS,
            where="end of file",
            expected=f"{position} bytes of tensors",
            found=f"{data_bytes} bytes",
        )


@dataclass(frozen=True)
class _Contents:
    sha256: str
    tensor_sha256: dict[str, str]
    problems: list[Problem]


def _read_contents(
    file: BufferedReader,
    header: Header,
    size: int,
    *,
    hash_each: frozenset[str],
    on_progress: Callable[[int, int], None] | None,
) -> _Contents:
    """Read the whole file once: its hash, the hashes of the tensors in `hash_each`, and non-finite numbers."""
    file.seek(0)
    digest = hashlib.sha256(file.read(header.data_start))
    tensor_sha256: dict[str, str] = {}
    problems: list[Problem] = []
    done = header.data_start
    buffer = memoryview(bytearray(CHUNK_BYTES))
    for name, tensor in header.tensors.items():
        tensor_digest = hashlib.sha256()
        finite = True
        for chunk in _chunks(file, tensor.end - tensor.begin, buffer):
            digest.update(chunk)
            if name in hash_each:
                tensor_digest.update(chunk)
            if finite and (index := _first_not_finite(chunk, tensor.dtype)) is not None:
                finite = False
                element = (done - header.data_start - tensor.begin) // ITEM_BYTES[tensor.dtype] + index
                problems += refuse(
                    ErrorCode.CHECKPOINT_NOT_FINITE,
                    where=_place(name),
                    expected="finite numbers",
                    found=f"NaN or infinity at element {element}",
                ).problems
            done += len(chunk)
            if on_progress is not None:
                on_progress(done, size)
        if name in hash_each:
            tensor_sha256[name] = tensor_digest.hexdigest()
    return _Contents(digest.hexdigest(), tensor_sha256, problems)


def _chunks(file: BufferedReader, length: int, buffer: memoryview) -> Iterator[memoryview]:
    while length:
        chunk = buffer[: min(length, len(buffer))]
        if file.readinto(chunk) != len(chunk):
            raise refuse(
                ErrorCode.ARTIFACT_SIZE, expected="the whole file", found="it got shorter while it was read"
            )
        yield chunk
        length -= len(chunk)


def _first_not_finite(chunk: memoryview, dtype: str) -> int | None:
    if dtype not in EXPONENT_BITS:
        return None
    bits, mask = EXPONENT_BITS[dtype]
    numbers = np.frombuffer(chunk, bits)
    exponent = numbers.dtype.type(mask)
    not_finite = (numbers & exponent) == exponent
    first = int(not_finite.argmax())
    return first if not_finite[first] else None


def _hash_problems(announced: str | None, actual: str) -> Iterator[Problem]:
    if announced is not None and announced != actual:
        yield refuse(ErrorCode.ARTIFACT_HASH, expected=announced, found=actual).problem


def architecture_problems(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> Iterator[Problem]:
    """What keeps `tensors` from having exactly the names, dtypes and shapes of `expected`."""
    for name, wanted in expected.items():
        tensor = tensors.get(name)
        if tensor is None:
            yield refuse(
                ErrorCode.CHECKPOINT_MISSING_TENSOR,
                where=_place(name),
                expected=_describe(wanted),
                found="nothing",
            ).problem
            continue
        if tensor.dtype != wanted.dtype:
            yield refuse(
                ErrorCode.CHECKPOINT_DTYPE, where=_place(name), expected=wanted.dtype, found=tensor.dtype
            ).problem
        if tensor.shape != wanted.shape:
            yield refuse(
                ErrorCode.CHECKPOINT_SHAPE,
                where=_place(name),
                expected=list(wanted.shape),
                found=list(tensor.shape),
            ).problem
    for name, tensor in tensors.items():
        if name not in expected:
            yield refuse(
                ErrorCode.CHECKPOINT_EXTRA_TENSOR,
                where=_place(name),
                expected="nothing",
                found=_describe(tensor),
            ).problem


def _alias_problems(header: Header, aliases: frozenset[str], sha256: dict[str, str]) -> Iterator[Problem]:
    """Refuse an alias that is not the shared embedding, byte for byte."""
    shared = header.tensors.get(SHARED_EMBEDDING)
    for name in sorted(aliases):
        alias = header.tensors[name]
        same_kind = shared is not None and (alias.dtype, alias.shape) == (shared.dtype, shared.shape)
        if not same_kind or sha256[name] != sha256[SHARED_EMBEDDING]:
            yield refuse(
                ErrorCode.CHECKPOINT_EXTRA_TENSOR,
                where=_place(name),
                expected=f"no such tensor, or an exact copy of {SHARED_EMBEDDING}",
                found=f"{_describe(alias)} with other values" if same_kind else _describe(alias),
            ).problem


def _place(name: str) -> str:
    return f"tensor {name}"


def _describe(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"
