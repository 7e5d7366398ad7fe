"""Fetching artifacts: by a short-lived URL, into a cache in which a file is named by its SHA-256 and its upload.

A file appears in the cache only when it is whole and is what was announced; an interrupted download is resumed. A file
is hashed as it arrives, and again before each further use: disks rot, and others may have written to it. URLs are
secrets of minutes and are never logged. A file that another upload left in the cache is not used: its SHA-256 is
public once a run is scored, and whoever announced it need not have the file.
"""

import hashlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import requests

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactRef

logger = logging.getLogger(__name__)
# At DEBUG it would log every URL.
logging.getLogger("urllib3").setLevel(logging.INFO)

# A broken connection loses one chunk at most.
CHUNK_BYTES = 64 * 1024
# The timeouts to connect, and between two chunks.
TIMEOUT_S = (10, 60)
TRIES = 6
# The pause before the second try; it doubles before each further one.
PAUSE_S = 0.5
CACHE_BYTES = 50 * 1024**3


class FetchError(RuntimeError):
    """The artifact can't be fetched now, through no fault of the participant; the message doesn't quote the URL.

    Its `code` goes into the step's report.
    """

    code = ErrorCode.PLATFORM_FAULT


class RejectedAddressError(FetchError):
    """The store rejects the URL, usually because it expired while the job waited: the site sends the step again."""

    code = ErrorCode.ARTIFACT_URL


def fetch(
    ref: ArtifactRef,
    cache: Path,
    *,
    on_progress: Callable[[int, int], None] | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> Path:
    """Return the artifact as a local file whose size and SHA-256 are as announced.

    Args:
        cache: The folder of fetched files; the least recently used ones are removed beyond `cache_bytes`.
        on_progress: Called with the bytes fetched so far and in all.

    Raises:
        ProblemError: `E_ARTIFACT_SIZE` or `E_ARTIFACT_HASH`: the store holds something else than was announced.
        FetchError: The store doesn't answer, or rejects the URL.
    """
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / cached_name(ref)
    if _is_cached(target, ref):
        return target
    _make_room(cache, cache_bytes - ref.size_bytes)
    partial = _Partial(cache / f"{target.name}.{uuid4().hex}.partial")
    try:
        _download(ref, partial, on_progress or (lambda _done, _total: None))
        _check_hash(ref, partial.digest.hexdigest())
        partial.path.replace(target)
    finally:
        partial.path.unlink(missing_ok=True)
    return target


def cached_name(ref: ArtifactRef) -> str:
    """Return the name of the artifact's file in the cache."""
    return f"{ref.sha256}-{ref.upload.hex}"


def _is_cached(target: Path, ref: ArtifactRef) -> bool:
    """Return whether the file is there, unchanged; it counts as used now. Another worker may remove it at any time."""
    try:
        with target.open("rb") as file:
            is_whole = os.fstat(file.fileno()).st_size == ref.size_bytes
            if is_whole and hashlib.file_digest(file, "sha256").hexdigest() == ref.sha256:
                os.utime(target)
                return True
    except FileNotFoundError:
        return False
    logger.error("%s in the cache isn't what was fetched; it is fetched again", ref.sha256)
    target.unlink(missing_ok=True)
    return False


class _Partial:
    """A file as far as it has come in: its size in bytes and the digest of these bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.digest = hashlib.sha256()

    def append(self, file: BinaryIO, chunk: bytes) -> None:
        """Add a chunk to it, by way of its opened file."""
        file.write(chunk)
        self.digest.update(chunk)
        self.size += len(chunk)

    def restart(self) -> None:
        self.path.unlink(missing_ok=True)
        self.size = 0
        self.digest = hashlib.sha256()


def _download(ref: ArtifactRef, partial: _Partial, on_progress: Callable[[int, int], None]) -> None:
    reason = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE_S * 2 ** (attempt - 1))
            logger.info("fetching the %s again: %s", ref.kind, reason)
        try:
            _continue_download(ref, partial, on_progress)
        except requests.RequestException as error:
            # The class only: the message would name the URL.
            reason = type(error).__name__
            continue
        return
    raise FetchError(f"the {ref.kind} could not be fetched in {TRIES} tries, the last ended with {reason}")


def _continue_download(ref: ArtifactRef, partial: _Partial, on_progress: Callable[[int, int], None]) -> None:
    """Fetch what `partial` lacks; a server that ignores the range sends everything, and the file starts again."""
    have = partial.size
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(ref.url, headers=headers, stream=True, timeout=TIMEOUT_S) as response:
        if response.status_code >= 500:
            raise requests.ConnectionError(f"status {response.status_code}")
        if response.status_code == 403:
            raise RejectedAddressError(f"the store answered 403 to the request for the {ref.kind}")
        if response.status_code not in {200, 206}:
            raise FetchError(f"the store answered {response.status_code} to the request for the {ref.kind}")
        continues = response.status_code == 206
        if continues and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            raise FetchError(f"the store sent another part of the {ref.kind} than was requested")
        if not continues:
            partial.restart()
        length = response.headers.get("Content-Length", "")
        if length.isdecimal():
            _check_size(ref, partial.size + int(length))
        with partial.path.open("ab") as file:
            for chunk in response.iter_content(CHUNK_BYTES):
                if partial.size + len(chunk) > ref.size_bytes:
                    _check_size(ref, partial.size + len(chunk))
                partial.append(file, chunk)
                on_progress(partial.size, ref.size_bytes)
    if partial.size < ref.size_bytes:
        # The response had no length, or it would have been rejected above.
        raise requests.ConnectionError("the connection ended early")


def _check_size(ref: ArtifactRef, found_bytes: int) -> None:
    if found_bytes != ref.size_bytes:
        raise ProblemError.of(
            ErrorCode.ARTIFACT_SIZE,
            message="The stored file is not as long as was announced.",
            where=ref.kind,
            expected=f"{ref.size_bytes} bytes",
            found=f"{found_bytes} bytes",
        )


def _check_hash(ref: ArtifactRef, found: str) -> None:
    if found != ref.sha256:
        raise ProblemError.of(ErrorCode.ARTIFACT_HASH, where=ref.kind, expected=ref.sha256, found=found)


def _make_room(cache: Path, budget_bytes: int) -> None:
    """Remove the least recently used files until at most `budget_bytes` are left, and partial ones of the dead."""
    entries = []
    for path in cache.iterdir():
        try:
            entries.append((path.stat(), path))
        except FileNotFoundError:
            # Another worker has removed it.
            continue
    total = sum(stat.st_size for stat, _ in entries)
    for stat, path in sorted(entries, key=lambda entry: entry[0].st_mtime):
        abandoned = path.suffix == ".partial" and time.time() - stat.st_mtime > 3600
        if abandoned or (total > budget_bytes and path.suffix != ".partial"):
            path.unlink(missing_ok=True)
            total -= stat.st_size
