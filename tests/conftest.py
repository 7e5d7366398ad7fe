"""Services that several packages of tests share, and how tests are shared out among pytest's processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from django.core.management.commands import flush
from django.db import connections
from django.db.backends.postgresql.operations import DatabaseOperations
from filelock import FileLock
from typing_extensions import override
from xdist.scheduler import LoadGroupScheduling

from evaluator.folding import opening
from tests.services.seaweedfs import SeaweedFS

# Processes that a shell starts in the background ignore it, and so would those that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def seaweedfs() -> Iterator[SeaweedFS]:
    """One S3 server for the tests of this process; each test makes a bucket of its own."""
    with SeaweedFS() as server:
        yield server


@pytest.fixture
def few_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no more rounds of a large run than its track says, as if the file of their messages had no room."""
    monkeypatch.setattr(opening, "MAX_MESSAGES_BYTES", 0)


# What migrating fills, and no test changes.
FILLED = {"django_content_type", "auth_permission", "auth_group", "auth_group_permissions"}


@pytest.fixture(scope="session", autouse=True)
def quick_flush() -> Iterator[None]:
    """Delete what a test committed row by row: there are few, and to truncate makes new files for every table."""

    def sql_flush(
        operations: DatabaseOperations, _style: object, tables: Iterable[str], **_options: bool
    ) -> list[str]:
        emptied = [operations.quote_name(name) for name in tables if name not in FILLED]
        # No triggers: neither those of keys to other tables nor the one that protects audit entries.
        return ["SET LOCAL session_replication_role = replica", *(f"DELETE FROM {name}" for name in emptied)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "sql_flush", sql_flush)
        # Of what it fills, nothing is gone.
        patch.setattr(flush, "emit_post_migrate_signal", lambda *_, **__: None)
        yield


MIGRATED = "migrated"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,
    tmp_path_factory: pytest.TempPathFactory,
    worker_id: str,
) -> None:
    """Have pytest's processes copy a database that one of them migrated: to migrate takes ten times as long."""
    if worker_id == "master":
        return
    done = tmp_path_factory.getbasetemp().parent / MIGRATED
    with FileLock(f"{done}.lock"):
        if not done.exists():
            migrate(os.environ["PFL_TEST_POSTGRES_URL"])
            done.touch()
    connections["default"].settings_dict["TEST"].update(TEMPLATE=MIGRATED, MIGRATE=False)


def migrate(server: str) -> None:
    """Make the database that the others are copies of. Nothing stays connected to it, or it couldn't be copied."""
    connection = psycopg2.connect(server)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {MIGRATED}")
    connection.close()
    subprocess.run(
        [sys.executable, Path(__file__).parents[1] / "manage.py", "migrate", "--verbosity", "0"],
        env={**os.environ, "PFL_DATABASE_URL": f"{server.rsplit('/', 1)[0]}/{MIGRATED}"},
        check=True,
    )


# Whose programs are forked from a process that has loaded their libraries: to load them takes so long that one
# process of pytest does, for a whole group. There are two, as they wait for most of their time. For a file that is in
# neither, a third process would.
FORKING = {
    "forking brokers": (
        "tests/evaluator/scoring/test_predictions.py",
        "tests/evaluator/worker/",
        "tests/journeys/test_demonstration.py",
        "tests/starter_kit/learning/test_page_features.py",
        "tests/starter_kit/notebooks/",
    ),
    "forking the kit": (
        "tests/starter_kit/commands/",
        "tests/starter_kit/engines/test_devices.py",
        "tests/starter_kit/engines/test_flower_processes.py",
        "tests/starter_kit/engines/test_processes.py",
        "tests/starter_kit/runs/test_folder.py",
        "tests/starter_kit/runs/test_transcript.py",
        "tests/starter_kit/scaffolding/test_writing.py",
        "tests/starter_kit/test_submitting.py",
        "tests/starter_kit/weights/test_converting.py",
    ),
}


def forking_group(nodeid: str) -> str | None:
    """The group of a test whose programs are forked."""
    return next((group for group, files in FORKING.items() if nodeid.startswith(files)), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with groups of files, which take longest and wait for most of it; files fill up what time is left."""

    def is_alone(item: pytest.Item) -> bool:
        return forking_group(item.nodeid) is None and item.get_closest_marker("xdist_group") is None

    items.sort(key=is_alone)


class FilesAndGroups(LoadGroupScheduling):  # type: ignore[misc]  # it has no types
    """Gives the tests of a file, or of a group of files, to one of pytest's processes: they share what they start."""

    @override
    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        return forking_group(nodeid) or (nodeid.partition("::")[0] if scope == nodeid else scope)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesAndGroups:
    return FilesAndGroups(config, log)
