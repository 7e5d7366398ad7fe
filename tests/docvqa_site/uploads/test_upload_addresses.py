"""The signed addresses: what they receive and send, and what they reject."""

import io
import tracemalloc
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from docvqa_site.uploads import services, views
from docvqa_site.uploads.parts import Part
from docvqa_site.uploads.signed_urls import file_path, part_path
from docvqa_site.uploads.stores import current_store
from tests.docvqa_site.factories import make_team, make_upload
from tests.docvqa_site.uploads.sending import cut, put, send, sha, start

pytestmark = pytest.mark.django_db

CONTENT = b"0123456789abcdefghij!"


@pytest.fixture
def upload():
    return start(make_team(), CONTENT)


def url_of_part(upload, number=1):
    part, _ = cut(CONTENT)[number - 1]
    return services.part_urls(upload, [part])[0].url


def problems(response):
    return [problem["code"] for problem in response.json()["problems"]]


def test_it_receives_a_part_from_anyone_who_has_the_address(upload):
    client = Client(enforce_csrf_checks=True)
    assert put(client, url_of_part(upload), CONTENT[:10]).status_code == 204
    assert services.stored_parts(upload) == [cut(CONTENT)[0][0]]


def test_where_all_places_are_taken_the_part_is_accepted_later(upload, client):
    for _ in range(views.PLACES):
        views._places.acquire()
    try:
        response = put(client, url_of_part(upload), CONTENT[:10])
        assert (response.status_code, problems(response)) == (503, ["E_STORE_UNAVAILABLE"])
    finally:
        views._places.release(views.PLACES)
    assert put(client, url_of_part(upload), CONTENT[:10]).status_code == 204


def test_it_rejects_other_bytes(upload, client):
    response = put(client, url_of_part(upload), b"x" * 10)
    assert (response.status_code, problems(response)) == (422, ["E_UPLOAD_PART"])
    assert services.stored_parts(upload) == []


@pytest.mark.parametrize("size", [0, 9, 11])
def test_it_rejects_another_size_before_reading(upload, client, size):
    response = put(client, url_of_part(upload), b"0" * size)
    assert (response.status_code, problems(response)) == (422, ["E_UPLOAD_PART"])


def test_it_rejects_the_bytes_of_another_part(upload, client):
    response = put(client, url_of_part(upload, 2), CONTENT[:10])
    assert (response.status_code, problems(response)) == (422, ["E_UPLOAD_PART"])


def test_it_rejects_an_address_that_has_expired(upload, client, monkeypatch, settings):
    url = url_of_part(upload)
    later = timezone.now() + timedelta(seconds=settings.UPLOAD_URL_SECONDS)
    monkeypatch.setattr("docvqa_site.uploads.signed_urls.timezone.now", lambda: later)
    response = put(client, url, CONTENT[:10])
    assert (response.status_code, problems(response)) == (403, ["E_UPLOAD_URL"])


@pytest.mark.parametrize("at", [16, 40, -3])
def test_it_rejects_an_address_that_was_tampered_with(upload, client, at):
    url = url_of_part(upload)
    other = "A" if url[at] != "A" else "B"
    response = put(client, url[:at] + other + url[at + 1 or len(url) :], CONTENT[:10])
    assert (response.status_code, problems(response)) == (403, ["E_UPLOAD_URL"])


def test_an_address_for_a_file_takes_no_part_and_the_other_way_round(upload, client):
    part_token = url_of_part(upload).rsplit("/", 1)[1]
    file_token = file_path(upload.store_key, "f", 60).rsplit("/", 1)[1]
    assert put(client, f"/uploads/parts/{file_token}", CONTENT[:10]).status_code == 403
    assert client.get(f"/uploads/files/{part_token}").status_code == 403


@pytest.mark.parametrize("method", ["get", "post", "patch", "delete"])
def test_it_takes_parts_by_put_only(upload, client, method):
    assert getattr(client, method)(url_of_part(upload)).status_code == 405


def test_it_rejects_a_part_once_the_upload_is_aborted(upload, client, django_capture_on_commit_callbacks):
    url = url_of_part(upload)
    with django_capture_on_commit_callbacks(execute=True):
        services.abort(upload)
    response = put(client, url, CONTENT[:10])
    assert (response.status_code, problems(response)) == (409, ["E_UPLOAD_STATE"])


def test_a_part_is_never_in_memory_as_a_whole(client, settings):
    settings.UPLOAD_PART_SIZE_BYTES = size = 32 * 2**20
    piece = b"\0" * size
    name = current_store().begin("aa/aa", size)
    url = part_path(name, Part(1, size, sha(piece)))
    put(client, url, piece)  # warm up

    class Zeros(io.RawIOBase):
        """A body that is never there as a whole."""

        def readinto(self, buffer):
            buffer[:] = bytes(len(buffer))
            return len(buffer)

    tracemalloc.start()
    response = client.generic("PUT", url, b"", **{"wsgi.input": Zeros(), "CONTENT_LENGTH": str(size)})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert response.status_code == 204
    assert peak < size / 4


def test_a_lost_connection_leaves_nothing_behind(upload, client):
    class Broken(io.RawIOBase):
        def readinto(self, buffer):
            raise ConnectionResetError

    response = client.generic(
        "PUT", url_of_part(upload), b"", **{"wsgi.input": Broken(), "CONTENT_LENGTH": "10"}
    )
    assert response.status_code == 422
    assert services.stored_parts(upload) == []


def file_url(content=CONTENT, filename="model.safetensors", seconds=60):
    upload = make_upload(make_team(), content, filename)
    return current_store().download_url(upload.store_key, upload.filename, seconds)


def body(response):
    return b"".join(response.streaming_content)


def test_it_gives_a_file_out_as_a_download_that_no_browser_opens(client):
    response = client.get(file_url(filename="<b>proof</b>.html"))
    assert body(response) == CONTENT
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment;")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert response["Content-Length"] == str(len(CONTENT))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-3", CONTENT[:4]),
        ("bytes=4-", CONTENT[4:]),
        ("bytes=-5", CONTENT[-5:]),
        ("bytes=3-999", CONTENT[3:]),
    ],
)
def test_it_gives_out_a_range(client, header, expected):
    response = client.get(file_url(), headers={"Range": header})
    assert response.status_code == 206
    assert body(response) == expected
    start = CONTENT.index(expected)
    assert response["Content-Range"] == f"bytes {start}-{start + len(expected) - 1}/{len(CONTENT)}"


@pytest.mark.parametrize("header", ["bytes=21-", "bytes=5-4", "bytes=-0"])
def test_it_says_which_ranges_there_are(client, header):
    response = client.get(file_url(), headers={"Range": header})
    assert (response.status_code, response["Content-Range"]) == (416, "bytes */21")


@pytest.mark.parametrize("header", ["bytes=0-1,4-5", "pages=1-2", "bytes=-", "bytes=a-b"])
def test_it_answers_what_it_does_not_understand_with_the_whole_file(client, header):
    response = client.get(file_url(), headers={"Range": header})
    assert (response.status_code, body(response)) == (200, CONTENT)


def test_a_download_address_expires(client):
    response = client.get(file_url(seconds=0))
    assert (response.status_code, problems(response)) == (403, ["E_UPLOAD_URL"])


def test_a_deleted_file_is_not_found(client):
    upload = make_upload(make_team())
    url = current_store().download_url(upload.store_key, upload.filename, 60)
    current_store().delete(upload.store_key)
    assert client.get(url).status_code == 404


def test_it_gives_files_out_by_get_only(client):
    assert client.post(file_url()).status_code == 405
    assert client.head(file_url()).status_code == 200


def test_statuses_of_a_whole_upload(client, upload):
    assert send(client, upload, cut(CONTENT)) == [204, 204, 204]


def test_a_proxy_is_told_which_file_to_send(client, settings):
    settings.ACCEL_PREFIX = "/files/"
    upload = make_upload(make_team(), CONTENT, "model.safetensors")
    url = current_store().download_url(upload.store_key, upload.filename, 60)
    response = client.get(url, headers={"Range": "bytes=0-3"})
    assert (response.status_code, response.content) == (200, b"")
    assert response["X-Accel-Redirect"] == f"/files/objects/{upload.store_key}"
    assert response["Content-Disposition"] == 'attachment; filename="model.safetensors"'
    assert response["Cache-Control"] == "private, no-store"
    assert client.get(url[:-1] + ("A" if url[-1] != "A" else "B")).status_code == 403
    current_store().delete(upload.store_key)
    assert client.get(url).status_code == 404


def test_a_leaked_key_signs_no_way_out_of_the_store(client, settings, store_folder):
    store_folder.mkdir()
    (store_folder.parent / "secret_key").write_text("secret")
    for prefix in ("", "/files/"):
        settings.ACCEL_PREFIX = prefix
        response = client.get(file_path("../../secret_key", "f", 60))
        assert response.status_code == 404
        assert "X-Accel-Redirect" not in response
