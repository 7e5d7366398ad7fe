import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from evaluator.errors import ErrorCode, ProblemError
from portal.uploads.parts import Part
from portal.uploads.stores import FolderStore
from tests.portal.uploads.sending import cut, sha

CONTENT = bytes(range(256)) * 4
SIZES = [100] * 10 + [24]
KEY = "ab/abcdef"


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path)


@pytest.fixture
def upload(store):
    return store.begin(KEY)


def fill(store, upload, leave_out=()):
    for part, piece in cut(CONTENT, 100):
        if part.number not in leave_out:
            store.receive(upload, part, [piece])


def files(store):
    return [path for path in store.folder.rglob("*") if path.is_file()]


def code_of(error):
    return error.value.problem.code


def test_the_file_is_its_parts_in_order_whatever_order_they_came_in(store, upload):
    for part, piece in reversed(cut(CONTENT, 100)):
        store.receive(upload, part, [piece[:7], piece[7:]])
    store.complete(KEY, upload, SIZES, sha(CONTENT))
    with store.open(KEY) as file:
        assert file.read() == CONTENT
    assert store.size(KEY) == len(CONTENT)
    assert files(store) == [store.folder / "objects" / KEY]  # no part is left


def test_everything_is_readable_by_the_owner_only(store, upload):
    fill(store, upload, leave_out=[11])
    (part, piece) = cut(CONTENT, 100)[10]
    store.receive(upload, part, [piece])
    modes = {stat.S_IMODE(path.stat().st_mode) for path in files(store)}
    store.complete(KEY, upload, SIZES, sha(CONTENT))
    assert modes | {stat.S_IMODE(path.stat().st_mode) for path in files(store)} == {0o600}
    assert stat.S_IMODE((store.folder / "objects" / "ab").stat().st_mode) == 0o700


def test_stored_parts_are_listed_with_the_size_and_hash_that_they_have(store, upload):
    fill(store, upload, leave_out=[2, 5])
    expected = [part for part, _ in cut(CONTENT, 100) if part.number not in (2, 5)]
    assert store.list_parts(KEY, upload) == expected


def test_missing_parts_are_named_and_nothing_is_lost(store, upload):
    fill(store, upload, leave_out=[2, 3, 11])
    with pytest.raises(ProblemError) as error:
        store.complete(KEY, upload, SIZES, sha(CONTENT))
    assert code_of(error) == ErrorCode.UPLOAD_INCOMPLETE
    assert error.value.problem.where == "parts 2–3, 11"
    fill(store, upload)
    store.complete(KEY, upload, SIZES, sha(CONTENT))
    assert store.size(KEY) == len(CONTENT)


@pytest.mark.parametrize(
    "chunks", [[b"x" * 99], [b"y" * 100], [b"x" * 101], []], ids=["short", "other bytes", "long", "empty"]
)
def test_bytes_that_are_not_the_announced_ones_leave_nothing_behind(store, upload, chunks):
    with pytest.raises(ProblemError) as error:
        store.receive(upload, Part(1, 100, sha(b"x" * 100)), chunks)
    assert code_of(error) == ErrorCode.UPLOAD_PART
    assert files(store) == []


def test_reading_stops_once_the_announced_size_is_passed(store, upload):
    def endless():
        for count in range(1000):
            assert count < 3, "read on after the announced size"
            yield b"x" * 60

    with pytest.raises(ProblemError):
        store.receive(upload, Part(1, 100, sha(b"x" * 100)), endless())


def test_sending_a_part_again_replaces_it_and_takes_no_more_space(store, upload):
    for piece in (b"a" * 100, b"b" * 100, b"b" * 100):
        store.receive(upload, Part(1, 100, sha(piece)), [piece])
    assert store.list_parts(KEY, upload) == [Part(1, 100, sha(b"b" * 100))]
    assert len(files(store)) == 1


def test_the_same_part_sent_many_times_at_once_is_stored_once(store, upload):
    (part, piece) = cut(CONTENT, 100)[0]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: store.receive(upload, part, [piece[:50], piece[50:]]), range(40)))
    assert store.list_parts(KEY, upload) == [part]
    assert len(files(store)) == 1


def test_completing_again_does_nothing(store, upload):
    fill(store, upload)
    for _ in range(3):
        store.complete(KEY, upload, SIZES, sha(CONTENT))
    assert store.size(KEY) == len(CONTENT)


def test_completing_many_times_at_once_makes_one_good_file(store, upload):
    fill(store, upload)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: store.complete(KEY, upload, SIZES, sha(CONTENT)), range(16)))
    with store.open(KEY) as file:
        assert file.read() == CONTENT
    assert len(files(store)) == 1


def test_a_crash_while_the_parts_are_joined_leaves_the_unfinished_upload(store, upload, monkeypatch):
    fill(store, upload)

    def crash(_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="No space"):
        store.complete(KEY, upload, SIZES, sha(CONTENT))
    assert store.size(KEY) is None
    assert len(store.list_parts(KEY, upload)) == 11
    monkeypatch.undo()
    store.complete(KEY, upload, SIZES, sha(CONTENT))
    assert store.size(KEY) == len(CONTENT)


def test_a_crash_before_the_parts_are_removed_leaves_the_finished_file(store, upload, monkeypatch):
    fill(store, upload)
    monkeypatch.setattr(FolderStore, "_discard", lambda *_: None)
    store.complete(KEY, upload, SIZES, sha(CONTENT))
    monkeypatch.undo()
    store.complete(KEY, upload, SIZES, sha(CONTENT))
    assert files(store) == [store.folder / "objects" / KEY]


def test_a_file_that_is_not_the_announced_one_is_rejected(store, upload):
    fill(store, upload)
    with pytest.raises(ProblemError) as error:
        store.complete(KEY, upload, SIZES, sha(b"another file"))
    assert code_of(error) == ErrorCode.ARTIFACT_HASH
    assert store.size(KEY) is None


def test_an_aborted_upload_takes_no_part_any_more(store, upload):
    fill(store, upload)
    store.abort(KEY, upload)
    store.abort(KEY, upload)
    (part, piece) = cut(CONTENT, 100)[0]
    with pytest.raises(ProblemError) as error:
        store.receive(upload, part, [piece])
    assert code_of(error) == ErrorCode.UPLOAD_STATE
    assert store.list_parts(KEY, upload) == []
    assert files(store) == []


def test_a_part_that_arrives_while_the_upload_is_aborted_is_rejected(store, upload):
    def chunks():
        yield b"x" * 50
        store.abort(KEY, upload)
        yield b"x" * 50

    with pytest.raises(ProblemError) as error:
        store.receive(upload, Part(1, 100, sha(b"x" * 100)), chunks())
    assert code_of(error) == ErrorCode.UPLOAD_STATE
    assert files(store) == []


def test_deleting_a_file_that_is_not_there_does_nothing(store):
    store.delete(KEY)
    assert store.size(KEY) is None
