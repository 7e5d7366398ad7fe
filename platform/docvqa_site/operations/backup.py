"""Backup of a site: its database and the files that it refers to, as of one moment, while the site runs.

The snapshot of the database comes first, then the files that the snapshot names. That order suffices: a file gets its
name in the store once, when it is complete, and never changes; so whatever the snapshot calls completed was in the
store at its moment and can be copied later. A file can only disappear meanwhile, because its draft was withdrawn. The
manifest names such files.

A folder without `manifest.json` is a backup that wasn't finished. Files are linked where the backup is on the store's
disk, and copied otherwise. The manifest has the SHA-256 of what was saved. It need not be the one in the database,
which is what the uploader announced: no one may stop the backups by announcing something else. The manifest names such
files too.
"""

import hashlib
import os
import shutil
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.db import connection
from django.utils import timezone
from pydantic import BaseModel

from docvqa_site.audit.versions import boards_versions
from docvqa_site.challenge.models import Track
from docvqa_site.liveness.models import note_backup
from docvqa_site.operations.ranks import Ranks, all_ranks
from docvqa_site.operations.schema import last_migrations, missing_migrations
from docvqa_site.operations.snapshots import BackupError, StoredFile, snapshot
from docvqa_site.uploads.folder_store import FolderStore
from docvqa_site.uploads.models import Upload, UploadState
from docvqa_site.uploads.store import Store
from docvqa_site.uploads.stores import current_store
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import evaluator_version

MANIFEST = "manifest.json"
DATABASE = "database"
FILES = "files"
SECRET_KEY = "secret_key"  # noqa: S105  (the name of a file)


class Manifest(BaseModel):
    """What a backup consists of.

    `version` is the one that made it, and `migrations` has each app's last migration, which tells which versions can
    open it; both are empty in backups by versions before 0.1.0. `ranks` are those of all boards, and None if a board
    changed while the backup was made. `removed` are files that the database still names, and that were deleted while
    the backup was made. `unexpected` are the keys of files that aren't what was announced: their uploader was wrong, or
    the disk has damaged them.
    """

    made_at: datetime
    vendor: str
    version: str = ""
    migrations: list[str] = []
    ranks: Ranks | None = None
    database_sha256: str
    secret_key_sha256: str
    files: list[StoredFile]
    removed: list[StoredFile] = []
    unexpected: list[str] = []


def make_backup(folder: Path, *, link: bool = True) -> Manifest:
    """Write a backup of this site into `folder`, which must be empty or not exist.

    Raises:
        BackupError: The folder isn't empty, the database is of another version, a program is missing or failed, or a
            file is missing or has another size.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise BackupError(f"{folder} is not empty: name a new folder for each backup.")
    if missing := missing_migrations():
        raise BackupError(
            f"The database lacks {len(missing)} migrations of this version, {missing[0]} among them: make the backup "
            "with the version that has run the site."
        )
    tracks = list(Track.objects.values_list("pk", flat=True))
    before, ranks = boards_versions(tracks), all_ranks()
    files = snapshot(folder / DATABASE)
    are_those_of_the_copy = boards_versions(tracks) == before
    found = {file.key: _save(file, current_store(), folder / FILES / file.key, link) for file in files}
    saved = [file for file in found.values() if file is not None]
    # Of a site that made its own; a public site's is in its environment, and never in a backup.
    copy_secret_key(settings.HOME, folder)
    manifest = Manifest(
        made_at=timezone.now(),
        vendor=connection.vendor,
        version=evaluator_version(),
        migrations=last_migrations(),
        ranks=ranks if are_those_of_the_copy else None,
        database_sha256=sha256_of(folder / DATABASE),
        secret_key_sha256=hashlib.sha256(settings.SECRET_KEY.encode()).hexdigest(),
        files=saved,
        removed=[file for file in files if found[file.key] is None],
        unexpected=[file.key for file in files if found[file.key] not in (None, file)],
    )
    # Last and at once: whoever finds it finds a whole backup.
    unfinished = folder / f"{MANIFEST}.unfinished"
    unfinished.write_text(manifest.model_dump_json(indent=1))
    unfinished.replace(folder / MANIFEST)
    note_backup()
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a finished backup. Raises `BackupError` if there is none."""
    try:
        return Manifest.model_validate_json((folder / MANIFEST).read_text())
    except FileNotFoundError as error:
        raise BackupError(f"{folder} has no {MANIFEST}, so it is no finished backup.") from error


def _save(file: StoredFile, store: Store, target: Path, link: bool) -> StoredFile | None:
    """Put one file into the backup, and return it as it is; None if it has been removed since the snapshot."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        if not (link and isinstance(store, FolderStore) and _linked(store, file, target)):
            with closing(store.open(file.key)) as source:
                _copy(source, target)
    except FileNotFoundError as error:
        if Upload.objects.filter(store_key=file.key, state=UploadState.COMPLETED).exists():
            raise BackupError(
                f"The store has no {file.key}, which the database says is complete. Restore that file from an "
                "earlier backup, or remove its upload, and begin again."
            ) from error
        return None
    if (size_bytes := target.stat().st_size) != file.size_bytes:
        raise BackupError(f"{file.key} is damaged in the store: it has {size_bytes} bytes.")
    return file.model_copy(update={"sha256": sha256_of(target)})


def _linked(store: FolderStore, file: StoredFile, target: Path) -> bool:
    """Link the store's file, which never changes, into the backup; False if that is another disk."""
    try:
        os.link(store.folder / "objects" / file.key, target)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return True


def _copy(source: BinaryIO, target: Path) -> None:
    with target.open("wb") as copy:
        shutil.copyfileobj(source, copy)
        copy.flush()
        os.fsync(copy.fileno())


def copy_secret_key(source: Path, target: Path) -> None:
    """Copy the key from one folder to another, if it is there, readable by its owner alone."""
    if (source / SECRET_KEY).exists():
        (target / SECRET_KEY).touch(mode=0o600)
        (target / SECRET_KEY).write_text((source / SECRET_KEY).read_text())
