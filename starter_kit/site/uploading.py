"""Resumable uploads: a file is sent in parts, and parts that the site has stored are not sent again."""

import hashlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Lock
from uuid import UUID

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.api import NewUpload, PartUrl, StoredArtifact, UploadPart, UploadStatus
from evaluator.messages.jobs import ArtifactKind
from starter_kit.site.client import SiteClient

# What the site cuts files into unless they are huge.
USUAL_PART_BYTES = 8 * 1024 * 1024
PARALLEL_PARTS = 3
# So many are requested together.
ADDRESSES = 8

# Called with the number of bytes of each part that is stored.
OnStored = Callable[[int], None]


def upload_file(
    client: SiteClient,
    path: Path,
    *,
    submission: UUID,
    run: UUID | None,
    kind: ArtifactKind,
    on_stored: OnStored,
) -> StoredArtifact:
    """Upload `path` into its place in a draft, resuming an unfinished upload of the same file to the same place.

    A file that is in its place already isn't sent again.

    Args:
        run: The run that the file belongs to; None for a file of the submission as a whole.

    Raises:
        ProblemError: The site rejects the file, or the connection failed; parts that were stored remain stored.
    """
    before = path.stat()
    sha256, parts = hashes_of(path, USUAL_PART_BYTES)
    upload = client.start_upload(
        NewUpload(
            submission=submission,
            run=run,
            kind=kind,
            filename=path.name,
            size_bytes=before.st_size,
            sha256=sha256,
        )
    )
    if upload.state == "completed":
        on_stored(before.st_size)
        return client.complete_upload(upload.id)
    if upload.part_size_bytes != USUAL_PART_BYTES:
        _, parts = hashes_of(path, upload.part_size_bytes)
    stored = set(client.stored_parts(upload.id))
    sender = _Sender(client, upload, path)
    with ThreadPoolExecutor(PARALLEL_PARTS) as pool:
        missing: list[Future[int]] = []
        for part in parts:
            if part in stored:
                on_stored(part.size_bytes)
            else:
                sender.announce(part)
                missing.append(pool.submit(sender.send, part))
        for sent in as_completed(missing):
            on_stored(sent.result())
    after = path.stat()
    if (after.st_mtime_ns, after.st_size) != (before.st_mtime_ns, before.st_size):
        # A store need not read the file again to see it: only the evaluation would, and take a quota slot.
        raise ProblemError.of(
            ErrorCode.ARTIFACT_HASH, str(path), message="The file changed while it was uploaded."
        )
    return client.complete_upload(upload.id)


def hashes_of(path: Path, part_size_bytes: int) -> tuple[str, list[UploadPart]]:
    """Return the SHA-256 of a file, and its parts with theirs; the file is read once, and hashed by two threads."""
    whole, parts = hashlib.sha256(), list[UploadPart]()
    with path.open("rb") as file, ThreadPoolExecutor(1) as pool:
        while content := file.read(part_size_bytes):
            in_whole = pool.submit(whole.update, content)
            sha256 = hashlib.sha256(content).hexdigest()
            parts.append(UploadPart(number=len(parts) + 1, size_bytes=len(content), sha256=sha256))
            in_whole.result()
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
