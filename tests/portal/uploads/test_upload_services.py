from datetime import timedelta
from threading import Thread

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from evaluator.contracts import ArtifactKind
from evaluator.errors import ErrorCode, ProblemError
from portal.uploads import services
from portal.uploads.models import Upload, UploadState
from portal.uploads.parts import Part
from portal.uploads.stores import current_store
from tests.portal.factories import make_artifact, make_run, make_team, make_upload
from tests.portal.uploads.sending import cut, send, sha, start

pytestmark = pytest.mark.django_db

CONTENT = b"0123456789abcdefghij!"


@pytest.fixture
def team():
    return make_team()


def rejected(code):
    return pytest.raises(ProblemError, match=f"^{code}:")


def stored_files(store_folder):
    return [path for path in store_folder.rglob("*") if path.is_file()]


def test_an_upload_resumes_where_it_stopped(team, client):
    upload = start(team, CONTENT)
    parts = cut(CONTENT)
    send(client, upload, [parts[2], parts[0]])
    assert [part.number for part in services.stored_parts(upload)] == [1, 3]
    with rejected("E_UPLOAD_INCOMPLETE"):
        services.complete(upload)
    send(client, upload, [parts[1]])
    services.complete(upload)
    with current_store().open(upload.store_key) as file:
        assert file.read() == CONTENT
    upload.refresh_from_db()
    assert upload.state == UploadState.COMPLETED
    assert upload.finished_at is not None


def test_completing_again_does_nothing(team, client):
    upload = start(team, CONTENT)
    send(client, upload, cut(CONTENT))
    services.complete(upload)
    services.complete(upload)
    services.complete(Upload.objects.get(pk=upload.pk))


def test_completing_after_a_crash_between_store_and_database(team, client):
    upload = start(team, CONTENT)
    send(client, upload, cut(CONTENT))
    current_store().complete(upload.store_key, upload.store_upload, [10, 10, 1], upload.sha256)
    services.complete(upload)
    assert upload.state == UploadState.COMPLETED


@pytest.mark.parametrize("size", [0, -1])
def test_an_empty_file_is_rejected(team, size):
    with rejected("E_ARTIFACT_SIZE"):
        services.create_upload(
            team, team.memberships.get().user, filename="f", size_bytes=size, sha256=sha(b"")
        )


@pytest.mark.parametrize("digest", ["", "ab", "G" * 64, sha(b"").upper(), sha(b"") + "\n"])
def test_a_malformed_hash_is_rejected(team, digest):
    with rejected("E_ARTIFACT_HASH"):
        services.create_upload(team, team.memberships.get().user, filename="f", size_bytes=1, sha256=digest)


@pytest.mark.parametrize(
    "part",
    [
        Part(0, 10, sha(b"")),
        Part(4, 10, sha(b"")),
        Part(1, 9, sha(b"")),
        Part(3, 10, sha(b"")),
        Part(1, 10, "x"),
    ],
    ids=["number 0", "number too large", "too small", "last part too large", "malformed hash"],
)
def test_there_is_no_address_for_a_part_that_the_upload_cannot_have(team, part):
    with rejected("E_UPLOAD_PART"):
        services.part_urls(start(team, CONTENT), [part])


def test_there_are_no_addresses_once_the_upload_has_ended(team):
    upload = start(team, CONTENT)
    services.abort(upload)
    upload.refresh_from_db()
    with rejected("E_UPLOAD_STATE"):
        services.part_urls(upload, [cut(CONTENT)[0][0]])
    with rejected("E_UPLOAD_STATE"):
        services.complete(upload)


def test_a_completed_upload_cannot_be_aborted(team):
    with rejected("E_UPLOAD_STATE"):
        services.abort(make_upload(team))


def test_a_team_has_so_many_open_uploads_at_most(team, monkeypatch):
    monkeypatch.setattr(services, "MAX_OPEN_UPLOADS", 2)
    first = start(team, b"a")
    start(team, b"b")
    with rejected("E_UPLOAD_LIMIT"):
        start(team, b"c")
    start(make_team(), b"c")  # another team isn't concerned
    services.abort(first)
    start(team, b"c")


def test_a_team_has_so_many_open_bytes_at_most(team, monkeypatch):
    monkeypatch.setattr(services, "MAX_OPEN_BYTES", 30)
    start(team, CONTENT)
    with rejected("E_UPLOAD_LIMIT"):
        start(team, CONTENT)


@given(st.text(max_size=300))
def test_a_file_name_is_one_printable_component(name):
    cleaned = services.clean_filename(name)
    assert 0 < len(cleaned) <= 200
    assert cleaned.isprintable()
    assert "/" not in cleaned
    assert "\\" not in cleaned


@pytest.mark.parametrize("name", ["../../etc/passwd", "..\\..\\etc\\passwd", "/etc/passwd", "a/b/passwd"])
def test_a_path_as_file_name_leads_nowhere(team, client, store_folder, name):
    upload = start(team, CONTENT, filename=name)
    send(client, upload, cut(CONTENT))
    services.complete(upload)
    assert upload.filename == "passwd"
    assert stored_files(store_folder) == [store_folder / "objects" / upload.store_key]
    assert "passwd" not in upload.store_key


def test_abandoned_uploads_are_removed(
    team, client, store_folder, capsys, django_capture_on_commit_callbacks
):
    old = timezone.now() - timedelta(days=8)
    abandoned, recent, completed = start(team, CONTENT), start(team, CONTENT), start(team, CONTENT)
    for upload in (abandoned, recent, completed):
        send(client, upload, cut(CONTENT))
    services.complete(completed)
    kept = make_artifact(make_run(), ArtifactKind.CHECKPOINT).upload
    Upload.objects.exclude(pk=recent.pk).update(created_at=old)
    with django_capture_on_commit_callbacks(execute=True):
        call_command("abort_stale_uploads", "--days", "7")
    assert "2 abandoned uploads removed" in capsys.readouterr().out
    states = dict(Upload.objects.values_list("pk", "state"))
    assert states == {
        abandoned.pk: UploadState.ABORTED,
        completed.pk: UploadState.ABORTED,  # nothing refers to it
        recent.pk: UploadState.OPEN,
        kept.pk: UploadState.COMPLETED,
    }
    assert len(stored_files(store_folder)) == 3 + 1  # the recent one's parts and the artifact


@pytest.mark.django_db(transaction=True)
def test_aborting_while_it_is_completed_leaves_one_truth(client):
    for _ in range(5):
        upload = start(make_team(), CONTENT)
        send(client, upload, cut(CONTENT))
        outcomes: list[str] = []

        def attempt(change, upload=upload, outcomes=outcomes):
            try:
                change(Upload.objects.get(pk=upload.pk))
            except ProblemError as error:
                outcomes.append(error.problem.code)
            finally:
                connection.close()

        threads = [Thread(target=attempt, args=[change]) for change in (services.complete, services.abort)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        upload.refresh_from_db()
        assert (upload.state == UploadState.COMPLETED) == (current_store().size(upload.store_key) is not None)
        assert len(outcomes) == 1
        assert outcomes[0] in (ErrorCode.UPLOAD_STATE, ErrorCode.UPLOAD_INCOMPLETE)
