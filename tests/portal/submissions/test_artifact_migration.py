"""A database with files on their way is migrated to the artifacts' one table, and back, without losing any."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from evaluator.messages.jobs import ArtifactKind
from portal.submissions.models import Artifact, ArtifactState
from portal.uploads.models import Upload, UploadState
from tests.portal.factories import make_artifact, make_run, make_submission, make_upload

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = [("submissions", "0001_initial")]


def migrate(targets: list[tuple[str, str]]) -> Any:
    executor = MigrationExecutor(connection)
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.fixture
def latest() -> Iterator[list[tuple[str, str]]]:
    """The newest migrations, at which the database is left."""
    targets = [
        key for key in MigrationExecutor(connection).loader.graph.leaf_nodes() if key[0] == "submissions"
    ]
    yield targets
    migrate(targets)


def rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted(table.values_list("submission", "run", "kind", "upload"), key=str)


def on_its_way(run: Any, kind: ArtifactKind, **fields: Any) -> Upload:
    upload = make_upload(run.submission.team, b"half", state=UploadState.OPEN, **fields)
    Artifact.pending.create(submission=run.submission, run=run, kind=kind, upload=upload)
    return upload


def test_nothing_is_lost_on_the_way_there_and_back(latest: list[tuple[str, str]]) -> None:
    run = make_run(make_submission())
    first = make_artifact(run, ArtifactKind.CHECKPOINT)
    old = make_artifact(run.submission, ArtifactKind.PRIVACY_PROOF, b"old")
    Artifact.objects.filter(pk=old.pk).update(state=ArtifactState.SUPERSEDED, superseded_at=timezone.now())
    new = Artifact.objects.create(
        submission=run.submission,
        kind=ArtifactKind.PRIVACY_PROOF,
        upload=make_upload(run.submission.team, b"new"),
        state=ArtifactState.ATTACHED,
        version=2,
    )
    # A replacement of the checkpoint, and the proof of another draft.
    replacement = on_its_way(run, ArtifactKind.CHECKPOINT)
    other = make_submission(run.submission.team, run.submission.track)
    proof = make_upload(other.team, b"proof", state=UploadState.OPEN)
    Artifact.pending.create(submission=other, kind=ArtifactKind.PRIVACY_PROOF, upload=proof)
    finished, pending = rows(Artifact.objects), rows(Artifact.pending)

    apps = migrate(BEFORE)
    assert rows(apps.get_model("submissions", "Artifact").objects) == finished
    assert rows(apps.get_model("submissions", "PendingArtifact").objects) == pending

    migrate(latest)
    assert rows(Artifact.objects) == finished
    assert rows(Artifact.pending) == pending
    assert dict(Artifact.objects.values_list("pk", "state")) == {
        first.pk: ArtifactState.ATTACHED,
        old.pk: ArtifactState.SUPERSEDED,
        new.pk: ArtifactState.ATTACHED,
    }
    assert Artifact.pending.get(upload=replacement).created_at == replacement.created_at


def test_the_database_allows_one_finished_file_in_a_place_and_one_pending_place_for_an_upload() -> None:
    run = make_run(make_submission())
    make_artifact(run, ArtifactKind.CHECKPOINT)
    upload = on_its_way(run, ArtifactKind.CHECKPOINT)
    with pytest.raises(IntegrityError), transaction.atomic():
        make_artifact(run, ArtifactKind.CHECKPOINT, b"another")
    with pytest.raises(IntegrityError), transaction.atomic():
        Artifact.pending.create(
            submission=run.submission, run=run, kind=ArtifactKind.COMMUNICATION_LOG, upload=upload
        )
