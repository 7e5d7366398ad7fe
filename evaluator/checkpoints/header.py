"""The header of a safetensors file, parsed as untrusted data under hard caps.

The format is described at https://huggingface.co/docs/safetensors: eight bytes with the header's length
(little-endian), a JSON header with a dtype, a shape and two offsets for each tensor, then the tensors end to end.
"""

import math
from dataclasses import dataclass
from io import SEEK_END, FileIO
from pathlib import Path
from typing import TypeGuard

from evaluator.docvqa.architecture import ALIASES, SHARED_EMBEDDING
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.untrusted_json import UntrustedJSONError, parse

# The format allows 100 MB; a thousand tensors take a tenth of a megabyte.
MAX_HEADER_BYTES = 4 * 1024**2
MAX_TENSORS = 20_000
MAX_NAME_LENGTH = 256
MAX_RANK = 8
MAX_DIMENSION = 2**40

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
ANOTHER_FORMAT = "another format"


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
        return parse_header(file)


def untied(header: Header) -> dict[str, Tensor]:
    """Return the tensors without the copies of the shared embedding that some writers save beside it."""
    ties = ALIASES if SHARED_EMBEDDING in header.tensors else frozenset()
    return {name: tensor for name, tensor in header.tensors.items() if name not in ties}


def parse_header(file: FileIO) -> Header:
    """Parse the header of an open file; see `read_header`."""
    size = file.seek(0, SEEK_END)
    file.seek(0)
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    if len(start) < 9 or start[8:] != b"{" or length > size - 8:
        file.seek(0)
        found = _recognize(file.read(64))
        if found == ANOTHER_FORMAT and start[8:] == b"{" and length <= MAX_HEADER_BYTES:
            raise _incomplete(ErrorCode.CHECKPOINT_FORMAT, "start of file", 8 + length, size)
        raise ProblemError.of(ErrorCode.CHECKPOINT_FORMAT, "start of file", "safetensors", found)
    if length > MAX_HEADER_BYTES:
        raise _bad_header(f"at most {MAX_HEADER_BYTES} bytes", f"{length} bytes")
    file.seek(8)
    try:
        entries = parse(file.read(length))
    except UntrustedJSONError as error:
        raise _bad_header("JSON", error) from error
    if not isinstance(entries, dict):
        raise _bad_header("a JSON object", type(entries).__name__)
    _check_metadata(entries.pop("__metadata__", {}))
    if len(entries) > MAX_TENSORS:
        raise _bad_header(f"at most {MAX_TENSORS} tensors", len(entries))
    tensors = sorted(
        ((name, _read_entry(name, entry)) for name, entry in entries.items()),
        key=lambda item: (item[1].begin, item[1].end),
    )
    _check_layout(tensors, 8 + length, size)
    return Header(dict(tensors), 8 + length)


def _recognize(start: bytes) -> str:
    if not start:
        return "an empty file"
    return next((name for magic, name in OTHER_FORMATS.items() if start.startswith(magic)), ANOTHER_FORMAT)


def _check_metadata(metadata: object) -> None:
    if metadata is None:  # as the library takes it for none
        return
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _bad_header("strings", metadata, "__metadata__")


def _read_entry(name: str, entry: object) -> Tensor:
    where = place_of(name)
    if len(name) > MAX_NAME_LENGTH:
        expected = f"a name of at most {MAX_NAME_LENGTH} characters"
        raise _bad_header(expected, f"{len(name)} characters", where)
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        found = ", ".join(map(str, entry)) if isinstance(entry, dict) else type(entry).__name__
        raise _bad_header("dtype, shape and data_offsets", found, where)
    dtype, shape = _read_dtype(entry["dtype"], where), _read_shape(entry["shape"], where)
    begin, end = _read_offsets(entry["data_offsets"], where)
    tensor = Tensor(dtype, shape, begin, end)
    if tensor.end - tensor.begin != tensor.numel * ITEM_BYTES[dtype]:
        expected = f"{tensor.numel * ITEM_BYTES[dtype]} bytes for {describe(tensor)}"
        raise _bad_offsets(expected, f"{tensor.end - tensor.begin} bytes", where)
    return tensor


def _read_dtype(dtype: object, where: str) -> str:
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise ProblemError.of(ErrorCode.CHECKPOINT_DTYPE, where, ", ".join(ITEM_BYTES), dtype)
    return dtype


def _read_shape(shape: object, where: str) -> tuple[int, ...]:
    if not _is_counts(shape) or len(shape) > MAX_RANK or any(extent > MAX_DIMENSION for extent in shape):
        raise _bad_header(f"a shape of at most {MAX_RANK} whole numbers up to {MAX_DIMENSION}", shape, where)
    return tuple(shape)


def _read_offsets(offsets: object, where: str) -> tuple[int, int]:
    if not _is_counts(offsets) or len(offsets) != 2:
        raise _bad_offsets("two whole numbers from 0", offsets, where)
    begin, end = offsets
    return begin, end


def _is_counts(value: object) -> TypeGuard[list[int]]:
    """Return whether `value` is a list of whole numbers from 0; JSON's true and 1.0 are none."""
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _check_layout(tensors: list[tuple[str, Tensor]], data_start: int, size: int) -> None:
    """Reject overlaps, holes and a file that ends early or late; `tensors` are in the order of their bytes."""
    data_bytes = size - data_start
    position = 0
    for name, tensor in tensors:
        if tensor.begin != position:
            start = "data_offsets that start at byte"
            raise _bad_offsets(f"{start} {position}", f"{start} {tensor.begin}", place_of(name))
        position = tensor.end
    if position > data_bytes:
        raise _incomplete(ErrorCode.CHECKPOINT_OFFSETS, "end of file", data_start + position, size)
    if position != data_bytes:
        raise _bad_offsets(f"{position} bytes of tensors", f"{data_bytes} bytes", "end of file")


def _bad_header(expected: str, found: object, where: str = "") -> ProblemError:
    return ProblemError.of(ErrorCode.CHECKPOINT_HEADER, where, expected, found)


def _bad_offsets(expected: str, found: object, where: str) -> ProblemError:
    return ProblemError.of(ErrorCode.CHECKPOINT_OFFSETS, where, expected, found)


def _incomplete(code: ErrorCode, where: str, expected_bytes: int, found_bytes: int) -> ProblemError:
    return ProblemError.of(
        code,
        where,
        f"at least {expected_bytes} bytes, by the header",
        f"{found_bytes} bytes",
        message="The safetensors file is incomplete.",
        next_step="Copy or download the file again, or save the checkpoint again.",
    )


def place_of(name: str) -> str:
    """Return how an error names a tensor's place in the file."""
    return f"tensor {name}"


def describe(tensor: Tensor) -> str:
    """Return a tensor's dtype and shape as errors show them."""
    return f"{tensor.dtype} {list(tensor.shape)}"
