"""What only the folder store does; test_stores.py has what every store does."""

import errno
import os
import signal
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from docvqa_site.uploads.folder_store import FolderStore
from docvqa_site.uploads.parts import Part
from evaluator.errors import ErrorCode, ProblemError
from tests.docvqa_site.uploads.sending import cut, sha

CONTENT = bytes(range(256)) * 4
PARTS = [part for part, _ in cut(CONTENT, 100)]
KEY = "ab/abcdef"


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "store")


@pytest.fixture
def upload(store):
    return store.begin(KEY, 100)


def fill(store, upload, leave_out=()):
    for part, piece in cut(CONTENT, 100):
        if part.number not in leave_out:
            store.receive(upload, part, [piece])


def files(store):
    return [path for path in store.folder.rglob("*") if path.is_file()]


def modes(store):
    """The modes of the folders and of the files."""
    paths = [store.folder, *store.folder.rglob("*")]
    folders = {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir()}
    return [folders, {stat.S_IMODE(path.stat().st_mode) for path in files(store)}]


def rejected(code):
    return pytest.raises(ProblemError, match=f"^{code}:")


def no_space(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_everything_is_readable_by_the_owner_only(store, mask):
    before = os.umask(mask)
    try:
        upload = store.begin(KEY, 100)
        fill(store, upload)
        assert modes(store) == [{0o700}, {0o600}]
        store.complete(KEY, upload, PARTS)
    finally:
        os.umask(before)
    assert modes(store) == [{0o700}, {0o600}]


def test_a_proxy_of_its_group_may_read_the_files_and_nothing_else(tmp_path):
    store = FolderStore(tmp_path / "store", group_readable=True)
    upload = store.begin(KEY, 100)
    fill(store, upload)
    store.complete(KEY, upload, PARTS)
    assert modes(store) == [{0o2750}, {0o640}]


@pytest.mark.parametrize(
    "key",
    ["../../secret_key", "..", "/etc/passwd", "ab/../../secret_key", "ab/ab/cd", "ab/.", "", "ab/abc\n"],
)
def test_a_key_leads_nowhere_else(store, upload, key):
    (store.folder.parent / "secret_key").write_text("secret")
    with pytest.raises(FileNotFoundError):
        store.open(key)
    assert store.size(key) is None
    store.delete(key)
    assert (store.folder.parent / "secret_key").exists()


@pytest.mark.parametrize("name", ["../objects", "..", "", "/tmp"])
def test_the_name_of_an_upload_leads_nowhere_else(store, upload, name):
    with rejected("E_UPLOAD_STATE"):
        store.receive(name, PARTS[0], [CONTENT[:100]])
    store.abort(KEY, name)
    assert len(files(store)) == 1


@pytest.mark.parametrize(
    "chunks", [[b"x" * 99], [b"y" * 100], [b"x" * 101], []], ids=["short", "other bytes", "long", "empty"]
)
def test_bytes_that_are_not_the_announced_ones_leave_nothing_behind(store, upload, chunks):
    with rejected("E_UPLOAD_PART"):
        store.receive(upload, Part(1, 100, sha(b"x" * 100)), chunks)
    assert store.list_parts(KEY, upload) == []
    assert [path.name for path in files(store)] == ["file"]


def test_reading_stops_at_the_announced_size(store, upload):
    read = []

    def chunks():
        for chunk in [b"x" * 60, b"x" * 60, b"x" * 60]:
            read.append(chunk)
            yield chunk

    with rejected("E_UPLOAD_PART"):
        store.receive(upload, Part(1, 100, sha(b"x" * 100)), chunks())
    assert len(read) == 2


def test_completing_reads_no_byte_of_the_file(store, upload, monkeypatch):
    fill(store, upload)
    inode = (store.folder / "unfinished" / upload / "file").stat().st_ino
    store.complete(KEY, upload, PARTS)
    assert (store.folder / "objects" / KEY).stat().st_ino == inode
    assert files(store) == [store.folder / "objects" / KEY]  # no part is left


def test_different_bytes_for_one_part_at_once_leave_one_of_them_whole(store, upload):
    pieces = [bytes([value]) * 100 for value in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for piece in pieces * 5:
            pool.submit(store.receive, upload, Part(1, 100, sha(piece)), [piece[:50], piece[50:]])
    (part,) = store.list_parts(KEY, upload)
    store.complete(KEY, upload, [part])
    with store.open(KEY) as file:
        assert sha(file.read()) == part.sha256


def content_of(store, upload):
    """The bytes of the unfinished file."""
    return (store.folder / "unfinished" / upload / "file").read_bytes()


def test_no_byte_of_a_part_is_in_the_file_before_all_of_them_are_verified(store, upload):
    def chunks():
        yield CONTENT[100:150]
        assert content_of(store, upload) == b""
        assert store.list_parts(KEY, upload) == []
        yield CONTENT[150:200]

    store.receive(upload, PARTS[1], chunks())
    assert content_of(store, upload)[100:] == CONTENT[100:200]
    assert store.list_parts(KEY, upload) == [PARTS[1]]
    assert sorted(path.name[:4] for path in files(store)) == ["0000", "file"]


def test_a_part_that_is_too_long_does_not_touch_the_next_one(store, upload):
    fill(store, upload, leave_out=[1])
    with rejected("E_UPLOAD_PART"):
        store.receive(upload, PARTS[0], [CONTENT[:60], CONTENT[60:120]])
    fill(store, upload)
    store.complete(KEY, upload, PARTS)
    with store.open(KEY) as file:
        assert file.read() == CONTENT


@pytest.mark.parametrize("last", [CONTENT[:100], b"y" * 100], ids=["the same bytes", "other bytes"])
def test_of_two_senders_of_a_part_the_one_that_ends_last_counts(store, upload, last):
    def chunks():
        yield last[:50]
        store.receive(upload, PARTS[0], [CONTENT[:100]])
        assert content_of(store, upload) == CONTENT[:100]
        yield last[50:]

    store.receive(upload, Part(1, 100, sha(last)), chunks())
    assert store.list_parts(KEY, upload) == [Part(1, 100, sha(last))]
    assert content_of(store, upload) == last


def test_a_bad_part_that_was_overtaken_does_not_remove_the_one_that_is_stored(store, upload):
    def chunks():
        yield b"y" * 50
        store.receive(upload, PARTS[0], [CONTENT[:100]])
        yield b"z" * 50

    with rejected("E_UPLOAD_PART"):
        store.receive(upload, Part(1, 100, sha(b"y" * 100)), chunks())
    assert store.list_parts(KEY, upload) == [PARTS[0]]
    assert content_of(store, upload) == CONTENT[:100]


def test_bad_bytes_beside_a_part_on_its_way_do_not_disturb_it(store, upload):
    def chunks():
        yield CONTENT[:50]
        with rejected("E_UPLOAD_PART"):
            store.receive(upload, Part(1, 100, sha(b"x" * 100)), [b"y" * 100])
        yield CONTENT[50:100]

    store.receive(upload, PARTS[0], chunks())
    assert store.list_parts(KEY, upload) == [PARTS[0]]
    assert content_of(store, upload) == CONTENT[:100]


def test_a_part_that_is_stored_and_sent_again_is_not_written_again(store, upload, monkeypatch):
    fill(store, upload)
    monkeypatch.setattr(os, "copy_file_range", lambda *_: pytest.fail("it was written a second time"))
    fill(store, upload)
    assert store.list_parts(KEY, upload) == PARTS
    assert content_of(store, upload) == CONTENT


def test_senders_that_overtake_one_another_leave_the_bytes_of_the_one_that_is_listed(store, upload):
    pieces = [bytes([value]) * 100 for value in range(8)]

    def send(piece):
        for _ in range(20):
            store.receive(upload, Part(1, 100, sha(piece)), [piece[at : at + 5] for at in range(0, 100, 5)])

    with ThreadPoolExecutor(8) as pool:
        for sent in [pool.submit(send, piece) for piece in pieces]:
            sent.result()
    (part,) = store.list_parts(KEY, upload)
    assert sha(content_of(store, upload)) == part.sha256


def test_a_process_killed_in_the_middle_of_a_part_leaves_it_missing(store, upload):
    fill(store, upload, leave_out=[2])

    def chunks():
        yield b"x" * 50
        os.kill(os.getpid(), signal.SIGKILL)

    if not (child := os.fork()):
        store.receive(upload, Part(2, 100, sha(b"x" * 100)), chunks())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with rejected("E_UPLOAD_INCOMPLETE"):
        store.complete(KEY, upload, PARTS)
    fill(store, upload)
    store.complete(KEY, upload, PARTS)
    with store.open(KEY) as file:
        assert file.read() == CONTENT


def test_an_upload_can_not_be_completed_while_one_of_its_parts_is_on_its_way(store, upload):
    fill(store, upload, leave_out=[2])

    def chunks():
        yield CONTENT[100:150]
        with rejected("E_UPLOAD_INCOMPLETE"):
            store.complete(KEY, upload, PARTS)
        yield CONTENT[150:200]

    store.receive(upload, PARTS[1], chunks())
    store.complete(KEY, upload, PARTS)
    with store.open(KEY) as file:
        assert file.read() == CONTENT


@pytest.mark.parametrize("call", ["pwrite", "copy_file_range"])
def test_a_crash_while_a_part_is_put_in_its_place_leaves_it_missing(store, upload, monkeypatch, call):
    fill(store, upload, leave_out=[2] if call == "pwrite" else [])

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, call, crash)
    with pytest.raises(KeyboardInterrupt):
        store.receive(upload, Part(2, 100, sha(b"x" * 100)), [b"x" * 100])
    monkeypatch.undo()
    with rejected("E_UPLOAD_INCOMPLETE"):
        store.complete(KEY, upload, PARTS)
    fill(store, upload)
    store.complete(KEY, upload, PARTS)
    with store.open(KEY) as file:
        assert file.read() == CONTENT


def test_a_crash_before_the_leftovers_are_removed_leaves_the_finished_file(store, upload, monkeypatch):
    fill(store, upload)
    monkeypatch.setattr(FolderStore, "_discard", lambda *_: None)
    store.complete(KEY, upload, PARTS)
    monkeypatch.undo()
    store.complete(KEY, upload, PARTS)
    assert files(store) == [store.folder / "objects" / KEY]


def test_a_file_system_that_can_not_copy_within_itself_is_copied_by_hand(store, upload, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "copy_file_range", unsupported)
    store.receive(upload, Part(1, 100, sha(b"x" * 100)), [b"x" * 100])
    fill(store, upload)
    store.complete(KEY, upload, PARTS)
    with store.open(KEY) as file:
        assert file.read() == CONTENT


@pytest.mark.parametrize("call", ["pwrite", "open"])
def test_a_full_disk_is_reported_and_nothing_is_half_done(store, upload, monkeypatch, call):
    fill(store, upload, leave_out=[2])
    monkeypatch.setattr(os, call, no_space)
    with rejected("E_STORE_FULL"):
        store.receive(upload, PARTS[1], [CONTENT[100:200]])
    monkeypatch.undo()
    assert [part.number for part in store.list_parts(KEY, upload)] == [1, *range(3, 12)]
    assert len(files(store)) == 1 + 10
    fill(store, upload)
    store.complete(KEY, upload, PARTS)


def test_a_disk_that_is_full_when_an_upload_is_completed_leaves_it_unfinished(store, upload, monkeypatch):
    fill(store, upload)
    monkeypatch.setattr(os, "fsync", no_space)
    with rejected("E_STORE_FULL"):
        store.complete(KEY, upload, PARTS)
    monkeypatch.undo()
    assert store.size(KEY) is None
    assert store.list_parts(KEY, upload) == PARTS
    store.complete(KEY, upload, PARTS)
    assert store.size(KEY) == len(CONTENT)


def test_a_folder_that_can_not_be_used_is_reported(tmp_path):
    (tmp_path / "store").write_text("no folder")
    store = FolderStore(tmp_path / "store")
    for action in (
        store.check,
        lambda: store.begin(KEY, 100),
        lambda: store.open(KEY),
        lambda: store.size(KEY),
    ):
        with pytest.raises(ProblemError) as error:
            action()
        assert error.value.problem.code == ErrorCode.STORE_UNAVAILABLE


def test_a_part_that_arrives_while_the_upload_is_aborted_is_rejected(store, upload):
    def chunks():
        yield b"x" * 50
        store.abort(KEY, upload)
        yield b"x" * 50

    with rejected("E_UPLOAD_STATE"):
        store.receive(upload, Part(1, 100, sha(b"x" * 100)), chunks())
    assert files(store) == []


def test_a_part_that_arrives_while_the_upload_is_completed_does_not_change_the_file(store, upload):
    fill(store, upload)

    def chunks():
        yield b"x" * 50
        store.complete(KEY, upload, PARTS)
        yield b"x" * 50

    with rejected("E_UPLOAD_STATE"):
        store.receive(upload, Part(1, 100, sha(b"x" * 100)), chunks())
    with store.open(KEY) as file:
        assert file.read() == CONTENT


def test_leftovers_of_uploads_are_removed_when_nothing_was_written_to_them_for_long(store, upload):
    fill(store, upload)
    old = store.begin(KEY, 100)
    os.utime(store.folder / "unfinished" / old, (1000, 1000))
    store.remove_unfinished(datetime.fromtimestamp(2000, UTC))
    assert store.list_parts(KEY, upload) == PARTS
    assert not (store.folder / "unfinished" / old).exists()


def test_it_says_how_much_room_there_is(store):
    assert store.free_bytes() > 0
