"""A file in a folder of its own, as far as its parts have arrived.

Guarantees: a part is listed only while the file holds exactly its bytes, whoever else sends the same part at the same
time, and wherever a process is killed or the power is cut.

A part is hashed while it is received into a file beside. Once it is verified, the kernel copies it to its place under
the file's lock, so nobody waits for a sender who may be gone.
"""

import errno
import fcntl
import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from docvqa_site.uploads.parts import Part
from evaluator.errors import ErrorCode, ProblemError

# Stays in the processor's cache from being received to being written.
CHUNK_BYTES = 256 * 1024
PART_NAME = re.compile(r"(\d{5})-(\d+)-([0-9a-f]{64})")
# A file system, or a kernel, that can't copy within itself.
NOT_SUPPORTED = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}


@dataclass(frozen=True)
class UnfinishedFile:
    """The folder of one upload.

    Layout::

        file                        the file, as far as its parts have arrived
        <number>-<size>-<sha256>    empty: the file holds this part, verified
        incoming-<random>           a part on its way

    Methods raise `FileNotFoundError` when the upload is completed or aborted.
    """

    folder: Path
    part_size_bytes: int
    file_mode: int

    @property
    def path(self) -> Path:
        return self.folder / "file"

    def begin(self) -> None:
        create(self.path, self.file_mode).close()

    def parts(self) -> list[Part]:
        return sorted(self._markers().values(), key=lambda part: part.number)

    def receive(self, part: Part, chunks: Iterable[bytes]) -> None:
        """Store one part; `chunks` is read no further than its announced size.

        Raises `ProblemError`: `E_UPLOAD_PART` when the bytes aren't the announced ones.
        """
        path = self.folder / f"incoming-{secrets.token_hex(8)}"
        with self.path.open("r+b", buffering=0) as file:
            try:
                with create(path, self.file_mode) as incoming:
                    _reject_unless(part, _received(chunks, part, incoming))
                    with self._lock(file):
                        self._put(file, part, incoming)
            finally:
                path.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[BinaryIO]:
        """Open the file, locked: no byte of it and no part's name changes meanwhile."""
        with self.path.open("r+b", buffering=0) as file, self._lock(file):
            yield file

    @contextmanager
    def _lock(self, file: BinaryIO) -> Iterator[None]:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            # It may have been completed or removed while this waited for the lock.
            if not os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                raise FileNotFoundError(self.path)
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def _markers(self) -> dict[Path, Part]:
        matches = [(path, PART_NAME.fullmatch(path.name)) for path in self.folder.iterdir()]
        return {path: Part(int(match[1]), int(match[2]), match[3]) for path, match in matches if match}

    def _put(self, file: BinaryIO, part: Part, incoming: BinaryIO) -> None:
        """Copy a verified part to its place, whatever was there, unless it is there already."""
        marker = self.folder / f"{part.number:05d}-{part.size_bytes}-{part.sha256}"
        others = [path for path, stored in self._markers().items() if stored.number == part.number]
        if marker in others:
            return
        for path in others:
            path.unlink(missing_ok=True)
        _copy(incoming, file, (part.number - 1) * self.part_size_bytes, part.size_bytes)
        # By part, so that no request waits for a whole file to reach the disk.
        os.fdatasync(file.fileno())
        create(marker, self.file_mode).close()


def create(path: Path, mode: int) -> BinaryIO:
    """Open a new file for writing, with this mode whatever the process's mask is."""
    file = os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "w+b", buffering=0)
    os.fchmod(file.fileno(), mode)
    return file


def _received(chunks: Iterable[bytes], announced: Part, file: BinaryIO) -> Part:
    """Write each chunk to the file, and return the part that was really received.

    A chunk with which the part would be longer than announced is not written, and is the last one that is read.
    """
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        begin, size = size, size + len(chunk)
        if size > announced.size_bytes:
            break
        digest.update(chunk)
        _write(file, chunk, begin)
    return Part(announced.number, size, digest.hexdigest())


def _reject_unless(announced: Part, received: Part) -> None:
    if received != announced:
        raise ProblemError.of(
            ErrorCode.UPLOAD_PART,
            where=f"part {announced.number}",
            expected=f"{announced.size_bytes} bytes, SHA-256 {announced.sha256}",
            found=f"{received.size_bytes} bytes, SHA-256 {received.sha256}",
        )


def _write(file: BinaryIO, content: bytes, at: int) -> None:
    """Write all of it: one call may write less, such as at the end of a full disk."""
    rest = memoryview(content)
    while rest:
        count = os.pwrite(file.fileno(), rest, at)
        rest, at = rest[count:], at + count


def _copy(source: BinaryIO, target: BinaryIO, start: int, size: int) -> None:
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
