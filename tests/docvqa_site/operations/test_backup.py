"""Backups of a site that is in use, restored into an empty one."""

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import psycopg2
import pytest
from django.conf import settings
from django.db import connection, connections

from docvqa_site.downloads.models import DownloadKind
from docvqa_site.downloads.services import add_download
from docvqa_site.liveness.models import BACKUP, ages
from docvqa_site.operations.backup import make_backup, read_manifest
from docvqa_site.operations.restore import verify_backup
from docvqa_site.operations.snapshots import BackupError
from docvqa_site.uploads import services
from docvqa_site.uploads.folder_store import FolderStore
from docvqa_site.uploads.models import Upload, UploadState
from docvqa_site.uploads.parts import Part
from docvqa_site.uploads.stores import current_store
from tests.docvqa_site.factories import make_team, make_upload, make_user
from tests.services.postgres import binaries

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def postgres_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_BIN", str(binaries()))


def manage(*arguments: str | Path, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "django", *map(str, arguments)],
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


class Uploader(threading.Thread):
    """A team that uploads files as long as the test lets it, and withdraws every third."""

    def __init__(self) -> None:
        super().__init__()
        self.user = make_user()
        self.team = make_team(self.user)
        self.enough = threading.Event()
        self.busy = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.enough.is_set():
            number += 1
            upload = self.upload(f"content {number}".encode() * 1000)
            if number % 3 == 0:
                services.discard(upload)
            if number == 5:
                self.busy.set()
        connections.close_all()

    def upload(self, content: bytes, *, complete: bool = True) -> Upload:
        sha256 = hashlib.sha256(content).hexdigest()
        upload = services.create_upload(
            self.team, self.user, filename="file.bin", size_bytes=len(content), sha256=sha256
        )
        store = current_store()
        assert isinstance(store, FolderStore)
        part = Part(1, len(content), sha256)
        services.part_urls(upload, [part])
        upload.refresh_from_db()
        store.receive(upload.store_upload, part, [content])
        if complete:
            services.complete(upload)
        return upload


@pytest.fixture
def uploader() -> Iterator[Uploader]:
    uploader = Uploader()
    uploader.upload(b"half", complete=False)
    uploader.start()
    assert uploader.busy.wait(60)
    yield uploader
    uploader.enough.set()
    uploader.join()


@pytest.fixture
def empty_database() -> Iterator[str]:
    server = connection.settings_dict
    url = f"postgres://{server['USER']}@{server['HOST']}:{server['PORT']}"
    # Other processes of the tests use the same server.
    name = f"restored_{uuid4().hex}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    yield f"{url}/{name}"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("link", [True, False], ids=["linked", "copied"])
def test_a_site_in_use_is_backed_up_and_restored_whole(
    uploader: Uploader, empty_database: str, tmp_path: Path, link: bool
) -> None:
    manifest = make_backup(tmp_path / "backup", link=link)
    uploader.enough.set()
    uploader.join()
    assert ages()[BACKUP] < timedelta(minutes=1)
    assert len(manifest.files) >= 3
    assert Upload.objects.count() > len(manifest.files)

    home = tmp_path / "home"
    restored = {
        "PFL_HOME": str(home),
        "PFL_DATABASE_URL": empty_database,
        "PFL_SECRET_KEY": settings.SECRET_KEY,
    }
    assert f"{len(manifest.files)} files" in manage("restore", tmp_path / "backup", **restored)

    with psycopg2.connect(empty_database) as database, database.cursor() as cursor:
        cursor.execute("SELECT state, store_key, sha256 FROM uploads_upload")
        rows = cursor.fetchall()
    database.close()
    states = {state for state, _, _ in rows}
    assert UploadState.OPEN not in states
    removed = {file.key for file in manifest.removed}
    kept = [
        (key, sha256) for state, key, sha256 in rows if state == UploadState.COMPLETED and key not in removed
    ]
    assert len(kept) == len(manifest.files)
    for key, sha256 in kept:
        assert hashlib.sha256((home / "store" / "objects" / key).read_bytes()).hexdigest() == sha256


def test_an_embedded_site_is_restored_with_its_key(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    environment = {"PFL_DATABASE_URL": "", "PFL_HOME": str(old)}
    manage("migrate", "--verbosity", "0", **environment)
    script = (
        "from tests.docvqa_site.factories import *\n"
        "from django.core.management import call_command\n"
        "make_upload(make_team(), b'precious')\n"
        f"call_command('backup', '{tmp_path / 'backup'}')\n"
    )
    root = str(Path(__file__).parents[3])
    manage("shell", "--no-imports", "-c", script, **environment, PYTHONPATH=f"{root}/platform:{root}")
    manage("restore", tmp_path / "backup", **{**environment, "PFL_HOME": str(new)})
    (file,) = read_manifest(tmp_path / "backup").files
    assert (new / "store" / "objects" / file.key).read_bytes() == b"precious"
    assert (new / "secret_key").read_text() == (old / "secret_key").read_text()
    assert (new / "secret_key").stat().st_mode & 0o077 == 0


def test_downloads_are_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "data.zip"
    file.write_bytes(b"what everybody may fetch")
    download = add_download(file, "data", kind=DownloadKind.DATA, title="Data", license="CC0-1.0")
    manifest = make_backup(tmp_path / "backup")
    assert [saved.key for saved in manifest.files] == [download.store_key]


@pytest.mark.parametrize("link", [True, False], ids=["linked", "copied"])
def test_an_uploader_who_announces_another_hash_stops_no_backup(tmp_path: Path, link: bool) -> None:
    make_upload(make_team(), b"as announced")
    upload = make_upload(make_team(), b"content", sha256="0" * 64)
    manifest = make_backup(tmp_path / "backup", link=link)
    assert manifest.unexpected == [upload.store_key]
    assert hashlib.sha256(b"content").hexdigest() in {file.sha256 for file in manifest.files}
    assert verify_backup(tmp_path / "backup") == manifest


class TestWhatIsRejected:
    def test_a_folder_that_is_not_empty(self, tmp_path: Path) -> None:
        (tmp_path / "something").touch()
        with pytest.raises(BackupError, match="is not empty"):
            make_backup(tmp_path)

    def test_a_store_that_lost_a_file(self, tmp_path: Path) -> None:
        upload = make_upload(make_team())
        current_store().delete(upload.store_key)
        with pytest.raises(BackupError, match="The store has no"):
            make_backup(tmp_path / "backup")
        with pytest.raises(BackupError, match="no finished backup"):
            verify_backup(tmp_path / "backup")
        assert BACKUP not in ages()

    @pytest.mark.parametrize("link", [True, False], ids=["linked", "copied"])
    def test_a_store_whose_file_is_damaged(self, tmp_path: Path, link: bool) -> None:
        make_upload(make_team(), b"content", size_bytes=8)
        with pytest.raises(BackupError, match="damaged in the store"):
            make_backup(tmp_path / "backup", link=link)

    @pytest.mark.parametrize("part", ["database", "files"])
    def test_a_backup_that_is_damaged(self, tmp_path: Path, part: str) -> None:
        upload = make_upload(make_team(), b"content")
        make_backup(tmp_path / "backup", link=False)
        path = tmp_path / "backup" / part
        path = path if part == "database" else path / upload.store_key
        path.write_bytes(b"Content")
        with pytest.raises(BackupError, match="damaged"):
            verify_backup(tmp_path / "backup")

    def test_a_site_that_is_not_empty(self, tmp_path: Path) -> None:
        upload = make_upload(make_team())
        make_backup(tmp_path / "backup")
        with pytest.raises(AssertionError, match="isn't empty"):
            manage("restore", tmp_path / "backup")
        home = tmp_path / "home"
        stored = home / "store" / "objects" / upload.store_key
        stored.parent.mkdir(parents=True)
        stored.touch()
        (home / "secret_key").write_text("the site's own")
        (tmp_path / "backup" / "secret_key").write_text("another")
        with pytest.raises(AssertionError, match="isn't empty"):
            manage("restore", tmp_path / "backup", PFL_HOME=str(home))
        assert (home / "secret_key").read_text() == "the site's own"
