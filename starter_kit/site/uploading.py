"""Resumable uploads: a file is sent in parts, and parts that the site has stored are not sent again."""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from uuid import UUID

from evaluator.api import NewUpload, StoredArtifact, UploadPart, UploadStatus
from evaluator.checkpoints.contents import sha256_of
from evaluator.contracts import ArtifactKind
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.site.client import SiteClient

PARALLEL_PARTS = 3
# For one part, until it is stored.
ADDRESSES = 3

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

    Args:
        run: The run that the file belongs to; None for a file of the submission as a whole.

    Raises:
        ProblemError: The site rejects the file, or the connection failed; parts that were stored remain stored.
    """
    before = path.stat()
    upload = client.start_upload(
        NewUpload(
            submission=submission,
            run=run,
            kind=kind,
            filename=path.name,
            size_bytes=before.st_size,
            sha256=sha256_of(path),
        )
    )
    stored = set(client.stored_parts(upload.id))
    with ThreadPoolExecutor(PARALLEL_PARTS) as pool:
        missing: list[Future[int]] = []
        for part in parts_of(path, upload.part_size_bytes):
            if part in stored:
                on_stored(part.size_bytes)
            else:
                missing.append(pool.submit(_send_part, client, upload, path, part))
        for sent in as_completed(missing):
            on_stored(sent.result())
    after = path.stat()
    if (after.st_mtime_ns, after.st_size) != (before.st_mtime_ns, before.st_size):
        # A store need not read the file again to see it: only the evaluation would, and take a quota slot.
        raise ProblemError.of(
            ErrorCode.ARTIFACT_HASH, message="The file changed while it was uploaded.", where=str(path)
        )
    return client.complete_upload(upload.id)


def parts_of(path: Path, part_size_bytes: int) -> Iterator[UploadPart]:
    """Yield the parts of a file, reading one at a time."""
    with path.open("rb") as file:
        number = 1
        while content := file.read(part_size_bytes):
            yield UploadPart(
                number=number, size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest()
            )
            number += 1


def _send_part(client: SiteClient, upload: UploadStatus, path: Path, part: UploadPart) -> int:
    """Send one part and return its size in bytes."""
    with path.open("rb") as file:
        file.seek((part.number - 1) * upload.part_size_bytes)
        content = file.read(part.size_bytes)
    for attempt in range(ADDRESSES):
        # Addresses expire soon, so each is requested only when its part is about to be sent.
        (url,) = client.part_urls(upload.id, [part])
        try:
            client.send_part(url, content)
            break
        except ProblemError as error:
            # It may have expired while a bad connection held the part up.
            if error.problem.code != ErrorCode.UPLOAD_URL or attempt == ADDRESSES - 1:
                raise
    return part.size_bytes
