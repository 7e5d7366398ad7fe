"""Starting, resuming and ending uploads."""

import re
import uuid
from collections.abc import Sequence
from datetime import timedelta
from pathlib import PurePosixPath

from django.conf import settings
from django.db import transaction
from django.db.models import Q, Sum
from django.utils import timezone

from evaluator.errors import ErrorCode, ProblemError
from portal.accounts.models import User
from portal.teams.models import Team
from portal.uploads.models import Upload, UploadState
from portal.uploads.parts import Part, part_size_bytes
from portal.uploads.states import move_upload
from portal.uploads.stores import PartUrl, current_store

SHA256 = re.compile(r"[0-9a-f]{64}")
# Of one team: every file of two submissions at three budgets.
MAX_OPEN_UPLOADS = 24
MAX_OPEN_BYTES = 32 * 1024**3


def create_upload(team: Team, user: User, *, filename: str, size_bytes: int, sha256: str) -> Upload:
    """Start an upload of a file with this size and SHA-256.

    Raises `ProblemError`: `E_ARTIFACT_SIZE` for an empty file, `E_ARTIFACT_HASH` for a malformed SHA-256,
    `E_UPLOAD_LIMIT` when the team has too many unfinished uploads.
    """
    if size_bytes <= 0:
        raise ProblemError.of(
            ErrorCode.ARTIFACT_SIZE, where=filename, expected="1 byte or more", found=f"{size_bytes} bytes"
        )
    if not SHA256.fullmatch(sha256):
        raise ProblemError.of(
            ErrorCode.ARTIFACT_HASH,
            message="The SHA-256 is malformed.",
            where=filename,
            expected="64 lower-case hexadecimal digits",
            found=sha256,
        )
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        _reject_too_many_open(team, size_bytes)
        key = uuid.uuid4().hex
        key = f"{key[:2]}/{key}"
        return Upload.objects.create(
            team=team,
            created_by=user,
            filename=clean_filename(filename),
            size_bytes=size_bytes,
            sha256=sha256,
            part_size_bytes=part_size_bytes(size_bytes, settings.UPLOAD_PART_SIZE_BYTES),
            store_key=key,
            store_upload=current_store().begin(key),
        )


def part_urls(upload: Upload, parts: Sequence[Part]) -> list[PartUrl]:
    """Return addresses to PUT these parts to, each good for one part of exactly this size and SHA-256.

    Raises `ProblemError`: `E_UPLOAD_STATE` unless the upload is open, `E_UPLOAD_PART` for a part that it can't have.
    """
    _reject_unless_open(upload)
    for part in parts:
        if not 1 <= part.number <= upload.parts_total:
            raise ProblemError.of(
                ErrorCode.UPLOAD_PART,
                message="The upload has no such part.",
                expected=f"a number from 1 to {upload.parts_total}",
                found=part.number,
                next_step="Cut the file into parts of the upload's part_size_bytes.",
            )
        if part.size_bytes != upload.part_size(part.number) or not SHA256.fullmatch(part.sha256):
            raise ProblemError.of(
                ErrorCode.UPLOAD_PART,
                message="The part can't have this size or SHA-256.",
                where=f"part {part.number}",
                expected=f"{upload.part_size(part.number)} bytes and 64 lower-case hexadecimal digits",
                found=f"{part.size_bytes} bytes, {part.sha256}",
                next_step="Cut the file into parts of the upload's part_size_bytes.",
            )
    store = current_store()
    return [store.part_url(upload.store_key, upload.store_upload, part) for part in parts]


def stored_parts(upload: Upload) -> list[Part]:
    """Return the parts that the store has; none once the upload has ended."""
    return current_store().list_parts(upload.store_key, upload.store_upload)


def complete(upload: Upload, *, actor: User | None = None) -> None:
    """Join the parts into the file. May be called again at any time, also after a crash.

    Raises `ProblemError`: `E_UPLOAD_STATE` when it was aborted, else as `Store.complete`.
    """
    store = current_store()
    if upload.state == UploadState.COMPLETED:
        return
    _reject_unless_open(upload)
    sizes = [upload.part_size(number) for number in range(1, upload.parts_total + 1)]
    # Minutes of input and output must not happen inside a transaction; the row is read again below.
    store.complete(upload.store_key, upload.store_upload, sizes, upload.sha256)
    with transaction.atomic():
        current = Upload.objects.select_for_update().get(pk=upload.pk)
        if current.state == UploadState.OPEN:
            move_upload(current, UploadState.COMPLETED, actor=actor)
    upload.state, upload.finished_at = current.state, current.finished_at
    if current.state == UploadState.ABORTED:
        store.delete(upload.store_key)
        raise ProblemError.of(ErrorCode.UPLOAD_STATE)


def abort(upload: Upload, *, actor: User | None = None) -> None:
    """Abort an unfinished upload. Raises `ProblemError` (`E_UPLOAD_STATE`) when it is completed."""
    with transaction.atomic():
        current = Upload.objects.select_for_update().get(pk=upload.pk)
        if current.state == UploadState.COMPLETED:
            raise ProblemError.of(ErrorCode.UPLOAD_STATE, message="The upload is already completed.")
        _remove(current, actor)


def discard(upload: Upload, *, actor: User | None = None) -> None:
    """Remove a file that is no longer wanted, in whatever state; it is deleted when the transaction commits."""
    with transaction.atomic():
        _remove(Upload.objects.select_for_update().get(pk=upload.pk), actor)


def abort_stale(older_than: timedelta) -> int:
    """Remove uploads that were never completed and files that nothing refers to, if they are old enough.

    Return their number.
    """
    stale = list(
        Upload.objects.filter(
            Q(state=UploadState.OPEN) | Q(state=UploadState.COMPLETED, artifact__isnull=True),
            created_at__lt=timezone.now() - older_than,
        )
    )
    for upload in stale:
        discard(upload)
    return len(stale)


def clean_filename(name: str) -> str:
    """Return the last component of a file's name, printable and of 200 characters at most. For display only."""
    last = PurePosixPath(name.replace("\\", "/")).name
    return "".join(c for c in last if c.isprintable()).strip()[-200:] or "file"


def _reject_too_many_open(team: Team, size_bytes: int) -> None:
    unfinished = Upload.objects.filter(team=team, state=UploadState.OPEN)
    count = unfinished.count()
    total: int = unfinished.aggregate(total=Sum("size_bytes"))["total"] or 0
    if count >= MAX_OPEN_UPLOADS or total + size_bytes > MAX_OPEN_BYTES:
        raise ProblemError.of(
            ErrorCode.UPLOAD_LIMIT,
            expected=f"{MAX_OPEN_UPLOADS} unfinished uploads and {MAX_OPEN_BYTES} bytes at most",
            found=f"{count} uploads of {total} bytes, and {size_bytes} bytes more",
        )


def _reject_unless_open(upload: Upload) -> None:
    if upload.state != UploadState.OPEN:
        raise ProblemError.of(
            ErrorCode.UPLOAD_STATE, expected="an open upload", found=f"one that is {upload.state}"
        )


def _remove(upload: Upload, actor: User | None) -> None:
    """Mark the locked row as aborted; its stored bytes are removed when that is committed."""
    if upload.state != UploadState.ABORTED:
        move_upload(upload, UploadState.ABORTED, actor=actor)
    store = current_store()

    def remove_stored() -> None:
        store.abort(upload.store_key, upload.store_upload)
        store.delete(upload.store_key)

    transaction.on_commit(remove_stored)
