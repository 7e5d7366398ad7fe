import contextlib
import hashlib
import logging
import os
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind, ArtifactRef
from evaluator.worker import artifacts
from evaluator.worker.artifacts import FetchError, cached_name, fetch
from tests.evaluator.worker.artifact_server import ArtifactServer

CONTENT = os.urandom(500_000)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ArtifactServer]:
    monkeypatch.setattr(artifacts, "PAUSE_S", 0.01)
    server = ArtifactServer(CONTENT)
    yield server
    server.stop()


def ref(
    server: ArtifactServer,
    *,
    size_bytes: int = len(CONTENT),
    content: bytes = CONTENT,
    upload: UUID = UUID(int=1),  # noqa: B008  (immutable)
) -> ArtifactRef:
    return ArtifactRef(
        kind=ArtifactKind.CHECKPOINT,
        upload=upload,
        url=server.url,
        size_bytes=size_bytes,
        sha256=hashlib.sha256(content).hexdigest(),
    )


def test_an_artifact_is_fetched_once_and_then_kept(server: ArtifactServer, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    path = fetch(ref(server), tmp_path, on_progress=lambda done, total: steps.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert steps[-1] == (len(CONTENT), len(CONTENT))
    assert fetch(ref(server), tmp_path) == path
    assert len(server.ranges) == 1


def test_a_file_that_others_remove_all_the_time_is_fetched_all_the_same(
    server: ArtifactServer, tmp_path: Path
) -> None:
    wanted, done = ref(server), threading.Event()

    def churn() -> None:
        kept, moved = tmp_path / cached_name(wanted), tmp_path / "moved"
        moved.write_bytes(CONTENT)
        while not done.is_set():
            with contextlib.suppress(FileExistsError):  # it was just fetched
                os.link(moved, kept)
            kept.unlink()

    with ThreadPoolExecutor() as pool:
        churning = pool.submit(churn)
        try:
            for _ in range(100):
                assert fetch(wanted, tmp_path).name == cached_name(wanted)
        finally:
            done.set()
        churning.result()


def test_a_broken_download_continues_where_it_stopped(server: ArtifactServer, tmp_path: Path) -> None:
    server.cuts, server.cut_bytes = 2, artifacts.CHUNK_BYTES + 100
    assert fetch(ref(server), tmp_path).read_bytes() == CONTENT
    assert server.ranges == ["", "bytes=65536-", "bytes=131072-"]


def test_a_store_without_ranges_sends_everything_again(server: ArtifactServer, tmp_path: Path) -> None:
    server.knows_ranges = False
    server.cuts, server.cut_bytes = 2, artifacts.CHUNK_BYTES + 100
    assert fetch(ref(server), tmp_path).read_bytes() == CONTENT
    assert len(server.ranges) == 3


def test_a_continued_download_of_other_content_is_rejected(server: ArtifactServer, tmp_path: Path) -> None:
    server.cuts, server.cut_bytes = 1, artifacts.CHUNK_BYTES
    server.content = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    with pytest.raises(ProblemError) as caught:
        fetch(ref(server), tmp_path)
    assert caught.value.problem.code is ErrorCode.ARTIFACT_HASH
    assert caught.value.problem.found == hashlib.sha256(server.content).hexdigest()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_artifact_is_fetched(tmp_path: Path) -> None:
    server = ArtifactServer(b"")
    path = fetch(ref(server, size_bytes=0, content=b""), tmp_path)
    server.stop()
    assert path.read_bytes() == b""


def test_a_store_that_stays_broken_is_given_up_without_naming_the_address(
    server: ArtifactServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.status = 503
    with caplog.at_level(logging.DEBUG), pytest.raises(FetchError) as caught:
        fetch(ref(server), tmp_path)
    assert len(server.ranges) == artifacts.TRIES
    assert "secret" not in caplog.text + str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_rejected_address_is_not_tried_again(server: ArtifactServer, tmp_path: Path) -> None:
    server.status = 403
    with pytest.raises(FetchError) as caught:
        fetch(ref(server), tmp_path)
    assert caught.value.code is ErrorCode.ARTIFACT_URL
    assert len(server.ranges) == 1


def test_other_content_than_announced_is_rejected_and_not_kept(
    server: ArtifactServer, tmp_path: Path
) -> None:
    with pytest.raises(ProblemError) as caught:
        fetch(ref(server, content=b"something else"), tmp_path)
    assert caught.value.problem.code is ErrorCode.ARTIFACT_HASH
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("announced", [100, len(CONTENT) - 1, len(CONTENT) + 1])
def test_another_length_than_announced_is_rejected(
    server: ArtifactServer, tmp_path: Path, announced: int
) -> None:
    with pytest.raises(ProblemError) as caught:
        fetch(ref(server, size_bytes=announced), tmp_path)
    assert len(server.ranges) == 1
    assert caught.value.problem.code is ErrorCode.ARTIFACT_SIZE
    assert caught.value.problem.message == "The stored file is not as long as was announced."
    assert list(tmp_path.iterdir()) == []


def test_no_more_bytes_than_announced_are_taken_of_an_endless_answer(tmp_path: Path) -> None:
    taken: list[int] = []
    server = ArtifactServer(CONTENT, says_length=False)
    with pytest.raises(ProblemError) as caught:
        fetch(ref(server, size_bytes=100_000), tmp_path, on_progress=lambda done, _: taken.append(done))
    server.stop()
    assert caught.value.problem.code is ErrorCode.ARTIFACT_SIZE
    assert max(taken) <= 100_000
    assert list(tmp_path.iterdir()) == []


def test_fetching_at_the_same_time_gives_everyone_the_whole_file(
    server: ArtifactServer, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: fetch(ref(server), tmp_path), range(8)))
    assert {path.read_bytes() for path in paths} == {CONTENT}
    assert list(tmp_path.iterdir()) == [paths[0]]


def test_an_address_that_cannot_be_one_is_given_up_without_naming_it(
    server: ArtifactServer, tmp_path: Path
) -> None:
    broken = ref(server).model_copy(update={"url": "gopher://secret"})
    with pytest.raises(FetchError, match="InvalidSchema") as caught:
        fetch(broken, tmp_path)
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_who_announces_the_hash_of_another_s_file_must_have_uploaded_it(
    server: ArtifactServer, tmp_path: Path
) -> None:
    fetch(ref(server), tmp_path)
    theirs = ArtifactServer(bytes(len(CONTENT)))
    try:
        with pytest.raises(ProblemError) as caught:
            fetch(ref(theirs, upload=UUID(int=2)), tmp_path)
    finally:
        theirs.stop()
    assert caught.value.problem.code == ErrorCode.ARTIFACT_HASH


def test_a_cached_file_of_the_wrong_length_is_fetched_again(server: ArtifactServer, tmp_path: Path) -> None:
    (tmp_path / cached_name(ref(server))).write_bytes(b"cut short")
    assert fetch(ref(server), tmp_path).read_bytes() == CONTENT


def test_a_cached_file_that_was_changed_is_fetched_again(
    server: ArtifactServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / cached_name(ref(server))).write_bytes(bytes([CONTENT[0] ^ 1]) + CONTENT[1:])
    assert fetch(ref(server), tmp_path).read_bytes() == CONTENT
    assert "isn't what was fetched" in caplog.text


def test_the_least_recently_used_files_make_room(server: ArtifactServer, tmp_path: Path) -> None:
    for age, name in enumerate(["newest", "middle", "oldest"]):
        (tmp_path / name).write_bytes(bytes(400_000))
        os.utime(tmp_path / name, (1_000_000 - age, 1_000_000 - age))
    kept = fetch(ref(server), tmp_path, cache_bytes=1_000_000)
    assert {path.name for path in tmp_path.iterdir()} == {"newest", kept.name}
