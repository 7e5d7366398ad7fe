"""Databases of the version before 0.1.0, upgraded to this one.

`previous` has a finished demonstration's database with runs in every state besides, as SQLite's file and as `pg_dump`
writes it, its secret key, and the ranks that the previous version gave.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from docvqa_site.challenge.rankings import BEST_ANLS
from docvqa_site.operations.backup import DATABASE, MANIFEST, Manifest, make_backup, read_manifest
from docvqa_site.operations.checks import check_migrations
from docvqa_site.operations.ranks import changed_ranks
from docvqa_site.operations.restore import restore_backup
from docvqa_site.operations.schema import last_migrations
from docvqa_site.operations.snapshots import BackupError, load, snapshot
from docvqa_site.operations.upgrade import scratch_database, try_upgrade
from evaluator.messages.file_hash import sha256_of
from tests.docvqa_site.factories import make_run, make_submission, make_track
from tests.services.postgres import binaries

PREVIOUS = Path(__file__).parent / "previous"
ROOT = Path(__file__).parents[3]
# Opens every address that pages link to, as a visitor and as everybody whom the demonstration made.
CRAWL = """
import django
django.setup()
from collections import Counter
from types import SimpleNamespace
from django.test import Client
from docvqa_site.accounts.models import User
from docvqa_site.submissions.models import Run
from tests.journeys.crawl import Crawl

class Session:
    def __init__(self, user):
        self.client = Client(raise_request_exception=False, SERVER_NAME="127.0.0.1", SERVER_PORT="8000")
        if user:
            self.client.force_login(user)
    def get(self, address, **_):
        answer = self.client.get(address.removeprefix("http://127.0.0.1:8000"))
        text = "" if answer.streaming else answer.content.decode(errors="replace")
        is_redirect = answer.status_code in (301, 302)
        return SimpleNamespace(
            status_code=answer.status_code, is_redirect=is_redirect, text=text, headers=answer.headers
        )

known, opened = {}, 0
for user in [None, *User.objects.filter(email__endswith="@demo.example")]:
    crawl = Crawl("http://127.0.0.1:8000", Session(user), each=1, cpu_s=lambda: 0, known=known)
    for fault in crawl.run("/"):
        print(user, fault)
    opened += len(crawl.costs)
print(opened, dict(Counter(Run.objects.values_list("state", flat=True))))
"""


@pytest.fixture(autouse=True)
def postgres_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_BIN", str(binaries()))


def previous_backup(folder: Path, vendor: str) -> Path:
    """A backup by the previous version, which had each app's first migration alone and no files."""
    folder.mkdir()
    if vendor == "sqlite":
        (folder / DATABASE).write_bytes(gzip.decompress((PREVIOUS / "sqlite.gz").read_bytes()))
    else:
        shutil.copyfile(PREVIOUS / "postgresql", folder / DATABASE)
    manifest = Manifest(
        made_at=datetime(2026, 11, 28, tzinfo=UTC),
        vendor=vendor,
        version="0.1.0.dev0",
        migrations=["submissions.0001_squashed_0012"],
        ranks=json.loads((PREVIOUS / "ranks.json").read_text()),
        database_sha256=sha256_of(folder / DATABASE),
        secret_key_sha256="",
        files=[],
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json())
    return folder


def manage(*arguments: str | Path, **variables: str) -> str:
    """Run a command of a site of these variables, and return all that it printed."""
    ended = subprocess.run(
        [sys.executable, "-m", "django", *map(str, arguments)],
        env={**os.environ, **variables, "PYTHONPATH": f"{ROOT}/platform:{ROOT}"},
        text=True,
        capture_output=True,
        check=False,
    )
    return f"{ended.stdout}{ended.stderr}\nstatus {ended.returncode}"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("vendor", ["sqlite", "postgresql"])
def test_no_rank_changes_by_the_upgrade(tmp_path: Path, vendor: str) -> None:
    backup = previous_backup(tmp_path / "backup", vendor)
    site = {"PFL_HOME": str(tmp_path / "home")}
    if vendor == "sqlite":
        site["PFL_DATABASE_URL"] = ""
    else:
        server = connection.settings_dict
        site["PFL_DATABASE_URL"] = (
            f"postgres://{server['USER']}@{server['HOST']}:{server['PORT']}/{server['NAME']}"
        )
    printed = manage("upgrade", "--dry-run", backup, **site)
    assert "\n0 ranks change." in printed
    assert printed.endswith("status 0")


@pytest.mark.django_db(transaction=True)
def test_no_rank_changes_by_the_upgrade_of_ten_thousand_submissions(tmp_path: Path) -> None:
    backup = previous_backup(tmp_path / "backup", "postgresql")
    manifest = read_manifest(backup)
    assert manifest.ranks is not None
    ranks = manifest.ranks["track-1"]
    with scratch_database():
        load(backup / DATABASE)
        ranks |= copies_behind(max(ranks, key=lambda run: ranks[run]), len(ranks), 10_000)
        (backup / DATABASE).unlink()
        snapshot(backup / DATABASE)
    manifest = manifest.model_copy(update={"database_sha256": sha256_of(backup / DATABASE)})
    (backup / MANIFEST).write_text(manifest.model_dump_json())
    trial = try_upgrade(backup)
    assert (trial.columns, trial.changed_ranks) == ([], [])


def copies_behind(run: str, rank: int, count: int) -> dict[str, int]:
    """Copy a run with its submission so often, each with a byte more than the one before, and return their ranks."""
    with connection.cursor() as cursor:
        submissions, runs = (
            _columns(cursor, table) for table in ("submissions_submission", "submissions_run")
        )
        cursor.execute(
            "CREATE TEMPORARY TABLE copies AS SELECT number, gen_random_uuid() AS run, gen_random_uuid() AS submission "
            "FROM generate_series(1, %s) AS number",
            [count],
        )
        cursor.execute(
            f"INSERT INTO submissions_submission (id, {submissions}) SELECT copies.submission, {submissions} "
            "FROM copies, submissions_submission WHERE id = (SELECT submission_id FROM submissions_run WHERE id = %s)",
            [run],
        )
        cursor.execute(
            f"INSERT INTO submissions_run (id, submission_id, results, {runs}) SELECT copies.run, copies.submission, "
            "jsonb_set(results, '{bytes_total}', to_jsonb((results->>'bytes_total')::bigint + copies.number)), "
            f"{runs} FROM copies, submissions_run WHERE id = %s",
            [run],
        )
        cursor.execute("SELECT run, number FROM copies")
        return {str(copy): rank + number for copy, number in cursor.fetchall()}


def _columns(cursor: Any, table: str) -> str:
    """Return the columns of a table that a copy takes over as they are."""
    cursor.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = %s AND "
        "is_generated = 'NEVER' AND column_name NOT IN ('id', 'submission_id', 'results')",
        [table],
    )
    return ", ".join(f'"{name}"' for (name,) in cursor.fetchall())


@pytest.mark.slow
def test_everybody_finds_every_page_after_the_upgrade(tmp_path: Path) -> None:
    backup, home = previous_backup(tmp_path / "backup", "sqlite"), tmp_path / "home"
    home.mkdir()
    shutil.copyfile(backup / DATABASE, home / "db.sqlite3")
    shutil.copyfile(PREVIOUS / "secret_key", home / "secret_key")
    (home / "secret_key").chmod(0o600)
    site = {"PFL_HOME": str(home), "PFL_DATABASE_URL": ""}
    assert manage("migrate", **site).endswith("status 0")
    printed = manage("shell", "--no-imports", "-c", CRAWL, **site)
    counted = re.search(r"^(\d+) (\{.*\})$", printed, re.MULTILINE)
    assert counted, printed
    opened, states = counted.groups()
    assert int(opened) > 100
    assert all(
        f"'{state}'" in states for state in ("draft", "queued", "running", "scored", "rejected", "failed")
    )
    # 404 are the demonstration's files, which aren't here.
    assert [line for line in printed.splitlines() if " 500: /" in line] == []


def test_migrations_that_sites_have_applied_are_what_they_were() -> None:
    """A new migration gets a line of `released.sha256` with the release that has it; no line is ever changed."""
    lines = (PREVIOUS / "released.sha256").read_text().splitlines()
    released = {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}
    assert released
    for name, digest in released.items():
        assert sha256_of(ROOT / name) == digest, f"{name} is applied on sites: append another migration"


def test_a_changed_rank_is_named_with_its_board() -> None:
    before: Any = {"track-1": {"a": 1, "b": 2}, "track-2, ε = 4": {"c": 1}}
    after: Any = {"track-1": {"b": 1, "a": 2}, "track-2, ε = 4": {}}
    assert changed_ranks(before, after) == [
        "track-1: run a: 1 → 2",
        "track-1: run b: 2 → 1",
        "track-2, ε = 4: run c: 1 → no rank",
    ]


@pytest.mark.django_db(transaction=True)
class TestBackup:
    def test_it_has_the_ranks_and_the_version(self, tmp_path: Path) -> None:
        track = make_track(BEST_ANLS, slug="track-1")
        now = timezone.now()
        submission = make_submission(track=track, state="submitted", submitted_at=now, published_at=now)
        run = make_run(submission, state="scored")
        manifest = make_backup(tmp_path / "backup")
        assert manifest.migrations == last_migrations()
        assert manifest.version
        assert manifest.ranks == {"track-1": {str(run.pk): 1}}

    def test_one_of_another_schema_is_not_restored_and_its_version_is_named(self, tmp_path: Path) -> None:
        make_backup(tmp_path / "backup")
        manifest = read_manifest(tmp_path / "backup")
        manifest.migrations.append("teams.0099_motto")
        (tmp_path / "backup" / MANIFEST).write_text(
            manifest.model_copy(update={"version": "0.7.0"}).model_dump_json()
        )
        with pytest.raises(
            BackupError, match=r"differ in teams\.0099_motto\. Restore it with version 0\.7\.0"
        ):
            restore_backup(tmp_path / "backup")


@pytest.fixture
def edited_column() -> Iterator[None]:
    """A column that a model has and the database lacks, as after an edit of a migration that has been applied."""
    from docvqa_site.operations import checks

    checks._sound_columns.clear()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE teams_team RENAME COLUMN slug TO slog")
    yield
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE teams_team RENAME COLUMN slog TO slug")


@pytest.mark.django_db(transaction=True)
def test_the_probe_compares_the_columns_with_the_models(edited_column: None) -> None:
    assert check_migrations() == "columns differ: teams_team.slog, teams_team.slug"
