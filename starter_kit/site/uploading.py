"""Resumable uploads: a file is sent in parts, and parts that the site has stored are not sent again."""

import hashlib
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from uuid import UUID

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.file_api import (
    HEAD_BYTES,
    NewFile,
    NewUpload,
    PartUrl,
    StoredArtifact,
    UploadPart,
    UploadStatus,
)
from evaluator.messages.jobs import ArtifactKind
from starter_kit.site.client import SiteClient

# What the site cuts files into unless they are huge.
USUAL_PART_BYTES = 8 * 1024 * 1024
PARALLEL_PARTS = 3
# So many are requested together.
ADDRESSES = 8

# The part of a transfer's time that its hashing takes, as far as progress is concerned.
HASHING_SHARE = 0.1


@dataclass(frozen=True)
class FileProgress:
    """How far a file is, which is read for its hashes first and then sent."""

    name: str
    size_bytes: int
    hashed_bytes: int = 0
    sent_bytes: int = 0

    @property
    def done_bytes(self) -> float:
        """The part of the file's size that corresponds to the work done."""
        return HASHING_SHARE * self.hashed_bytes + (1 - HASHING_SHARE) * self.sent_bytes

    def __str__(self) -> str:
        is_hashed = self.hashed_bytes == self.size_bytes
        what, done_bytes = ("sent", self.sent_bytes) if is_hashed else ("hashed", self.hashed_bytes)
        return f"{self.name}: {what} {done_bytes / 1e6:,.1f} of {self.size_bytes / 1e6:,.1f} MB"


OnFileProgress = Callable[[FileProgress], object]


def upload_file(
    client: SiteClient,
    path: Path,
    *,
    submission: UUID,
    run: UUID | None,
    kind: ArtifactKind,
    on_progress: OnFileProgress,
) -> StoredArtifact:
    """Upload `path` into its place in a draft, resuming an unfinished upload of the same file to the same place.

    Its beginning goes first, by which the site rejects a wrong file before it is read. A file that is in its place
    already isn't sent again.

    Args:
        run: The run that the file belongs to; None for a file of the submission as a whole.

    Raises:
        ProblemError: The site rejects the file, or the connection failed; parts that were stored remain stored.
    """
    before = path.stat()
    size = before.st_size
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    announced = NewFile(
        submission=submission,
        run=run,
        kind=kind,
        filename=path.name,
        size_bytes=size,
        head=b64encode(head),
    )
    client.check_head(announced)
    sha256, parts = hashes_of(
        path, USUAL_PART_BYTES, lambda hashed: on_progress(FileProgress(path.name, size, hashed))
    )
    upload = client.start_upload(NewUpload(**announced.model_dump(exclude={"head"}), sha256=sha256))
    show_sent = partial(FileProgress, path.name, size, size)
    if upload.state == "completed":
        on_progress(show_sent(size))
        return client.complete_upload(upload.id)
    if upload.part_size_bytes != USUAL_PART_BYTES:
        _, parts = hashes_of(path, upload.part_size_bytes)
    stored = set(client.stored_parts(upload.id))
    sender = _Sender(client, upload, path)
    sent_bytes = 0
    with ThreadPoolExecutor(PARALLEL_PARTS) as pool:
        missing: list[Future[int]] = []
        for part in parts:
            if part in stored:
                sent_bytes += part.size_bytes
            else:
                sender.announce(part)
                missing.append(pool.submit(sender.send, part))
        on_progress(show_sent(sent_bytes))
        for sent in as_completed(missing):
            sent_bytes += sent.result()
            on_progress(show_sent(sent_bytes))
    after = path.stat()
    if (after.st_mtime_ns, after.st_size) != (before.st_mtime_ns, before.st_size):
        # A store need not read the file again to see it: only the evaluation would, and take a quota slot.
        raise ProblemError.of(
            ErrorCode.ARTIFACT_HASH, str(path), message="The file changed while it was uploaded."
        )
    return client.complete_upload(upload.id)


def hashes_of(
    path: Path, part_size_bytes: int, on_hashed: Callable[[int], object] = lambda _: None
) -> tuple[str, list[UploadPart]]:
    """Return the SHA-256 of a file, and its parts with theirs; the file is read once, and hashed by two threads.

    Args:
        on_hashed: Called with the number of bytes that are hashed, after each part.
    """
    whole, parts, hashed_bytes = hashlib.sha256(), list[UploadPart](), 0
    with path.open("rb") as file, ThreadPoolExecutor(1) as pool:
        while content := file.read(part_size_bytes):
            in_whole = pool.submit(whole.update, content)
            sha256 = hashlib.sha256(content).hexdigest()
            parts.append(UploadPart(number=len(parts) + 1, size_bytes=len(content), sha256=sha256))
            in_whole.result()
            hashed_bytes += len(content)
            on_hashed(hashed_bytes)
    return whole.hexdigest(), parts


class _Sender:
    """Sends parts of one file, several at once.

    Addresses expire soon, so they are requested just before they are used: that of a part with those of the next ones.
    """

    def __init__(self, client: SiteClient, upload: UploadStatus, path: Path) -> None:
        self._client = client
        self._upload = upload
        self._path = path
        self._announced: list[UploadPart] = []
        self._urls: dict[int, PartUrl] = {}
        self._requesting = Lock()

    def announce(self, part: UploadPart) -> None:
        """Note that a part is to be sent, after all those that were announced before."""
        self._announced.append(part)

    def send(self, part: UploadPart) -> int:
        """Send one part and return its size in bytes."""
        with self._path.open("rb") as file:
            file.seek((part.number - 1) * self._upload.part_size_bytes)
            content = file.read(part.size_bytes)
        try:
            self._client.send_part(self._url(part), content)
        except ProblemError as error:
            # A bad connection may have held up the parts before it.
            if error.problem.code != ErrorCode.UPLOAD_URL:
                raise
            (fresh,) = self._client.part_urls(self._upload.id, [part])
            self._client.send_part(fresh, content)
        return part.size_bytes

    def _url(self, part: UploadPart) -> PartUrl:
        with self._requesting:
            if part.number not in self._urls:
                later = [other for other in self._announced if other.number >= part.number]
                urls = self._client.part_urls(self._upload.id, later[:ADDRESSES])
                self._urls.update((url.number, url) for url in urls)
            return self._urls.pop(part.number)
