"""The store of an embedded site: files in a folder."""

import errno
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

from docvqa_site.uploads.parts import Part
from docvqa_site.uploads.signed_urls import file_path, part_path
from docvqa_site.uploads.store import PartUrl, Store, reject_incomplete
from docvqa_site.uploads.unfinished_file import UnfinishedFile, create
from evaluator.errors import ErrorCode, ProblemError

KEY = re.compile(r"[0-9a-z]{2}/[0-9a-z-]{1,100}")
UPLOAD = re.compile(r"[0-9a-f]{32}-(\d+)")
FULL = {errno.ENOSPC, errno.EDQUOT}


class FolderStore(Store):
    """Files in a folder outside the web root, readable by the site's own account only.

    With `group_readable` the folder's group may read them too: a proxy that sends files itself is in that group.

    Layout::

        objects/<key>           finished files
        unfinished/<upload>/    what `UnfinishedFile` keeps

    Parts are written into the unfinished file, so completing an upload is a rename, however big the file is. The file
    is locked for both, so that nothing is written into a finished one. After a crash there is either the unfinished
    upload or the finished file, and a part that was being written counts as missing.
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
            self._make(self._folder_of(upload))
            self._unfinished(upload).begin()
        return upload

    @override
    def part_url(self, key: str, upload: str, part: Part) -> PartUrl:
        return PartUrl(part.number, part_path(upload, part))

    def receive(self, upload: str, part: Part, chunks: Iterable[bytes]) -> None:
        """Store one part. `chunks` is read no further than the part's announced size.

        Raises `ProblemError`: `E_UPLOAD_PART` when the bytes aren't the announced ones, `E_UPLOAD_STATE` when the
        upload is no longer open.
        """
        with _coded_problems():
            try:
                self._unfinished(upload).receive(part, chunks)
            except FileNotFoundError as error:
                raise ProblemError.of(ErrorCode.UPLOAD_STATE) from error

    @override
    def list_parts(self, key: str, upload: str) -> list[Part]:
        with _coded_problems(), suppress(FileNotFoundError):
            return self._unfinished(upload).parts()
        return []

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
        return file_path(key, filename, seconds)

    @override
    def put(self, key: str, content: bytes) -> None:
        part = Part(1, len(content), hashlib.sha256(content).hexdigest())
        target, upload = self._object(key), self.begin(key, len(content))
        try:
            self.receive(upload, part, [content])
            with _coded_problems():
                self._finish(target, upload, [part])
        finally:
            self.abort(key, upload)

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
        with _coded_problems():
            self._make(self.folder)
            probe = self.folder / f"check-{secrets.token_hex(8)}"
            try:
                with create(probe, self._file_mode) as file:
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

    def _folder_of(self, upload: str) -> Path:
        """Return the folder of an upload. Raises `FileNotFoundError` for a name that the store didn't make."""
        if not UPLOAD.fullmatch(upload):
            raise FileNotFoundError(upload)
        return self._unfinished_root / upload

    def _unfinished(self, upload: str) -> UnfinishedFile:
        """Return the upload's file. Raises `FileNotFoundError` for a name that the store didn't make."""
        folder = self._folder_of(upload)
        return UnfinishedFile(folder, int(upload.partition("-")[2]), self._file_mode)

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

    def _finish(self, target: Path, upload: str, parts: list[Part]) -> None:
        unfinished = self._unfinished(upload)
        with unfinished.locked() as file:
            reject_incomplete(parts, unfinished.parts())
            os.fsync(file.fileno())
            self._make(target.parent)
            unfinished.path.rename(target)
            _sync_folder(target.parent)

    def _discard(self, upload: str) -> None:
        # Renamed first: a part that arrives while the folder is emptied then finds no folder and is rejected.
        with suppress(FileNotFoundError):
            folder = self._folder_of(upload)
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


def _sync_folder(folder: Path) -> None:
    """Make the names of the files in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
