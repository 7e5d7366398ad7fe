"""What a team, and the site, may store."""

import pytest

from docvqa_site.submissions.models import SubmissionState
from docvqa_site.uploads import services
from docvqa_site.uploads.folder_store import FolderStore
from docvqa_site.uploads.storage import storage_of
from evaluator.errors import ProblemError
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import make_artifact, make_run, make_submission, make_team
from tests.docvqa_site.uploads.sending import cut, send, start

pytestmark = pytest.mark.django_db

CONTENT = b"0123456789abcdefghij!"


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def limit(settings):
    settings.TEAM_STORAGE_BYTES = 50
    return settings.TEAM_STORAGE_BYTES


def rejected(code):
    return pytest.raises(ProblemError, match=f"^{code}:")


def artifact_of(team, state, content=CONTENT):
    return make_artifact(make_run(make_submission(team, state=state)), ArtifactKind.CHECKPOINT, content)


def test_drafts_and_unfinished_uploads_count_and_submitted_files_do_not(team, limit):
    artifact_of(team, SubmissionState.DRAFT)
    artifact_of(team, SubmissionState.SUBMITTED)
    artifact_of(make_team(), SubmissionState.DRAFT)
    start(team, b"abc")
    assert storage_of(team).used_bytes == len(CONTENT) + 3
    assert storage_of(team).left_bytes == 50 - len(CONTENT) - 3


def test_a_file_beyond_the_quota_is_rejected_with_what_is_used(team, limit):
    artifact_of(team, SubmissionState.DRAFT)
    start(team, CONTENT)
    with pytest.raises(ProblemError) as error:
        start(team, b"123456789")
    problem = error.value.problem
    assert (problem.code, problem.expected) == ("E_STORAGE_QUOTA", "50 bytes at most")
    assert problem.found == "42 bytes, and 9 bytes more"
    assert "discard a draft" in problem.next_step
    start(team, b"12345678")
    start(make_team(), CONTENT)  # another team isn't concerned


def test_an_aborted_upload_makes_room(team, limit):
    upload = start(team, CONTENT * 2)
    with rejected("E_STORAGE_QUOTA"):
        start(team, CONTENT)
    services.abort(upload)
    start(team, CONTENT)


def test_an_upload_is_rejected_before_the_disk_is_full(team, settings, monkeypatch):
    settings.DISK_RESERVE_BYTES = 1000
    monkeypatch.setattr(FolderStore, "free_bytes", lambda _: 1020)
    with rejected("E_STORE_FULL"):
        start(team, CONTENT)
    start(team, CONTENT[:20])


def test_no_further_part_is_taken_when_the_disk_is_nearly_full(team, client, settings, monkeypatch):
    upload = start(team, CONTENT)
    parts = cut(CONTENT)
    send(client, upload, parts[:1])
    settings.DISK_RESERVE_BYTES = 1000
    monkeypatch.setattr(FolderStore, "free_bytes", lambda _: 999)
    with rejected("E_STORE_FULL"):
        services.part_urls(upload, [parts[1][0]])
    monkeypatch.undo()
    send(client, upload, parts[1:])
    services.complete(upload)


def test_all_teams_together_have_a_budget(team, settings):
    settings.STORE_BUDGET_BYTES = 50
    artifact_of(make_team(), SubmissionState.SUBMITTED)
    start(team, CONTENT)
    with rejected("E_STORE_FULL"):
        start(make_team(), CONTENT)
