"""Files on their way to the real site, over connections that break."""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docvqa_site.submissions.models import Artifact
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from starter_kit.site.client import SiteClient
from starter_kit.site.uploading import FileProgress, hashes_of, upload_file
from tests.services.live_site import Fault, LiveSite


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "method.py"
    path.write_bytes(bytes(range(256)) * 20)  # 5120 bytes: six parts
    return path


def draft(client: SiteClient) -> tuple[UUID, UUID]:
    submission = client.create_submission("track-1", "Mine")
    return submission.id, client.add_run(submission.id, None).id


def upload(client: SiteClient, submission: UUID, run: UUID, path: Path) -> int:
    """Upload as a method file, whose content the site doesn't look into; how many bytes were reported as sent."""
    reported: list[FileProgress] = []
    kind = ArtifactKind.METHOD_FILE
    artifact = upload_file(
        client, path, submission=submission, run=run, kind=kind, on_progress=reported.append
    )
    assert artifact.size_bytes == path.stat().st_size
    done = [one.done_bytes for one in reported]
    assert done == sorted(done)
    assert done[-1] == artifact.size_bytes
    return reported[-1].sent_bytes


def content_at_the_site(run: UUID) -> bytes:
    """The run's method file, which is its only file, as the store holds it."""
    with current_store().open(Artifact.objects.get(run=run).upload.store_key) as file:
        return file.read()


def parts_sent(site: LiveSite) -> dict[str, int]:
    return {call: count for call, count in site.calls.items() if call.startswith("PUT")}


def test_a_file_arrives_unchanged_in_parts_that_the_site_chooses(
    site: LiveSite, site_client: SiteClient, file: Path
) -> None:
    submission, run = draft(site_client)
    assert upload(site_client, submission, run, file) == 5120
    assert content_at_the_site(run) == file.read_bytes()
    assert parts_sent(site) == {f"PUT part {number}": 1 for number in range(1, 7)}


def test_an_interrupted_upload_is_resumed_with_the_parts_that_are_missing(
    site: LiveSite, site_client: SiteClient, file: Path
) -> None:
    submission, run = draft(site_client)
    site.break_down("PUT part 4")
    with pytest.raises(ProblemError) as caught:
        upload(site_client, submission, run, file)
    assert caught.value.problem.code is ErrorCode.SITE_UNREACHABLE
    site.recover()
    assert upload(site_client, submission, run, file) == 5120
    assert parts_sent(site) == {"PUT part 4": 1}
    assert content_at_the_site(run) == file.read_bytes()


def test_a_file_that_changed_meanwhile_is_sent_again(
    site: LiveSite, site_client: SiteClient, file: Path
) -> None:
    submission, run = draft(site_client)
    site.break_down("PUT part 6")
    with pytest.raises(ProblemError):
        upload(site_client, submission, run, file)
    site.recover()
    file.write_bytes(file.read_bytes()[::-1])
    assert upload(site_client, submission, run, file) == 5120
    assert len(parts_sent(site)) == 6
    assert content_at_the_site(run) == file.read_bytes()


def test_a_file_that_changes_while_it_is_uploaded_is_not_completed(
    site: LiveSite, site_client: SiteClient, file: Path
) -> None:
    submission, run = draft(site_client)
    with pytest.raises(ProblemError) as caught:
        upload_file(
            site_client,
            file,
            submission=submission,
            run=run,
            kind=ArtifactKind.METHOD_FILE,
            on_progress=lambda _: file.touch(),
        )
    assert caught.value.problem.code is ErrorCode.ARTIFACT_HASH
    assert not Artifact.objects.exists()


def test_an_address_that_a_store_no_longer_takes_is_requested_again(
    site: LiveSite, site_client: SiteClient, file: Path
) -> None:
    expired = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 8\r\nConnection: close\r\n\r\n<Error/>"
    site.break_down("PUT part 2", expired, times=1)
    submission, run = draft(site_client)
    assert upload(site_client, submission, run, file) == 5120
    assert site.calls["PUT part 2"] == 2
    assert content_at_the_site(run) == file.read_bytes()


def test_a_store_that_is_away_is_reported_as_such(
    site: LiveSite, site_client: SiteClient, file: Path, settings: Any
) -> None:
    submission, run = draft(site_client)
    settings.STORE_FOLDER.write_text("no folder")
    with pytest.raises(ProblemError) as caught:
        upload(site_client, submission, run, file)
    assert caught.value.problem.code is ErrorCode.STORE_UNAVAILABLE
    assert "resumes where it stopped" in caught.value.problem.next_step
    settings.STORE_FOLDER.unlink()
    assert upload(site_client, submission, run, file) == 5120


def test_a_site_that_is_out_of_storage_is_not_asked_again(
    site: LiveSite, site_client: SiteClient, file: Path, settings: Any
) -> None:
    submission, run = draft(site_client)
    settings.DISK_RESERVE_BYTES = 2**60
    with pytest.raises(ProblemError) as caught:
        upload(site_client, submission, run, file)
    assert caught.value.problem.code is ErrorCode.STORE_FULL
    assert site.calls["POST /api/v1/uploads"] == 1


@pytest.mark.parametrize("fault", Fault)
def test_connections_that_fail_twice_do_no_harm(
    site: LiveSite, site_client: SiteClient, file: Path, fault: Fault
) -> None:
    submission, run = draft(site_client)
    for call in ("POST /api/v1/uploads", "PUT part 2", "POST /api/v1/uploads/*/complete"):
        site.break_down(call, fault, times=2)
    assert upload(site_client, submission, run, file) == 5120
    assert (site.calls["POST /api/v1/uploads"], site.calls["PUT part 2"]) == (3, 3)
    assert content_at_the_site(run) == file.read_bytes()


def test_the_store_never_sees_the_token(
    site: LiveSite, site_client: SiteClient, token: str, file: Path
) -> None:
    upload(site_client, *draft(site_client), file)
    seen = site.authorization
    assert set().union(*(seen[call] for call in seen if call.startswith("PUT"))) == {None}
    assert seen["POST /api/v1/uploads"] == {f"Bearer {token}"}


def test_a_file_that_the_site_does_not_take_is_rejected_with_its_code(
    site: LiveSite, site_client: SiteClient, tmp_path: Path
) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"a pickle")
    with pytest.raises(ProblemError) as caught:
        upload(site_client, *draft(site_client), path)
    assert caught.value.problem.code is ErrorCode.ARTIFACT_KIND
    assert parts_sent(site) == {}


def test_a_file_that_is_wrong_from_its_beginning_is_rejected_before_it_is_read(
    site: LiveSite, site_client: SiteClient, tmp_path: Path
) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"PK\x03\x04")
    os.truncate(path, 2_000_000_000)
    submission, run = draft(site_client)
    reported: list[FileProgress] = []
    with pytest.raises(ProblemError) as caught:
        upload_file(
            site_client,
            path,
            submission=submission,
            run=run,
            kind=ArtifactKind.CHECKPOINT,
            on_progress=reported.append,
        )
    assert caught.value.problem.code is ErrorCode.CHECKPOINT_FORMAT
    assert (reported, site.calls["POST /api/v1/uploads"]) == ([], 0)


@given(st.binary(max_size=5000), st.integers(1, 2000))
def test_parts_follow_one_another_and_make_up_the_file(content: bytes, size: int) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        whole, parts = hashes_of(Path(file.name), size)
    assert whole == hashlib.sha256(content).hexdigest()
    assert [part.number for part in parts] == list(range(1, len(parts) + 1))
    assert all(part.size_bytes == size for part in parts[:-1])
    starts = [(part.number - 1) * size for part in parts]
    pieces = [content[start : start + part.size_bytes] for start, part in zip(starts, parts, strict=True)]
    assert b"".join(pieces) == content
    assert [hashlib.sha256(piece).hexdigest() for piece in pieces] == [part.sha256 for part in parts]
