"""One pass over a checkpoint's bytes: its hash, what isn't finite in it, and what differs from other files.

The hash decides how long the pass takes. It runs in a second thread, which Python's lock doesn't hold up, while this
one reads and looks at what it read: on two cores the pass takes no longer than the hash alone. Chunks are small
enough to stay in the processor's cache from being read to being hashed, and memory is a handful of them for a file of
any size. What a tensor is compared with is read in step with it: a map would count as memory, page by page.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from io import FileIO

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import ErrorCode, ProblemError

# A multiple of every item size.
CHUNK_BYTES = 1024**2
# Chunks in memory: one is inspected, the others are being hashed or wait for it.
CHUNKS = 4

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class FloatBits:
    """A floating-point format: a number is NaN or infinite where all bits of its exponent are set."""

    item_bytes: int
    exponent: int

    @property
    def sign(self) -> int:
        return 1 << (8 * self.item_bytes - 1)


FLOATS = {
    "F64": FloatBits(8, 0x7FF0_0000_0000_0000),
    "F32": FloatBits(4, 0x7F80_0000),
    "F16": FloatBits(2, 0x7C00),
    "BF16": FloatBits(2, 0x7F80),
}


@dataclass(frozen=True)
class Original:
    """What a tensor is compared with: the bytes from `begin` on, in a file that no other thread reads meanwhile."""

    file: FileIO
    begin: int


@dataclass(frozen=True)
class TensorBytes:
    """A tensor as the pass sees it; without an original it is compared with nothing."""

    name: str
    dtype: str
    length: int
    original: Original | None


@dataclass(frozen=True)
class Contents:
    """What a file holds.

    Attributes:
        sha256: Of the whole file, in hexadecimal.
        not_finite: For each tensor with NaN or infinities, the index of the first.
        differing: The tensors that aren't, bit for bit, what they were compared with.
    """

    sha256: str
    not_finite: dict[str, int]
    differing: set[str]


def read_contents(
    file: FileIO,
    start: int,
    tensors: Iterable[TensorBytes],
    *,
    on_progress: Callable[[int], None] = lambda _done: None,
) -> Contents:
    """Read a file once, from its first byte to the end of its last tensor.

    Args:
        file: Opened without a buffer.
        start: How many bytes come before the first tensor.
        tensors: All tensors, in the order of their bytes; they lie end to end.
        on_progress: Called with the bytes read so far.

    Raises:
        ProblemError: ``E_ARTIFACT_SIZE``: the file got shorter in the meantime.
        ValueError: One that it is compared with did.
    """
    look = _Look()
    with _HashedFile(file) as hashed:
        for _ in hashed.chunks(start):
            # The header was checked before; it is only hashed here.
            pass
        on_progress(start)
        done = start
        for tensor in tensors:
            offset = 0
            for chunk in hashed.chunks(tensor.length):
                look.at(chunk, tensor, offset)
                offset += chunk.size
                on_progress(done + offset)
            done += tensor.length
        return Contents(hashed.sha256(), look.not_finite, look.differing)


class _HashedFile:
    """Reads a file from its first byte, in chunks, each of which a second thread hashes.

    A chunk is valid until the next one is requested, and must not be changed.
    """

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sha256")
        self._free = [np.empty(CHUNK_BYTES, np.uint8) for _ in range(CHUNKS)]
        self._hashing: deque[tuple[Bytes, Future[None]]] = deque()

    def __enter__(self) -> "_HashedFile":
        self._file.seek(0)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)

    def chunks(self, length: int) -> Iterator[Bytes]:
        """Yield the next `length` bytes."""
        while length:
            if not self._free:
                self._await_hash()
            buffer = self._free.pop()
            chunk = buffer[: min(length, CHUNK_BYTES)]
            if not _fill(chunk, self._file):
                raise ProblemError.of(
                    ErrorCode.ARTIFACT_SIZE,
                    message="The file got shorter while it was read.",
                    expected="the whole file",
                )
            self._hashing.append((buffer, self._thread.submit(self._digest.update, chunk.data)))
            yield chunk
            length -= chunk.size

    def sha256(self) -> str:
        """Return the SHA-256 of everything that was read, in hexadecimal."""
        while self._hashing:
            self._await_hash()
        return self._digest.hexdigest()

    def _await_hash(self) -> None:
        buffer, hashed = self._hashing.popleft()
        hashed.result()
        self._free.append(buffer)


class _Look:
    """The findings in the chunks so far."""

    def __init__(self) -> None:
        self.not_finite: dict[str, int] = {}
        self.differing: set[str] = set()
        # Kept from chunk to chunk: fresh memory costs more than the comparison.
        self._other = np.empty(CHUNK_BYTES, np.uint8)
        self._unequal = np.empty(CHUNK_BYTES // 8, np.bool_)

    def at(self, chunk: Bytes, tensor: TensorBytes, offset: int) -> None:
        """Look at the `chunk` that begins `offset` bytes into the `tensor`."""
        bits = FLOATS.get(tensor.dtype)
        if (
            bits
            and tensor.name not in self.not_finite
            and (first := _first_not_finite(chunk, bits)) is not None
        ):
            self.not_finite[tensor.name] = offset // bits.item_bytes + first
        # One difference is enough; the rest of the original needn't be read.
        if (
            tensor.original
            and tensor.name not in self.differing
            and self._differs(chunk, tensor.original, offset)
        ):
            self.differing.add(tensor.name)

    def _differs(self, chunk: Bytes, original: Original, offset: int) -> bool:
        other = self._other[: chunk.size]
        original.file.seek(original.begin + offset)
        if not _fill(other, original.file):
            raise ValueError("a file got shorter while a checkpoint was compared with it")
        # Eight bytes at a time, and the few that are left over by themselves.
        whole = chunk.size // 8
        unequal = self._unequal[:whole]
        np.not_equal(chunk[: 8 * whole].view("u8"), other[: 8 * whole].view("u8"), out=unequal)
        return bool(unequal.any()) or chunk[8 * whole :].tobytes() != other[8 * whole :].tobytes()


def _fill(chunk: Bytes, file: FileIO) -> bool:
    """Read until `chunk` is full, and return whether the file had enough. One read may return less than requested."""
    have = 0
    while have < chunk.size:
        read = file.readinto(chunk[have:].data)
        if not read:
            return False
        have += read
    return True


def _first_not_finite(chunk: Bytes, bits: FloatBits) -> int | None:
    """Return the index of the first NaN or infinity; None where all numbers are finite.

    Read as integers with a sign, positive NaN and infinity are the numbers from the exponent's bits on; read without
    one, the negative ones are those from sign and exponent on. Two maxima show whether there is any, without a copy.
    """
    signed, unsigned = chunk.view(f"<i{bits.item_bytes}"), chunk.view(f"<u{bits.item_bytes}")
    if signed.max() < bits.exponent and unsigned.max() < bits.sign | bits.exponent:
        return None
    exponent = unsigned.dtype.type(bits.exponent)
    return int(((unsigned & exponent) == exponent).argmax())
