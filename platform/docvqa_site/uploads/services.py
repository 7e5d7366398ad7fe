"""Starting, resuming and ending uploads."""

import re
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.teams.models import Team
from docvqa_site.uploads.models import SignedPart, Upload, UploadState
from docvqa_site.uploads.parts import Part, part_size_bytes
from docvqa_site.uploads.signals import file_deleted
from docvqa_site.uploads.states import move_upload
from docvqa_site.uploads.storage import UNATTACHED, reject_beyond_quota, reject_when_full
from docvqa_site.uploads.store import PartUrl
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ErrorCode, ProblemError

SHA256 = re.compile(r"[0-9a-f]{64}")
# Of one team: every file of two submissions at three budgets.
MAX_OPEN_UPLOADS = 36
# How long the removal of a file may take before it is tried again.
REMOVAL = timedelta(hours=1)


def create_upload(team: Team | None, user: User, *, filename: str, size_bytes: int, sha256: str) -> Upload:
    """Start an upload of a file with this size and SHA-256, of a team or of the organizers. The store isn't asked yet.

    Raises `ProblemError`: `E_ARTIFACT_SIZE` for an empty file, `E_ARTIFACT_HASH` for a malformed SHA-256,
    `E_UPLOAD_LIMIT` when the team has too many unfinished uploads, `E_STORAGE_QUOTA` when it has no room for the file,
    `E_STORE_FULL` when the site has none.
    """
    if size_bytes <= 0:
        raise ProblemError.of(
            ErrorCode.ARTIFACT_SIZE,
            message="The file is empty.",
            where=filename,
            expected="at least 1 byte",
            found=f"{size_bytes} bytes",
            next_step="Choose the file written by the training run; writing may not have finished.",
        )
    if not SHA256.fullmatch(sha256):
        raise ProblemError.of(
            ErrorCode.ARTIFACT_HASH,
            message="The SHA-256 is invalid.",
            where=filename,
            expected="64 lower-case hexadecimal digits",
            found=sha256,
        )
    with transaction.atomic():
        if team is not None:
            Team.objects.select_for_update(no_key=True).get(pk=team.pk)
            _reject_too_many_open(team)
            reject_beyond_quota(team, size_bytes)
        reject_when_full(current_store(), size_bytes)
        key = uuid.uuid4().hex
        return Upload.objects.create(
            team=team,
            created_by=user,
            filename=clean_filename(filename),
            size_bytes=size_bytes,
            sha256=sha256,
            part_size_bytes=part_size_bytes(size_bytes, settings.UPLOAD_PART_SIZE_BYTES),
            store_key=f"{key[:2]}/{key}",
        )


def part_urls(upload: Upload, parts: Sequence[Part]) -> list[PartUrl]:
    """Return addresses to PUT these parts to, each good for one part of exactly this size and SHA-256.

    Raises `ProblemError`: `E_UPLOAD_STATE` unless the upload is open, `E_UPLOAD_PART` for a part that it can't have,
    `E_ARTIFACT_HASH` for the only part of a file unless it is that file, `E_STORE_FULL` when the site is out of
    storage.
    """
    _reject_unless_open(upload)
    for part in parts:
        _reject_impossible(upload, part)
    _reject_repeated(parts)
    store = current_store()
    reject_when_full(store, 0)
    name = _begun(upload)
    SignedPart.objects.bulk_create(
        [SignedPart(upload=upload, number=part.number, sha256=part.sha256) for part in parts],
        update_conflicts=True,
        unique_fields=["upload", "number"],
        update_fields=["sha256"],
    )
    return [store.part_url(upload.store_key, name, part) for part in parts]


def stored_parts(upload: Upload) -> list[Part]:
    """Return the parts that the store has; none once the upload has ended."""
    if not upload.store_upload:
        return []
    store, signed = current_store(), _signed(upload)
    parts = store.list_parts(upload.store_key, upload.store_upload)
    if not parts and upload.state == UploadState.OPEN and store.size(upload.store_key) == upload.size_bytes:
        # The file has been made of them, and the process that was to note that was killed.
        return _parts(upload, signed)
    return [replace(part, sha256=part.sha256 or signed.get(part.number, "")) for part in parts]


def complete(upload: Upload, *, actor: User | None = None) -> None:
    """Make the file of its parts. May be called again at any time, also after a crash.

    Raises `ProblemError`: `E_UPLOAD_STATE` when it was aborted, else as `Store.complete`.
    """
    store = current_store()
    if upload.state == UploadState.COMPLETED:
        return
    _reject_unless_open(upload)
    parts = _parts(upload, _signed(upload))
    # The store is never asked inside a transaction, since it may take long; the row is read again below.
    store.complete(upload.store_key, _begun(upload), parts)
    with transaction.atomic():
        current = Upload.objects.select_for_update().get(pk=upload.pk)
        if current.state == UploadState.OPEN:
            move_upload(current, UploadState.COMPLETED, actor=actor)
            current.signed_parts.all().delete()
    upload.state, upload.finished_at = current.state, current.finished_at
    if current.state != UploadState.COMPLETED:
        store.delete(upload.store_key)
        raise ProblemError.of(ErrorCode.UPLOAD_STATE)


def abort(upload: Upload, *, actor: User | None = None) -> None:
    """Abort an unfinished upload. Raises `ProblemError` (`E_UPLOAD_STATE`) when it is completed."""
    with transaction.atomic():
        current = Upload.objects.select_for_update().get(pk=upload.pk)
        if current.state == UploadState.COMPLETED:
            raise ProblemError.of(ErrorCode.UPLOAD_STATE, message="The upload is already completed.")
        _remove(current, UploadState.ABORTED, actor)


def discard(upload: Upload, *, actor: User | None = None) -> None:
    """Remove a file that is no longer wanted, in whatever state; it is deleted when the transaction commits."""
    with transaction.atomic():
        _remove(Upload.objects.select_for_update().get(pk=upload.pk), UploadState.ABORTED, actor)


def expire(upload: Upload, *, rule: str) -> None:
    """Remove a file by a rule of retention, which the audit entry names; deleted when the transaction commits."""
    with transaction.atomic():
        _remove(Upload.objects.select_for_update().get(pk=upload.pk), UploadState.EXPIRED, None, rule=rule)


def abandoned(before: datetime) -> QuerySet[Upload]:
    """Return the uploads that were started before this time and not completed, and old files that nothing refers to."""
    return Upload.objects.filter(
        Q(state=UploadState.OPEN, created_at__lt=before)
        # One that was completed a moment ago is about to be attached.
        | Q(state=UploadState.COMPLETED, finished_at__lt=before) & UNATTACHED
    )


def remove_leftovers(limit: int, now: datetime | None = None) -> int:
    """Delete what the store still holds of removed uploads because it was away, or the process was killed.

    Return their number, `limit` at most.
    """
    ended = Upload.objects.filter(
        state__in=[UploadState.ABORTED, UploadState.EXPIRED],
        removed_at=None,
        finished_at__lt=(now or timezone.now()) - REMOVAL,
    )
    leftovers = list(ended.order_by("finished_at")[:limit])
    for upload in leftovers:
        _delete_stored(upload)
    return len(leftovers)


def clean_filename(name: str) -> str:
    """Return the last component of a file's name, printable and of 200 characters at most. For display only."""
    last = PurePosixPath(name.replace("\\", "/")).name
    return "".join(c for c in last if c.isprintable()).strip()[-200:] or "file"


def _begun(upload: Upload) -> str:
    """Return the store's name for the upload, which is begun there unless it has been."""
    if not upload.store_upload:
        store = current_store()
        name = store.begin(upload.store_key, upload.part_size_bytes)
        still_open = Upload.objects.filter(pk=upload.pk, state=UploadState.OPEN, store_upload="")
        if still_open.update(store_upload=name):
            upload.store_upload = name
        else:
            # Another request was faster: it began the upload as well, or aborted it.
            store.abort(upload.store_key, name)
            upload.refresh_from_db(fields=["state", "store_upload"])
            _reject_unless_open(upload)
    return upload.store_upload


def _parts(upload: Upload, signed: Mapping[int, str]) -> list[Part]:
    """Return all parts of the file, with the SHA-256 that their addresses were signed for."""
    return [
        Part(number, upload.part_size(number), signed.get(number, ""))
        for number in range(1, upload.parts_total + 1)
    ]


def _signed(upload: Upload) -> dict[int, str]:
    """Return the SHA-256 that the last address of each part was signed for."""
    return dict(upload.signed_parts.values_list("number", "sha256"))


def _reject_too_many_open(team: Team) -> None:
    count = Upload.objects.filter(team=team, state=UploadState.OPEN).count()
    if count >= MAX_OPEN_UPLOADS:
        raise ProblemError.of(
            ErrorCode.UPLOAD_LIMIT, expected=f"fewer than {MAX_OPEN_UPLOADS} unfinished uploads", found=count
        )


def _reject_impossible(upload: Upload, part: Part) -> None:
    if not 1 <= part.number <= upload.parts_total:
        raise ProblemError.of(
            ErrorCode.UPLOAD_PART,
            message="The upload doesn't have this part.",
            expected=f"a number from 1 to {upload.parts_total}",
            found=part.number,
            next_step="Cut the file into parts of the upload's part_size_bytes.",
        )
    if part.size_bytes != upload.part_size(part.number) or not SHA256.fullmatch(part.sha256):
        raise ProblemError.of(
            ErrorCode.UPLOAD_PART,
            message="This size or SHA-256 isn't valid for the part.",
            where=f"part {part.number}",
            expected=f"{upload.part_size(part.number)} bytes and 64 lower-case hexadecimal digits",
            found=f"{part.size_bytes} bytes, {part.sha256}",
            next_step="Cut the file into parts of the upload's part_size_bytes.",
        )
    if upload.parts_total == 1 and part.sha256 != upload.sha256:
        raise ProblemError.of(ErrorCode.ARTIFACT_HASH, expected=upload.sha256, found=part.sha256)


def _reject_repeated(parts: Sequence[Part]) -> None:
    (number, times), *_ = Counter(part.number for part in parts).most_common(1) or [(0, 0)]
    if times > 1:
        raise ProblemError.of(
            ErrorCode.UPLOAD_PART,
            message="A request can't ask for two addresses for one part.",
            where=f"part {number}",
            expected="every number once",
            found=f"{times} times",
            next_step="Request one address per part.",
        )


def _reject_unless_open(upload: Upload) -> None:
    if upload.state != UploadState.OPEN:
        raise ProblemError.of(
            ErrorCode.UPLOAD_STATE, expected="an open upload", found=f"one that is {upload.state}"
        )


def _remove(upload: Upload, state: UploadState, actor: User | None, **details: str) -> None:
    """Move the locked row to `state`, unless it has been; its stored bytes are removed when that is committed."""
    if upload.state in {UploadState.OPEN, UploadState.COMPLETED}:
        move_upload(upload, state, actor=actor, **details)
        upload.signed_parts.all().delete()
    # Robust: what a store that is away doesn't delete now, `remove_leftovers` deletes later.
    transaction.on_commit(lambda: _delete_stored(upload), robust=True)


def _delete_stored(upload: Upload) -> None:
    store = current_store()
    if upload.store_upload:
        store.abort(upload.store_key, upload.store_upload)
    store.delete(upload.store_key)
    file_deleted.send(sender=Upload, upload=upload)
    Upload.objects.filter(pk=upload.pk).update(removed_at=timezone.now())
