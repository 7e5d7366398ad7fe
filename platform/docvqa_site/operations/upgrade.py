"""A trial of an upgrade: a backup migrated in a database of its own, its ranks compared with those it was made with."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from django.core.management import call_command
from django.db import Error, connection

from docvqa_site.operations.backup import DATABASE, Manifest, read_manifest
from docvqa_site.operations.ranks import all_ranks, changed_ranks
from docvqa_site.operations.schema import different_columns, missing_migrations
from docvqa_site.operations.snapshots import BackupError, load
from evaluator.messages.file_hash import sha256_of


@dataclass(frozen=True)
class Trial:
    """How a backup fared under this version.

    Attributes:
        migrations: Those that were applied.
        columns: The columns in which the migrated database differs from the models; none in a sound version.
        changed_ranks: A line for each run whose rank changed; None if the backup has no ranks.
    """

    manifest: Manifest
    migrations: list[str]
    columns: list[str]
    changed_ranks: list[str] | None


def try_upgrade(folder: Path) -> Trial:
    """Restore the database of a backup into a scratch database, migrate it, and compare the ranks.

    Raises:
        BackupError: The backup isn't finished or its database damaged, or there can't be a scratch database.
        SchemaError: No migrations lead from the backup's schema to this version.
    """
    manifest = read_manifest(folder)
    if sha256_of(folder / DATABASE) != manifest.database_sha256:
        raise BackupError(f"{folder / DATABASE} is damaged: use another backup.")
    if manifest.vendor != connection.vendor:
        raise BackupError(f"The backup is of {manifest.vendor}, and this site uses {connection.vendor}.")
    with scratch_database():
        load(folder / DATABASE)
        migrations = missing_migrations()
        call_command("migrate", verbosity=0, interactive=False)
        columns = different_columns()
        # Where columns are missing, boards can't be asked.
        ranks = {} if columns else all_ranks()
    changed = None if manifest.ranks is None else changed_ranks(manifest.ranks, ranks)
    return Trial(manifest, migrations, columns, changed)


@contextmanager
def scratch_database() -> Iterator[None]:
    """Point this process at an empty database beside the site's own, which is removed in the end."""
    make = _scratch_file if connection.vendor == "sqlite" else _scratch_on_server
    with make() as name:
        own = connection.settings_dict["NAME"]
        connection.close()
        connection.settings_dict["NAME"] = name
        try:
            yield
        finally:
            connection.close()
            connection.settings_dict["NAME"] = own


@contextmanager
def _scratch_file() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="pfl-upgrade-") as folder:
        yield os.path.join(folder, "db.sqlite3")


@contextmanager
def _scratch_on_server() -> Iterator[str]:
    name = f"pfl_upgrade_{uuid4().hex[:12]}"
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
    except Error as error:
        raise BackupError(
            f"The database account may not create a scratch database: {str(error).strip()}. Try the upgrade with an "
            "account that has CREATEDB, or on another server."
        ) from error
    try:
        yield name
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
