"""A file in a folder of its own, as far as its parts have arrived.

Guarantees: a part is listed only while the file holds exactly its bytes, whoever else sends the same part at the same
time, and wherever a process is killed or the power is cut.

A part that nobody has sent before is written where it belongs while it is being received and hashed, so that every byte
is written once. Whoever does so has claimed the part. Anybody else who sends it meanwhile, or again, has it verified in
a file beside, which is then copied to its place; this takes the claim away, so that no sender waits for another who may
be gone. Bytes are written under the file's lock, and by the holder of the claim only: without it they are hashed and
written no more.
"""

import errno
import fcntl
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from evaluator.errors import ErrorCode, ProblemError
from portal.uploads.parts import Part

# Stays in the processor's cache from being received to being written.
CHUNK_BYTES = 256 * 1024
PART_NAME = re.compile(r"(\d{5})-(\d+)-([0-9a-f]{64})")
# A file system, or a kernel, that can't copy within itself, or reserve room.
NOT_SUPPORTED = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}


@dataclass(frozen=True)
class UnfinishedFile:
    """The folder of one upload.

    Layout::

        file                        the file, as far as its parts have arrived
        <number>-<size>-<sha256>    empty: the file holds this part, verified
        <number>-claim              empty: somebody writes this part into the file, unless they were killed
        incoming-<random>           a part on its way that is verified before it is copied into the file

    Methods raise `FileNotFoundError` when the upload is completed or aborted.
    """

    folder: Path
    part_size_bytes: int
    file_mode: int

    @property
    def path(self) -> Path:
        """The file itself."""
        return self.folder / "file"

    def begin(self) -> None:
        """Make the empty file."""
        create(self.path, self.file_mode).close()

    def parts(self) -> list[Part]:
        """Return the stored parts by number."""
        return sorted(self._markers().values(), key=lambda part: part.number)

    def receive(self, part: Part, chunks: Iterable[bytes]) -> None:
        """Store one part; `chunks` is read no further than its announced size.

        Raises `ProblemError`: `E_UPLOAD_PART` when the bytes aren't the announced ones.
        """
        with self.path.open("r+b", buffering=0) as file:
            claim = self._claim(file, part)
            if claim is None:
                self._receive_beside(file, part, chunks)
                return
            with claim:
                self._receive_in_place(file, claim, part, chunks)

    @contextmanager
    def locked(self) -> Iterator[BinaryIO]:
        """Open the file, locked: no byte of it and no part's name changes meanwhile."""
        with self.path.open("r+b", buffering=0) as file, self._lock(file):
            yield file

    @contextmanager
    def _lock(self, file: BinaryIO) -> Iterator[None]:
        with _flock(file, fcntl.LOCK_EX):
            # It may have been completed or removed while this waited for the lock.
            if not _is_at(os.fstat(file.fileno()), self.path):
                raise FileNotFoundError(self.path)
            yield

    def _markers(self) -> dict[Path, Part]:
        """Return the marker of each stored part."""
        matches = [(path, PART_NAME.fullmatch(path.name)) for path in self.folder.iterdir()]
        return {path: Part(int(match[1]), int(match[2]), match[3]) for path, match in matches if match}

    def _claim_path(self, part: Part) -> Path:
        return self.folder / f"{part.number:05d}-claim"

    def _start(self, part: Part) -> int:
        return (part.number - 1) * self.part_size_bytes

    def _claim(self, file: BinaryIO, part: Part) -> BinaryIO | None:
        """Claim the part and return the open claim; None if it is stored, or somebody else writes it."""
        with self._lock(file):
            if any(stored.number == part.number for stored in self._markers().values()):
                return None
            try:
                return create(self._claim_path(part), self.file_mode)
            except FileExistsError:
                return None

    def _receive_in_place(self, file: BinaryIO, claim: BinaryIO, part: Part, chunks: Iterable[bytes]) -> None:
        path, start = self._claim_path(part), self._start(part)
        # Nothing else gets this inode while the claim is open.
        own = os.fstat(claim.fileno())

        def write(chunk: bytes, at: int) -> None:
            # Shared with those who write other parts, but not with whoever takes the claim away. It is gone, too, when
            # the upload is completed or aborted.
            with _flock(file, fcntl.LOCK_SH):
                if _is_at(own, path):
                    _write(file, chunk, start + at)

        try:
            with _flock(file, fcntl.LOCK_SH):
                if _is_at(own, path):
                    _reserve(file, start, part.size_bytes)
            _reject_unless(part, _received(chunks, part, write))
            # By part, so that no request waits for a whole file to reach the disk.
            os.fdatasync(file.fileno())
            with self._lock(file):
                # Whoever has taken it away has stored the part.
                if _is_at(own, path):
                    self._mark(part)
        finally:
            with self._lock(file):
                if _is_at(own, path):
                    path.unlink()

    def _receive_beside(self, file: BinaryIO, part: Part, chunks: Iterable[bytes]) -> None:
        path = self.folder / f"incoming-{secrets.token_hex(8)}"
        try:
            with create(path, self.file_mode) as incoming:
                received = _received(chunks, part, lambda chunk, at: _write(incoming, chunk, at))
                _reject_unless(part, received)
                with self._lock(file):
                    self._replace(file, part, incoming)
        finally:
            path.unlink(missing_ok=True)

    def _replace(self, file: BinaryIO, part: Part, incoming: BinaryIO) -> None:
        """Copy a verified part to its place, whatever was there, unless it is there already."""
        others = [path for path, stored in self._markers().items() if stored.number == part.number]
        if self._marker(part) in others:
            return
        for path in [*others, self._claim_path(part)]:
            path.unlink(missing_ok=True)
        _copy_range(incoming, file, self._start(part), part.size_bytes)
        os.fdatasync(file.fileno())
        self._mark(part)

    def _marker(self, part: Part) -> Path:
        return self.folder / f"{part.number:05d}-{part.size_bytes}-{part.sha256}"

    def _mark(self, part: Part) -> None:
        create(self._marker(part), self.file_mode).close()


def create(path: Path, mode: int) -> BinaryIO:
    """Open a new file for writing, with this mode whatever the process's mask is."""
    file = os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "w+b", buffering=0)
    os.fchmod(file.fileno(), mode)
    return file


@contextmanager
def _flock(file: BinaryIO, kind: int) -> Iterator[None]:
    fcntl.flock(file, kind)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _is_at(file: os.stat_result, path: Path) -> bool:
    try:
        return os.path.samestat(file, path.stat())
    except FileNotFoundError:
        return False


def _received(chunks: Iterable[bytes], announced: Part, write: Callable[[bytes, int], None]) -> Part:
    """Hand each chunk to `write`, with where it begins in the part, and return the part that was really received.

    A chunk with which the part would be longer than announced is not written, and is the last one that is read.
    """
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        begin, size = size, size + len(chunk)
        if size > announced.size_bytes:
            break
        digest.update(chunk)
        write(chunk, begin)
    return Part(announced.number, size, digest.hexdigest())


def _reject_unless(announced: Part, received: Part) -> None:
    if received != announced:
        raise ProblemError.of(
            ErrorCode.UPLOAD_PART,
            where=f"part {announced.number}",
            expected=f"{announced.size_bytes} bytes, SHA-256 {announced.sha256}",
            found=f"{received.size_bytes} bytes, SHA-256 {received.sha256}",
        )


def _reserve(file: BinaryIO, start: int, size: int) -> None:
    """Have the file system find room for a range at once, where it can: writing then costs less, and finds the room."""
    if size:
        try:
            os.posix_fallocate(file.fileno(), start, size)
        except OSError as error:
            if error.errno not in NOT_SUPPORTED:
                raise


def _write(file: BinaryIO, content: bytes, at: int) -> None:
    """Write all of it: one call may write less, such as at the end of a full disk."""
    rest = memoryview(content)
    while rest:
        count = os.pwrite(file.fileno(), rest, at)
        rest, at = rest[count:], at + count


def _copy_range(source: BinaryIO, target: BinaryIO, start: int, size: int) -> None:
    """Copy the first `size` bytes of `source` to `start` in `target`; by the kernel, and where it can, by reference."""
    copied = 0
    while copied < size:
        try:
            count = os.copy_file_range(
                source.fileno(), target.fileno(), size - copied, copied, start + copied
            )
        except OSError as error:
            if error.errno not in NOT_SUPPORTED:
                raise
            count = os.pwrite(
                target.fileno(),
                os.pread(source.fileno(), min(CHUNK_BYTES, size - copied), copied),
                start + copied,
            )
        copied += count
