"""Restoring a backup into an empty site, every file compared with its SHA-256."""

import hashlib
from pathlib import Path

from django.conf import settings
from django.db import transaction

from docvqa_site.operations.backup import (
    DATABASE,
    FILES,
    SECRET_KEY,
    Manifest,
    copy_secret_key,
    read_manifest,
)
from docvqa_site.operations.schema import last_migrations
from docvqa_site.operations.snapshots import BackupError, load
from docvqa_site.proofs.pages import draw_again
from docvqa_site.uploads.models import Upload, UploadState
from docvqa_site.uploads.sending import send
from docvqa_site.uploads.states import move_upload
from docvqa_site.uploads.stores import current_store
from evaluator.messages.file_hash import sha256_of


def verify_backup(folder: Path) -> Manifest:
    """Compare every file of a backup with its SHA-256, and return its manifest.

    Raises:
        BackupError: It isn't finished, or something is missing or damaged.
    """
    manifest = read_manifest(folder)
    if sha256_of(folder / DATABASE) != manifest.database_sha256:
        raise BackupError(f"{folder / DATABASE} is damaged: use another backup.")
    for file in manifest.files:
        path = folder / FILES / file.key
        if not path.exists() or sha256_of(path) != file.sha256:
            raise BackupError(f"{path} is missing or damaged: use another backup.")
    return manifest


def restore_backup(folder: Path) -> Manifest:
    """Restore a backup into this site, whose database and store must be empty.

    Unfinished uploads are aborted: their parts aren't in the backup, and whoever sent them starts again.

    Raises:
        BackupError: As `verify_backup`, or the backup's schema isn't that of this version, or the site isn't empty, or
            its key is another one.
    """
    manifest = verify_backup(folder)
    _reject_other_schema(manifest)
    _reject_other_secret_key(folder, manifest)
    store = current_store()
    for file in manifest.files:
        if store.size(file.key) is not None:
            raise BackupError(f"The store isn't empty: it has {file.key}.")
    load(folder / DATABASE)
    # From here on the site is known to have been empty, so nothing of another one is overwritten.
    copy_secret_key(folder, settings.HOME)
    for file in manifest.files:
        send(folder / FILES / file.key, file.key, store)
    _abort_unfinished()
    # Their images aren't in the backup.
    draw_again()
    return manifest


def _reject_other_schema(manifest: Manifest) -> None:
    """Raise `BackupError` unless this version has the schema that the backup has."""
    if manifest.migrations == (own := last_migrations()):
        return
    other = sorted(set(own) ^ set(manifest.migrations))
    version = f"version {manifest.version}" if manifest.version else "the version that made it, before 0.1.0"
    raise BackupError(
        f"The backup's database is of another version; they differ in {', '.join(other[:4])}. Restore it with "
        f"{version}, and then upgrade. `upgrade --dry-run` tells what would change."
    )


def _reject_other_secret_key(folder: Path, manifest: Manifest) -> None:
    """Raise `BackupError` unless a public site, whose key isn't in the backup, has the key that it had."""
    if (folder / SECRET_KEY).exists():
        return
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    if manifest.secret_key_sha256 not in {hashlib.sha256(key.encode()).hexdigest() for key in keys}:
        raise BackupError(
            "Neither PFL_SECRET_KEY nor PFL_SECRET_KEY_FALLBACKS has the key of the site that was backed up: add it."
        )


@transaction.atomic
def _abort_unfinished() -> None:
    for upload in Upload.objects.select_for_update().filter(state=UploadState.OPEN):
        move_upload(upload, UploadState.ABORTED)
