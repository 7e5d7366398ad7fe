"""What every store does, on the folder store and on a real S3 server."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
import requests
from django.test import Client

from docvqa_site.uploads.parts import Part
from docvqa_site.uploads.s3_store import S3Store
from docvqa_site.uploads.store import Store
from docvqa_site.uploads.stores import current_folder
from evaluator.errors import ErrorCode, ProblemError
from tests.docvqa_site.uploads.sending import cut, sha

KEY = "ab/abcdef"


@dataclass
class Case:
    """A store, parts that are as small as it takes them, and how an uploader reaches it."""

    store: Store
    part_size: int

    @property
    def content(self) -> bytes:
        return Random(1).randbytes(2 * self.part_size) + b"the end"

    @property
    def parts(self) -> list[tuple[Part, bytes]]:
        return cut(self.content, self.part_size)

    @property
    def sizes(self) -> list[int]:
        return [part.size_bytes for part, _ in self.parts]

    def put(self, upload, part, piece):
        """The status of the answer to a PUT of these bytes to the part's address."""
        address = self.store.part_url(KEY, upload, part)
        if address.url.startswith("/"):
            return Client().put(address.url, data=piece, content_type="application/octet-stream").status_code
        return requests.put(address.url, data=piece, headers=address.headers, timeout=30).status_code

    def fill(self, upload, leave_out=()):
        for part, piece in self.parts:
            if part.number not in leave_out:
                assert self.put(upload, part, piece) < 300

    def complete(self, upload, parts=None):
        self.store.complete(KEY, upload, parts or [part for part, _ in self.parts])

    def stored(self, upload):
        """The numbers and sizes of the stored parts."""
        return [(part.number, part.size_bytes) for part in self.store.list_parts(KEY, upload)]

    def get(self, filename="model.safetensors", **headers):
        """Status, headers and body of a download."""
        url = self.store.download_url(KEY, filename, 60)
        if url.startswith("/"):
            answer: Any = Client().get(url, headers=headers)
            return answer.status_code, answer.headers, b"".join(answer.streaming_content)
        reply = requests.get(url, headers=headers, timeout=30)
        return reply.status_code, reply.headers, reply.content


@pytest.fixture(
    params=["folder", pytest.param("s3", marks=pytest.mark.xdist_group("s3"))],
)
def case(request):
    if request.param == "folder":
        return Case(current_folder(), 100)
    # The least size that S3 takes for any but the last part.
    return Case(S3Store(request.getfixturevalue("bucket")), 5 * 2**20)


@pytest.fixture
def upload(case):
    return case.store.begin(KEY, case.part_size)


def await_the_next_second():
    """S3 says to the second when a part was stored."""
    second = int(time.time())
    while int(time.time()) == second:
        time.sleep(0.01)


def rejected(code):
    return pytest.raises(ProblemError, match=f"^{code}:")


def test_the_file_is_its_parts_in_order_whatever_order_they_came_in(case, upload):
    for part, piece in reversed(case.parts):
        case.put(upload, part, piece)
    case.complete(upload)
    with case.store.open(KEY) as file:
        assert file.read(10) == case.content[:10]
        assert file.read() == case.content[10:]
    assert case.store.size(KEY) == len(case.content)
    assert case.store.list_parts(KEY, upload) == []


def test_stored_parts_are_listed_with_the_size_that_they_have(case, upload):
    assert case.stored(upload) == []
    case.fill(upload, leave_out=[2])
    assert case.stored(upload) == [(1, case.part_size), (3, 7)]


def test_a_small_file_is_put_at_once_in_place_of_one_of_its_name(case):
    for content in (b"first", b"second"):
        case.store.put(KEY, content)
        with case.store.open(KEY) as file:
            assert file.read() == content


def test_missing_parts_are_named_and_nothing_is_lost(case, upload):
    case.fill(upload, leave_out=[1, 3])
    with pytest.raises(ProblemError) as error:
        case.complete(upload)
    assert error.value.problem.code == ErrorCode.UPLOAD_INCOMPLETE
    assert error.value.problem.where == "parts 1, 3"
    assert case.store.size(KEY) is None
    for part, piece in (case.parts[0], case.parts[2]):
        case.put(upload, part, piece)
    case.complete(upload)
    assert case.store.size(KEY) == len(case.content)


def test_an_address_takes_only_the_bytes_that_it_was_signed_for(case, upload):
    (part, piece), (other, _) = case.parts[:2]
    assert case.put(upload, part, b"x" * len(piece)) in {400, 422}
    assert case.put(upload, part, piece + b"x") in {400, 403, 422}
    assert case.put(upload, part, piece[:-1]) in {400, 403, 422}
    assert case.put(upload, part, b"") in {400, 403, 411, 422}
    assert case.put(upload, other, piece) in {400, 422}
    assert case.store.list_parts(KEY, upload) == []


def test_a_part_that_is_sent_again_with_other_bytes_replaces_the_first(case, upload):
    case.fill(upload, leave_out=[3])
    case.put(upload, Part(3, 3, sha(b"one")), b"one")
    await_the_next_second()
    case.put(upload, Part(3, 3, sha(b"two")), b"two")
    assert case.stored(upload)[2:] == [(3, 3)]
    case.complete(upload, [part for part, _ in case.parts[:2]] + [Part(3, 3, sha(b"two"))])
    with case.store.open(KEY) as file:
        assert file.read() == case.content[: 2 * case.part_size] + b"two"


def test_a_bad_part_leaves_the_good_one_that_is_stored(case, upload):
    case.fill(upload)
    (part, piece) = case.parts[0]
    assert case.put(upload, Part(1, part.size_bytes, sha(b"")), b"x" * len(piece)) >= 400
    assert [size for _, size in case.stored(upload)] == case.sizes


def test_the_same_part_sent_many_times_at_once_is_stored_once(case, upload):
    part, piece = case.parts[2]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: case.put(upload, part, piece), range(24)))
    assert case.stored(upload) == [(3, 7)]


def test_completing_again_does_nothing(case, upload):
    case.fill(upload)
    for _ in range(3):
        case.complete(upload)
    assert case.store.size(KEY) == len(case.content)


def test_completing_while_the_server_removes_the_parts_of_the_file_that_it_made_does_nothing(case, upload):
    case.fill(upload)
    case.complete(upload)
    without_parts = case.store.begin(KEY, case.part_size)
    case.complete(without_parts)
    assert case.get()[2] == case.content


def test_completing_many_times_at_once_makes_one_good_file(case, upload):
    case.fill(upload)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: case.complete(upload), range(8)))
    with case.store.open(KEY) as file:
        assert file.read() == case.content


def test_an_aborted_upload_can_not_be_completed(case, upload):
    case.fill(upload)
    case.store.abort(KEY, upload)
    case.store.abort(KEY, upload)
    assert case.put(upload, *case.parts[0]) in {404, 409}
    assert case.store.list_parts(KEY, upload) == []
    with rejected("E_UPLOAD_STATE"):
        case.complete(upload)


def test_a_completed_upload_takes_no_part_any_more(case, upload):
    case.fill(upload)
    case.complete(upload)
    assert case.put(upload, *case.parts[0]) in {404, 409}
    assert case.store.size(KEY) == len(case.content)


def test_a_download_is_an_attachment_with_ranges(case, upload):
    case.fill(upload)
    case.complete(upload)
    status, headers, body = case.get("my “model”.safetensors")
    assert (status, body) == (200, case.content)
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"].startswith("attachment; filename")
    status, headers, body = case.get(Range="bytes=3-9")
    assert (status, body) == (206, case.content[3:10])
    assert headers["Content-Range"] == f"bytes 3-9/{len(case.content)}"
    assert case.get(Range=f"bytes={len(case.content) - 4}-")[2] == case.content[-4:]


def test_a_deleted_file_is_gone(case, upload):
    case.fill(upload)
    case.complete(upload)
    case.store.delete(KEY)
    case.store.delete(KEY)
    assert case.store.size(KEY) is None
    with pytest.raises(FileNotFoundError):
        case.store.open(KEY)


def test_a_store_that_can_be_used_passes_its_check(case):
    case.store.check()
