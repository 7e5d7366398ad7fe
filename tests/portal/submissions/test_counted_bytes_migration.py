"""Runs that an earlier version counted keep their bytes and their rank, by the rule that they were counted by."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from portal.boards.boards import stored_boards
from portal.challenge.models import Track
from portal.submissions.models import Run, RunState, SubmissionState
from tests.portal.factories import make_run, make_submission, make_track
from tests.portal.submissions.test_artifact_migration import migrate

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = [("submissions", "0008_practice_submissions"), ("challenge", "0012_drafts_people_and_registration")]


@pytest.fixture
def latest() -> Iterator[list[tuple[str, str]]]:
    """The newest migrations of both apps, at which the database is left."""
    leaves = MigrationExecutor(connection).loader.graph.leaf_nodes()
    targets = [key for key in leaves if key[0] in {"submissions", "challenge"}]
    yield targets
    migrate(targets)


def test_a_run_of_an_earlier_version_is_declared_and_ranked(latest: list[tuple[str, str]]) -> None:
    track = make_track(anls_threshold=0.5)
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    run = make_run(submission, state=RunState.SCORED, counting="declared")
    migrate(BEFORE)
    migrate(latest)
    found, changed = Run.objects.get(pk=run.pk), Track.objects.get()
    assert (found.results.counting, found.results.bytes_sent) == ("declared", found.results.bytes_total)
    assert found.rules["first_download"] == changed.first_download == "counted"
    assert found.rules == changed.rules(None).model_dump(mode="json")
    assert not changed.phases.get().requires_counted
    (board,) = stored_boards(changed)
    assert [row.rank for row in board] == [1]
