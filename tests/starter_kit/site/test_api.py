import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.contracts import ArtifactKind
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.site import api
from starter_kit.site.api import SiteClient, parts_of
from tests.services.ports import free_port
from tests.starter_kit.pocket_site import TOKEN, PocketSite


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[PocketSite]:
    monkeypatch.setattr(api, "PAUSE_S", 0.001)
    with PocketSite(part_size_bytes=1000) as site:
        yield site


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    path.write_bytes(bytes(range(256)) * 20)  # 5120 bytes: six parts
    return path


def draft(client: SiteClient) -> tuple[str, str]:
    submission = client.create_submission("track-1", "Mine")["id"]
    return submission, client.add_run(submission, None)


def upload(client: SiteClient, submission: str, run: str, path: Path) -> int:
    """Upload as a checkpoint; how many bytes were told to be stored."""
    told: list[int] = []
    client.upload(submission, run, ArtifactKind.CHECKPOINT, path, told.append)
    return sum(told)


def test_a_file_arrives_as_it_is(site: PocketSite, file: Path) -> None:
    client = SiteClient(site.url, TOKEN)
    submission, run = draft(client)
    assert upload(client, submission, run, file) == 5120
    assert site.files() == {(run, "checkpoint"): file.read_bytes()}


def test_an_upload_that_broke_off_goes_on_with_the_parts_that_are_missing(
    site: PocketSite, file: Path
) -> None:
    client = SiteClient(site.url, TOKEN)
    submission, run = draft(client)
    site.faults["PUT /store/u1/4"] = 1000
    with pytest.raises(ProblemError) as caught:
        upload(client, submission, run, file)
    assert caught.value.problem.code is ErrorCode.SITE_UNREACHABLE
    site.faults.clear()
    site.calls.clear()
    assert upload(client, submission, run, file) == 5120
    assert [call for call in site.calls if call.startswith("PUT")] == ["PUT /store/u1/4"]
    assert site.files() == {(run, "checkpoint"): file.read_bytes()}


def test_a_file_that_changed_meanwhile_is_sent_anew(site: PocketSite, file: Path) -> None:
    client = SiteClient(site.url, TOKEN)
    submission, run = draft(client)
    site.faults["PUT /store/u1/6"] = 1000
    with pytest.raises(ProblemError):
        upload(client, submission, run, file)
    file.write_bytes(file.read_bytes()[::-1])
    upload(client, submission, run, file)
    assert site.files() == {(run, "checkpoint"): file.read_bytes()}


@pytest.mark.parametrize(
    "call", ["GET /api/v1/tracks", "POST /api/v1/uploads", "PUT /store", "POST /api/v1/submissions"]
)
def test_a_site_in_trouble_is_asked_again(site: PocketSite, file: Path, call: str) -> None:
    client = SiteClient(site.url, TOKEN)
    site.faults[call] = 2
    client.tracks()
    submission, run = draft(client)
    upload(client, submission, run, file)
    assert site.faults[call] == 0
    assert site.files() == {(run, "checkpoint"): file.read_bytes()}


def test_the_store_never_sees_the_token(site: PocketSite, file: Path) -> None:
    client = SiteClient(site.url, TOKEN)
    upload(client, *draft(client), file)
    assert set(site.tokens_seen_by_store) == {None}


def test_what_the_site_rejects_is_told_with_its_code_and_not_tried_again(site: PocketSite) -> None:
    with pytest.raises(ProblemError) as caught:
        SiteClient(site.url, "another").tracks()
    assert caught.value.problem.message == "No such token."
    assert site.calls["GET /api/v1/tracks"] == 1


def test_a_submission_whose_answer_was_lost_is_not_rejected_as_a_second_one(site: PocketSite) -> None:
    client = SiteClient(site.url, TOKEN)
    submission, _ = draft(client)
    site.lost_answers["POST /api/v1/submissions/s1/submit"] = 1
    assert client.submit(submission)["state"] == "submitted"


def test_a_rejected_submission_stays_rejected(site: PocketSite) -> None:
    with pytest.raises(ProblemError):
        SiteClient(site.url, TOKEN).submit("s99")


def test_an_address_where_nobody_answers_is_named_as_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "PAUSE_S", 0.001)
    with pytest.raises(ProblemError) as caught:
        SiteClient(f"http://127.0.0.1:{free_port()}", TOKEN).tracks()
    assert caught.value.problem.code is ErrorCode.SITE_UNREACHABLE


def test_a_site_of_another_kind_is_not_understood(site: PocketSite) -> None:
    with pytest.raises(ProblemError) as caught:
        SiteClient(f"{site.url}/elsewhere", TOKEN).submission("s1")
    assert caught.value.problem.code is ErrorCode.SITE_UNREACHABLE


def test_only_drafts_of_the_same_track_and_title_are_gone_on_with(site: PocketSite) -> None:
    client = SiteClient(site.url, TOKEN)
    client.create_submission("track-1", "Other")
    client.create_submission("track-2", "Mine")
    submitted = client.create_submission("track-1", "Mine")["id"]
    client.submit(submitted)
    mine = client.create_submission("track-1", "Mine")["id"]
    assert [row["id"] for row in client.drafts("track-1", "Mine")] == [mine]


@given(st.binary(max_size=5000), st.integers(1, 2000))
def test_parts_lie_end_to_end_and_make_up_the_file(content: bytes, size: int) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        parts = list(parts_of(Path(file.name), size))
    assert [part.number for part in parts] == list(range(1, len(parts) + 1))
    assert all(part.size_bytes == size for part in parts[:-1])
    pieces = [content[part.offset : part.offset + part.size_bytes] for part in parts]
    assert b"".join(pieces) == content
    assert [hashlib.sha256(piece).hexdigest() for piece in pieces] == [part.sha256 for part in parts]


def test_the_part_size_is_the_sites_choice(site: PocketSite, file: Path) -> None:
    client = SiteClient(site.url, TOKEN)
    upload(client, *draft(client), file)
    assert {len(part) for part in site.uploads["u1"]["parts"].values()} == {1000, 120}
