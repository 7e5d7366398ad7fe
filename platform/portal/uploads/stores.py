"""The stores of uploaded files: the `Store` protocol, and the folder store of an embedded site.

Keys and the names of unfinished uploads are made by the site and never contain anything that a user wrote.
"""

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from django.conf import settings
from typing_extensions import override

from evaluator.errors import ErrorCode, ProblemError
from portal.uploads.parts import Part, as_ranges, missing_parts
from portal.uploads.signed_urls import FileAddress, PartAddress, file_path, part_path

CHUNK_BYTES = 1024 * 1024
PART_NAME = re.compile(r"(\d{5})-([0-9a-f]{64})")


@dataclass(frozen=True)
class PartUrl:
    """Where to PUT part `number`, and the headers to send with it. A path is on this site."""

    number: int
    url: str
    headers: dict[str, str] = field(default_factory=dict)


class Store(Protocol):
    """A store for big files that arrive in parts. No method trusts what an uploader claims about a part."""

    def begin(self, key: str) -> str:
        """Start an upload to `key`, and return the store's name for it."""

    def part_url(self, key: str, upload: str, part: Part) -> PartUrl:
        """Return a short-lived address that takes this part, of exactly this size and SHA-256, and no other."""

    def list_parts(self, key: str, upload: str) -> list[Part]:
        """Return the parts that are really stored, by number; none once the upload is completed or aborted."""

    def complete(self, key: str, upload: str, sizes: list[int], sha256: str) -> None:
        """Join the parts, which must have these sizes, into the file. May be called again.

        Raises `ProblemError`: `E_UPLOAD_INCOMPLETE` when parts are missing, `E_UPLOAD_STATE` when the upload was
        aborted, `E_ARTIFACT_HASH` when the file's SHA-256 isn't `sha256` (a store that doesn't see the bytes
        leaves this to the evaluator, which checks it in any case).
        """

    def abort(self, key: str, upload: str) -> None:
        """Delete the unfinished upload and its parts, if there are any."""

    def download_url(self, key: str, filename: str, seconds: int) -> str:
        """Return an address that serves the file, with ranges, for `seconds`. A path is on this site."""

    def open(self, key: str) -> BinaryIO:
        """Open the file for reading. Raises `FileNotFoundError`."""

    def size(self, key: str) -> int | None:
        """Return the file's size in bytes; None when there is no such file."""

    def delete(self, key: str) -> None:
        """Remove the file, if there is one."""


def current_store() -> Store:
    """Return the store that the settings name."""
    return FolderStore(Path(settings.STORE_FOLDER))


class FolderStore(Store):
    """Files in a folder outside the web root, readable by the site's own account only.

    Layout::

        objects/<key>                            finished files
        unfinished/<upload>/<number>-<sha256>    verified parts
        unfinished/<upload>/incoming-<random>    a part on its way

    Every file appears under its name by a rename, whole or not at all. After a crash there is either the
    unfinished upload or the finished file.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @override
    def begin(self, key: str) -> str:
        upload = secrets.token_hex(16)
        self._unfinished(upload).mkdir(mode=0o700, parents=True)
        return upload

    @override
    def part_url(self, key: str, upload: str, part: Part) -> PartUrl:
        return PartUrl(part.number, part_path(PartAddress(upload, part)))

    def receive(self, upload: str, part: Part, chunks: Iterable[bytes]) -> None:
        """Store one part. `chunks` is read no further than the part's announced size.

        Raises `ProblemError`: `E_UPLOAD_PART` when the bytes aren't the announced ones, `E_UPLOAD_STATE` when the
        upload is no longer open.
        """
        folder = self._unfinished(upload)
        incoming = folder / f"incoming-{secrets.token_hex(8)}"
        try:
            with _create(incoming) as file:
                received = _copy(chunks, file, part)
            if received != part:
                raise ProblemError.of(
                    ErrorCode.UPLOAD_PART,
                    where=f"part {part.number}",
                    expected=f"{part.size_bytes} bytes, SHA-256 {part.sha256}",
                    found=f"{received.size_bytes} bytes, SHA-256 {received.sha256}",
                )
            incoming.replace(folder / _part_name(part))
            self._drop_older(folder, part)
        except FileNotFoundError as error:
            raise ProblemError.of(ErrorCode.UPLOAD_STATE) from error
        finally:
            incoming.unlink(missing_ok=True)

    @override
    def list_parts(self, key: str, upload: str) -> list[Part]:
        newest: dict[int, tuple[int, Part]] = {}
        for path, part in self._stored(self._unfinished(upload)):
            # The part may be replaced or completed at this moment.
            with suppress(FileNotFoundError):
                status = path.stat()
                if part.number not in newest or status.st_mtime_ns > newest[part.number][0]:
                    newest[part.number] = status.st_mtime_ns, Part(part.number, status.st_size, part.sha256)
        return [part for _, (_, part) in sorted(newest.items())]

    @override
    def complete(self, key: str, upload: str, sizes: list[int], sha256: str) -> None:
        target = self._object(key)
        try:
            if not target.exists():
                self._assemble(target, key, upload, sizes, sha256)
        except ProblemError:
            # A second request may have completed it in the meantime.
            if not target.exists():
                raise
        self._discard(upload)

    @override
    def abort(self, key: str, upload: str) -> None:
        self._discard(upload)

    @override
    def download_url(self, key: str, filename: str, seconds: int) -> str:
        return file_path(FileAddress(key, filename), seconds)

    @override
    def open(self, key: str) -> BinaryIO:
        return self._object(key).open("rb")

    @override
    def size(self, key: str) -> int | None:
        try:
            return self._object(key).stat().st_size
        except FileNotFoundError:
            return None

    @override
    def delete(self, key: str) -> None:
        self._object(key).unlink(missing_ok=True)

    def _object(self, key: str) -> Path:
        return self.folder / "objects" / key

    def _unfinished(self, upload: str) -> Path:
        return self.folder / "unfinished" / upload

    @staticmethod
    def _stored(folder: Path) -> Iterator[tuple[Path, Part]]:
        """Return the verified parts in `folder`; their sizes are left at 0 for the caller to look up."""
        with suppress(FileNotFoundError):
            for path in folder.iterdir():
                if match := PART_NAME.fullmatch(path.name):
                    yield path, Part(int(match[1]), 0, match[2])

    def _drop_older(self, folder: Path, newest: Part) -> None:
        """Delete all but the newest part of a number, so that sending parts again never fills the disk."""
        since = (folder / _part_name(newest)).stat().st_mtime_ns
        for path, part in self._stored(folder):
            if part.number == newest.number and part.sha256 != newest.sha256:
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime_ns <= since:
                        path.unlink()

    def _assemble(self, target: Path, key: str, upload: str, sizes: list[int], sha256: str) -> None:
        folder = self._unfinished(upload)
        parts = self.list_parts(key, upload)
        if missing := missing_parts(sizes, parts):
            raise ProblemError.of(
                ErrorCode.UPLOAD_INCOMPLETE,
                where=f"parts {as_ranges(missing)}",
                expected=f"{len(sizes)} parts, {sum(sizes)} bytes",
                found=f"{len(sizes) - len(missing)} parts",
            )
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        incoming = folder / f"incoming-{secrets.token_hex(8)}"
        try:
            found = _join([folder / _part_name(part) for part in parts], incoming)
            if found != sha256:
                raise ProblemError.of(ErrorCode.ARTIFACT_HASH, expected=sha256, found=found)
            incoming.replace(target)
        # Another request has aborted or completed it.
        except FileNotFoundError as error:
            raise ProblemError.of(ErrorCode.UPLOAD_STATE) from error
        finally:
            incoming.unlink(missing_ok=True)

    def _discard(self, upload: str) -> None:
        # Renamed first: a part that arrives while the folder is emptied then finds no folder and is rejected.
        folder = self._unfinished(upload)
        gone = folder.with_suffix(".gone")
        with suppress(FileNotFoundError):
            folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def _create(path: Path) -> BinaryIO:
    """Open a new file for writing that only the site's own account can read."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")


def _part_name(part: Part) -> str:
    return f"{part.number:05d}-{part.sha256}"


def _join(parts: list[Path], target: Path) -> str:
    """Write the parts one after another to a new file, safely on disk, and return its SHA-256."""
    digest = hashlib.sha256()
    with _create(target) as file:
        for path in parts:
            with path.open("rb") as part:
                while chunk := part.read(CHUNK_BYTES):
                    digest.update(chunk)
                    file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


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
