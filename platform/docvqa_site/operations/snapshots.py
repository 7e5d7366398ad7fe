"""A consistent copy of the database, as its own tools make it, and the files that the copy refers to.

SQLite copies itself through its backup interface. PostgreSQL's `pg_dump` reads the snapshot of a transaction that lists
the files as well. Django's `dumpdata` would do for neither: it holds everything in memory and leaves out sequences.
"""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from pydantic import BaseModel

from docvqa_site.downloads.models import Download
from docvqa_site.uploads.models import Upload, UploadState

COLUMNS = ("store_key", "size_bytes", "sha256")


class BackupError(Exception):
    """The backup can't be made or used; the message says why and what to do."""


class StoredFile(BaseModel):
    """A file in the store: of a completed upload, or a download that the organizers offer."""

    key: str
    size_bytes: int
    sha256: str


def snapshot(target: Path) -> list[StoredFile]:
    """Copy the database to the file `target`, and return the files that the copy refers to.

    Raises:
        BackupError: A program is missing or failed.
    """
    return _snapshot_sqlite(target) if connection.vendor == "sqlite" else _snapshot_postgresql(target)


def load(source: Path) -> None:
    """Load a copy into this site's database, which must be empty.

    Raises:
        BackupError: It isn't empty, or a program is missing or failed.
    """
    with connection.cursor() as cursor:
        if tables := connection.introspection.table_names(cursor):
            raise BackupError(
                f"The database isn't empty: it has {len(tables)} tables, {tables[0]} among them."
            )
    if connection.vendor == "sqlite":
        _load_sqlite(source)
    else:
        _run(
            "pg_restore",
            "--no-owner",
            "--no-privileges",
            "--exit-on-error",
            "--single-transaction",
            str(source),
        )


def _snapshot_sqlite(target: Path) -> list[StoredFile]:
    connection.ensure_connection()
    with closing(sqlite3.connect(target)) as copy:
        connection.connection.backup(copy)
        columns = ", ".join(COLUMNS)
        rows = copy.execute(
            f"SELECT {columns} FROM {Upload._meta.db_table} WHERE state = ? "  # noqa: S608
            f"UNION ALL SELECT {columns} FROM {Download._meta.db_table} WHERE store_key <> '' ORDER BY store_key",
            [UploadState.COMPLETED.value],
        ).fetchall()
    return _as_files(rows)


def _load_sqlite(source: Path) -> None:
    connection.ensure_connection()
    with closing(sqlite3.connect(source)) as copy:
        copy.backup(connection.connection)


def _snapshot_postgresql(target: Path) -> list[StoredFile]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        (name,) = cursor.fetchone()
        _run("pg_dump", "--format=custom", "--no-owner", f"--snapshot={name}", f"--file={target}")
        completed = Upload.objects.filter(state=UploadState.COMPLETED).values_list(*COLUMNS)
        downloads = Download.objects.exclude(store_key="").values_list(*COLUMNS)
        return _as_files(completed.union(downloads, all=True).order_by("store_key"))


def _as_files(rows: Any) -> list[StoredFile]:
    return [StoredFile(key=key, size_bytes=size, sha256=sha256) for key, size, sha256 in rows]


def _run(program: str, *arguments: str) -> None:
    """Run one of PostgreSQL's programs on this site's database."""
    path = shutil.which(program, path=os.environ.get("PG_BIN")) or shutil.which(program)
    if path is None:
        raise BackupError(
            f"{program} is missing: install PostgreSQL's client programs, or name them in PG_BIN."
        )
    database = settings.DATABASES["default"] | connection.settings_dict
    server = [
        f"--host={database['HOST']}",
        f"--port={database['PORT'] or 5432}",
        f"--username={database['USER']}",
    ]
    result = subprocess.run(
        [path, *server, "--no-password", f"--dbname={database['NAME']}", *arguments],
        env={**os.environ, "PGPASSWORD": str(database["PASSWORD"] or "")},
        text=True,
        capture_output=True,
        check=False,
    )
    if result.returncode:
        raise BackupError(f"{program} failed: {result.stderr.strip()[-2000:]}")
