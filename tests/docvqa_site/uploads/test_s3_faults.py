"""An S3 server in trouble: the error that the participant sees, and that nothing is half done."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
from django.utils import timezone

from docvqa_site.accounts.services import create_token
from docvqa_site.uploads import s3_store, services
from docvqa_site.uploads.models import Upload, UploadState
from docvqa_site.uploads.s3_store import S3Store
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ProblemError
from tests.docvqa_site.factories import make_team
from tests.docvqa_site.uploads.sending import cut, sha, start
from tests.services.ports import free_port

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("s3")]

CONTENT = b"0123456789abcdefghij!"


class Server(BaseHTTPRequestHandler):
    """Answers every request with one status and S3 error."""

    status, code = 500, "InternalError"

    def __getattr__(self, name):
        """`do_GET` and its like."""
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def answer(self):
        body = f"<Error><Code>{self.code}</Code><Message>No.</Message></Error>".encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        """Print nothing."""


@contextmanager
def server_that_answers(status, code) -> Iterator[str]:
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Faulty", (Server,), {"status": status, "code": code})
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def rejected(code):
    return pytest.raises(ProblemError, match=f"^{code}:")


@pytest.fixture
def site(settings, bucket):
    settings.STORE_BUCKET = bucket
    settings.UPLOAD_PART_SIZE_BYTES = 5 * 2**20
    return bucket


@pytest.fixture
def break_down(settings, site):
    """Puts the bucket behind another endpoint."""

    def put(endpoint):
        settings.STORE_BUCKET = replace(site, endpoint=endpoint)

    return put


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (500, "InternalError", "E_STORE_UNAVAILABLE"),
        (503, "SlowDown", "E_STORE_UNAVAILABLE"),
        (403, "AccessDenied", "E_STORE_UNAVAILABLE"),
        (404, "NoSuchBucket", "E_STORE_UNAVAILABLE"),
        (507, "InsufficientCapacity", "E_STORE_FULL"),
    ],
)
def test_what_the_server_answers_becomes_a_coded_problem(break_down, status, error, code):
    upload = start(make_team(), CONTENT)
    part = cut(CONTENT, len(CONTENT))[0][0]
    with server_that_answers(status, error) as endpoint:
        break_down(endpoint)
        for action in (
            lambda: services.part_urls(upload, [part]),
            lambda: services.complete(upload),
            lambda: current_store().open("ab/c"),
            lambda: current_store().delete("ab/c"),
        ):
            with rejected(code):
                action()


def test_nobody_listens(break_down):
    break_down(f"http://127.0.0.1:{free_port()}")
    with rejected("E_STORE_UNAVAILABLE"):
        current_store().check()


def test_a_server_that_hangs_holds_nobody_for_long(site, seaweedfs, monkeypatch):
    monkeypatch.setattr(s3_store, "READ_TIMEOUT_S", 0.2)
    store = S3Store(site)
    seaweedfs.freeze()
    try:
        with rejected("E_STORE_UNAVAILABLE"):
            store.check()
    finally:
        seaweedfs.thaw()
    store.client.head_bucket(Bucket=site.name)


def test_the_api_answers_with_the_problem_and_the_upload_resumes(
    break_down, site, client, settings, django_capture_on_commit_callbacks
):
    team = make_team()
    upload = start(team, CONTENT)
    piece = CONTENT
    headers = {"Authorization": f"Bearer {create_token(team.memberships.get().user, 'test')[1]}"}
    body = {"parts": [{"number": 1, "size_bytes": len(piece), "sha256": sha(piece)}]}
    url = f"/api/v1/uploads/{upload.pk}"
    break_down(f"http://127.0.0.1:{free_port()}")
    for response in (
        client.post(f"{url}/part-urls", body, content_type="application/json", headers=headers),
        client.post(f"{url}/complete", headers=headers),
    ):
        assert response.status_code == 503
        assert response.json()["problems"][0]["code"] == "E_STORE_UNAVAILABLE"
    settings.STORE_BUCKET = site
    assert (
        client.post(f"{url}/part-urls", body, content_type="application/json", headers=headers).status_code
        == 200
    )
    # Aborting doesn't depend on the store; what it still holds is deleted later.
    break_down(f"http://127.0.0.1:{free_port()}")
    with django_capture_on_commit_callbacks(execute=True):
        assert client.delete(url, headers=headers).status_code == 204
    settings.STORE_BUCKET = site
    upload.refresh_from_db()
    assert (upload.state, upload.removed_at) == (UploadState.ABORTED, None)
    assert services.remove_leftovers(10, timezone.now() + services.REMOVAL) == 1
    assert Upload.objects.get().removed_at is not None


def test_completing_when_the_answer_was_lost_or_the_site_was_killed(site):
    store = S3Store(site)
    upload = store.begin("ab/c", len(CONTENT))
    (part, piece), *_ = cut(CONTENT, len(CONTENT))
    address = store.part_url("ab/c", upload, part)
    assert requests.put(address.url, data=piece, headers=address.headers, timeout=30).ok
    store.complete("ab/c", upload, [part])
    store.complete("ab/c", upload, [part])  # of which nobody knew that it was done
    assert store.size("ab/c") == len(CONTENT)
    store.delete("ab/c")
    with rejected("E_UPLOAD_STATE"):
        store.complete("ab/c", upload, [part])
