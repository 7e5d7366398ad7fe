from threading import Thread

import pytest
import requests
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from docvqa_site.uploads import services
from docvqa_site.uploads.folder_store import FolderStore
from docvqa_site.uploads.models import Upload, UploadState
from docvqa_site.uploads.parts import Part
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ErrorCode, ProblemError
from tests.docvqa_site.factories import make_team, make_upload
from tests.docvqa_site.uploads.sending import cut, put, send, sha, start

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
    current_store().complete(upload.store_key, upload.store_upload, [part for part, _ in cut(CONTENT)])
    services.complete(upload)
    assert upload.state == UploadState.COMPLETED


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_who_lists_the_parts_after_such_a_crash_has_none_to_send_again(
    team, client, place, request, settings
):
    if place == "bucket":
        settings.STORE_BUCKET = request.getfixturevalue("bucket")
    upload, parts = start(team, CONTENT[:10]), cut(CONTENT[:10])
    (url,) = services.part_urls(upload, [part for part, _ in parts])
    if place == "bucket":
        assert requests.put(url.url, data=parts[0][1], headers=url.headers, timeout=30).ok
    else:
        assert put(client, url.url, parts[0][1]).status_code < 300
    current_store().complete(upload.store_key, upload.store_upload, [part for part, _ in parts])
    assert services.stored_parts(upload) == [part for part, _ in parts]
    services.complete(upload)
    assert services.stored_parts(upload) == []


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


def test_a_request_asks_for_each_part_once(team):
    part = cut(CONTENT)[0][0]
    with rejected("E_UPLOAD_PART"):
        services.part_urls(start(team, CONTENT), [part, part])


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


@pytest.mark.parametrize("digest", [sha(b"other"), "x"])
def test_the_only_part_of_a_file_is_the_file(team, digest):
    upload = start(team, b"abc")
    with pytest.raises(ProblemError):
        services.part_urls(upload, [Part(1, 3, digest)])
    assert services.part_urls(upload, [Part(1, 3, sha(b"abc"))])


def test_an_upload_is_begun_in_the_store_with_its_first_address(team, store_folder):
    upload = start(team, CONTENT)
    assert not store_folder.exists() or stored_files(store_folder) == []
    assert services.stored_parts(upload) == []
    (same,) = Upload.objects.all()
    services.part_urls(upload, [cut(CONTENT)[0][0]])
    services.part_urls(same, [cut(CONTENT)[1][0]])  # which knows nothing of the first
    assert same.store_upload == upload.store_upload
    assert len(list((store_folder / "unfinished").iterdir())) == 1


def test_no_address_is_signed_for_an_upload_that_another_request_has_aborted(team, store_folder):
    upload = start(team, CONTENT)
    services.abort(Upload.objects.get())
    with rejected("E_UPLOAD_STATE"):
        services.part_urls(upload, [cut(CONTENT)[0][0]])
    assert list((store_folder / "unfinished").iterdir()) == []


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


def test_what_a_store_did_not_delete_is_deleted_later(
    team, client, store_folder, monkeypatch, django_capture_on_commit_callbacks
):
    upload = start(team, CONTENT)
    send(client, upload, cut(CONTENT))

    def is_away(*_):
        raise ProblemError.of(ErrorCode.STORE_UNAVAILABLE)

    monkeypatch.setattr(FolderStore, "abort", is_away)
    with django_capture_on_commit_callbacks(execute=True):
        services.discard(upload)
    assert Upload.objects.get().state == UploadState.ABORTED
    assert stored_files(store_folder)
    monkeypatch.undo()
    in_an_hour = timezone.now() + services.REMOVAL
    assert services.remove_leftovers(limit=10) == 0  # not yet: it may be on its way
    assert services.remove_leftovers(limit=10, now=in_an_hour) == 1
    assert stored_files(store_folder) == []
    assert services.remove_leftovers(limit=10, now=in_an_hour) == 0


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
