"""The store of an embedded site: files in a folder."""

import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from typing_extensions import override

from evaluator.errors import ErrorCode, ProblemError
from portal.uploads.parts import Part
from portal.uploads.signed_urls import FileAddress, PartAddress, file_path, part_path
from portal.uploads.store import PartUrl, Store, reject_incomplete

CHUNK_BYTES = 1024 * 1024
KEY = re.compile(r"[0-9a-z]{2}/[0-9a-z-]{1,100}")
UPLOAD = re.compile(r"[0-9a-f]{32}-(\d+)")
PART_NAME = re.compile(r"(\d{5})-(\d+)-([0-9a-f]{64})")
FULL = {errno.ENOSPC, errno.EDQUOT}
# A file system, or a kernel, that can't copy within itself.
NOT_COPIED = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}


class FolderStore(Store):
    """Files in a folder outside the web root, readable by the site's own account only.

    With `group_readable` the folder's group may read them too: a proxy that sends files itself is in that group.

    Layout::

        objects/<key>                                   finished files
        unfinished/<upload>/file                        the file, as far as its parts have arrived
        unfinished/<upload>/<number>-<size>-<sha256>    empty: the file holds this part, verified
        unfinished/<upload>/incoming-<random>           a part on its way

    A part is verified in a file of its own and then copied to its place by the kernel, so completing an upload is a
    rename, however big the file is. The file is locked for both, so that nothing is written into a finished one.
    After a crash there is either the unfinished upload or the finished file, and a part that was being copied counts
    as missing.
    """

    def __init__(self, folder: Path, *, group_readable: bool = False) -> None:
        self.folder = folder
        self._file_mode = 0o640 if group_readable else 0o600
        # Of the folder's group, whatever that of the account is.
        self._folder_mode = 0o2750 if group_readable else 0o700

    @override
    def begin(self, key: str, part_size_bytes: int) -> str:
        upload = f"{secrets.token_hex(16)}-{part_size_bytes}"
        with _coded_problems():
            folder = self._unfinished(upload)
            self._make(folder)
            self._create(folder / "file").close()
        return upload

    @override
    def part_url(self, key: str, upload: str, part: Part) -> PartUrl:
        return PartUrl(part.number, part_path(PartAddress(upload, part)))

    def receive(self, upload: str, part: Part, chunks: Iterable[bytes]) -> None:
        """Store one part. `chunks` is read no further than the part's announced size.

        Raises `ProblemError`: `E_UPLOAD_PART` when the bytes aren't the announced ones, `E_UPLOAD_STATE` when the
        upload is no longer open.
        """
        with _coded_problems():
            try:
                self._receive(upload, part, chunks)
            except FileNotFoundError as error:
                raise ProblemError.of(ErrorCode.UPLOAD_STATE) from error

    @override
    def list_parts(self, key: str, upload: str) -> list[Part]:
        with _coded_problems():
            return sorted(self._markers(upload).values(), key=lambda part: part.number)

    @override
    def complete(self, key: str, upload: str, parts: list[Part]) -> None:
        target = self._object(key)
        with _coded_problems():
            try:
                if not target.exists():
                    self._finish(target, upload, parts)
            except FileNotFoundError as error:
                # Another request has aborted it, unless it was faster in completing it.
                if not target.exists():
                    raise ProblemError.of(ErrorCode.UPLOAD_STATE) from error
            self._discard(upload)

    @override
    def abort(self, key: str, upload: str) -> None:
        with _coded_problems():
            self._discard(upload)

    @override
    def download_url(self, key: str, filename: str, seconds: int) -> str:
        return file_path(FileAddress(key, filename), seconds)

    @override
    def open(self, key: str) -> BinaryIO:
        with _coded_problems():
            return self._object(key).open("rb")

    @override
    def size(self, key: str) -> int | None:
        with _coded_problems(), suppress(FileNotFoundError):
            return self._object(key).stat().st_size
        return None

    @override
    def delete(self, key: str) -> None:
        with _coded_problems(), suppress(FileNotFoundError):
            self._object(key).unlink()

    @override
    def free_bytes(self) -> int:
        with _coded_problems():
            self._make(self.folder)
            status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize

    @override
    def check(self) -> None:
        """Write a file and remove it."""
        with _coded_problems():
            self._make(self.folder)
            probe = self.folder / f"check-{secrets.token_hex(8)}"
            try:
                with self._create(probe) as file:
                    file.write(b"ok")
            finally:
                probe.unlink(missing_ok=True)

    @override
    def remove_unfinished(self, before: datetime) -> None:
        with _coded_problems(), suppress(FileNotFoundError):
            for path in self._unfinished_root.iterdir():
                if path.stat().st_mtime < before.timestamp():
                    shutil.rmtree(path, ignore_errors=True)

    @property
    def _unfinished_root(self) -> Path:
        return self.folder / "unfinished"

    def _object(self, key: str) -> Path:
        """Return the path of a finished file. Raises `FileNotFoundError` for a key that the site didn't make."""
        if not KEY.fullmatch(key):
            raise FileNotFoundError(key)
        return self.folder / "objects" / key

    def _unfinished(self, upload: str) -> Path:
        """Return the folder of an upload. Raises `FileNotFoundError` for a name that the store didn't make."""
        if not UPLOAD.fullmatch(upload):
            raise FileNotFoundError(upload)
        return self._unfinished_root / upload

    def _make(self, folder: Path) -> None:
        """Make the folder and those above it, up to the store's own, with the store's mode."""
        if folder.is_dir():
            return
        if folder != self.folder:
            self._make(folder.parent)
        else:
            folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir()
            # Whatever the process's mask is.
            folder.chmod(self._folder_mode)

    def _create(self, path: Path) -> BinaryIO:
        """Open a new file for writing."""
        file = os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "w+b")
        os.fchmod(file.fileno(), self._file_mode)
        return file

    @contextmanager
    def _locked(self, upload: str) -> Iterator[BinaryIO]:
        """Open the unfinished file, locked. Raises `FileNotFoundError` when it is completed or aborted."""
        path = self._unfinished(upload) / "file"
        with path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # It may have been completed or removed while this waited for the lock.
            if not _is_at(file, path):
                raise FileNotFoundError(path)
            yield file

    def _markers(self, upload: str) -> dict[Path, Part]:
        """Return the marker of each stored part."""
        try:
            paths = list(self._unfinished(upload).iterdir())
        except FileNotFoundError:
            return {}
        matches = [(path, PART_NAME.fullmatch(path.name)) for path in paths]
        return {path: Part(int(match[1]), int(match[2]), match[3]) for path, match in matches if match}

    def _receive(self, upload: str, part: Part, chunks: Iterable[bytes]) -> None:
        incoming = self._unfinished(upload) / f"incoming-{secrets.token_hex(8)}"
        try:
            with self._create(incoming) as file:
                received = _copy(chunks, file, part)
                if received != part:
                    raise ProblemError.of(
                        ErrorCode.UPLOAD_PART,
                        where=f"part {part.number}",
                        expected=f"{part.size_bytes} bytes, SHA-256 {part.sha256}",
                        found=f"{received.size_bytes} bytes, SHA-256 {received.sha256}",
                    )
                file.flush()
                self._place(upload, part, file)
        finally:
            incoming.unlink(missing_ok=True)

    def _place(self, upload: str, part: Part, incoming: BinaryIO) -> None:
        """Copy a verified part to its place in the file, and mark it as stored."""
        with self._locked(upload) as file:
            for path, stored in self._markers(upload).items():
                if stored.number == part.number:
                    path.unlink()
            part_size = int(UPLOAD.fullmatch(upload)[1])  # type: ignore[index]
            _copy_range(incoming, file, (part.number - 1) * part_size, part.size_bytes)
            name = f"{part.number:05d}-{part.size_bytes}-{part.sha256}"
            self._create(self._unfinished(upload) / name).close()

    def _finish(self, target: Path, upload: str, parts: list[Part]) -> None:
        with self._locked(upload) as file:
            reject_incomplete(parts, list(self._markers(upload).values()))
            os.fsync(file.fileno())
            self._make(target.parent)
            (self._unfinished(upload) / "file").rename(target)
            _sync_folder(target.parent)

    def _discard(self, upload: str) -> None:
        # Renamed first: a part that arrives while the folder is emptied then finds no folder and is rejected.
        with suppress(FileNotFoundError):
            folder = self._unfinished(upload)
            gone = folder.with_suffix(".gone")
            with suppress(FileNotFoundError):
                folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


@contextmanager
def _coded_problems() -> Iterator[None]:
    """Raise `ProblemError` for what the file system can't do now; a missing file is left to the caller."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        code = ErrorCode.STORE_FULL if error.errno in FULL else ErrorCode.STORE_UNAVAILABLE
        raise ProblemError.of(code) from error


def _is_at(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _copy_range(source: BinaryIO, target: BinaryIO, start: int, size: int) -> None:
    """Copy the first `size` bytes of `source` to `start` in `target`; by the kernel, and where it can, by reference."""
    copied = 0
    while copied < size:
        try:
            count = os.copy_file_range(
                source.fileno(), target.fileno(), size - copied, copied, start + copied
            )
        except OSError as error:
            if error.errno not in NOT_COPIED:
                raise
            count = os.pwrite(
                target.fileno(),
                os.pread(source.fileno(), min(CHUNK_BYTES, size - copied), copied),
                start + copied,
            )
        copied += count


def _sync_folder(folder: Path) -> None:
    """Make the names of the files in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy(chunks: Iterable[bytes], file: BinaryIO, announced: Part) -> Part:
    """Write `chunks` until they end or exceed the announced size, and return the part that was really received."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        size += len(chunk)
        if size > announced.size_bytes:
            break
        digest.update(chunk)
        file.write(chunk)
    return Part(announced.number, size, digest.hexdigest())
