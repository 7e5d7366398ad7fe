"""The rules by which old files are removed."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.celery import CLEAN_UP_TASK, app
from docvqa_site.evaluation.services import evaluate_again
from docvqa_site.submissions.models import Artifact, RunState, SubmissionState
from docvqa_site.submissions.retention import clean_up
from docvqa_site.uploads.models import Upload, UploadState
from evaluator.errors import ProblemError
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_upload,
)

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def ago(days):
    return NOW - timedelta(days=days)


@pytest.fixture
def clean(django_capture_on_commit_callbacks):
    """Applies the rules, and returns those that removed something."""

    def apply(**options):
        with django_capture_on_commit_callbacks(execute=True):
            counts = clean_up(**options)
        return {rule: count for rule, count in counts.items() if count}

    return apply


def stored(store_folder):
    return sorted(path.name for path in (store_folder / "objects").rglob("*") if path.is_file())


def name_of(upload):
    return upload.store_key.split("/")[1]


def rule_of(upload):
    return AuditEntry.objects.get(object_id=str(upload.pk), action="upload.expired").details["rule"]


def old_artifact(of, kind=ArtifactKind.CHECKPOINT, days=100):
    artifact = make_artifact(of, kind)
    Artifact.objects.filter(pk=artifact.pk).update(created_at=ago(days))
    Upload.objects.filter(pk=artifact.upload_id).update(created_at=ago(days), finished_at=ago(days))
    return artifact


def old_run(state=RunState.SCORED, closed_days_ago=40):
    track = make_track(closes_at=ago(closed_days_ago) if closed_days_ago else None)
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    return make_run(submission, state=state)


def test_abandoned_uploads_and_files_of_nothing_are_removed(clean, store_folder):
    team = make_team()
    unfinished = make_upload(team, state=UploadState.OPEN, created_at=ago(8), finished_at=None)
    unattached = make_upload(team, created_at=ago(8), finished_at=ago(8))
    recent = make_upload(team, state=UploadState.OPEN, created_at=ago(6), finished_at=None)
    completed_now = make_upload(team, created_at=ago(8), finished_at=NOW)
    attached = old_artifact(make_run(), days=8).upload
    assert clean() == {"uploads": 2}
    assert dict(Upload.objects.values_list("pk", "state")) == {
        unfinished.pk: UploadState.EXPIRED,
        unattached.pk: UploadState.EXPIRED,
        recent.pk: UploadState.OPEN,
        completed_now.pk: UploadState.COMPLETED,
        attached.pk: UploadState.COMPLETED,
    }
    assert rule_of(unfinished) == rule_of(unattached) == "uploads"
    assert stored(store_folder) == sorted(map(name_of, [recent, completed_now, attached]))


def test_the_files_of_a_draft_are_removed_when_none_was_added_for_long(clean, store_folder):
    run = make_run()
    old = old_artifact(run)
    active = make_run()
    old_artifact(active)
    kept = old_artifact(active, ArtifactKind.COMMUNICATION_LOG, days=10)
    uploading = make_run()
    old_artifact(uploading)
    Artifact.pending.create(
        submission=uploading.submission,
        run=uploading,
        kind=ArtifactKind.COMMUNICATION_LOG,
        upload=make_upload(uploading.submission.team, state=UploadState.OPEN, finished_at=None),
    )
    submitted = old_artifact(old_run(closed_days_ago=0))
    assert clean() == {"drafts": 1}
    assert not Artifact.objects.filter(pk=old.pk).exists()
    assert rule_of(old.upload) == "drafts"
    run.submission.refresh_from_db()
    assert run.submission.state == SubmissionState.DRAFT  # its text stays
    assert name_of(old.upload) not in stored(store_folder)
    assert {name_of(kept.upload), name_of(submitted.upload)} < set(stored(store_folder))
    assert clean() == {}


def test_checkpoints_are_kept_unless_a_rule_is_set(clean, store_folder):
    artifact = old_artifact(old_run())
    assert clean() == {}
    assert stored(store_folder) == [name_of(artifact.upload)]


def test_checkpoints_are_removed_after_their_track_closed_and_the_results_stay(clean, settings, store_folder):
    settings.RETENTION_CHECKPOINT_DAYS = 30
    run = old_run()
    checkpoint = old_artifact(run)
    log = old_artifact(run, ArtifactKind.COMMUNICATION_LOG)
    others = [
        old_artifact(old_run(closed_days_ago=20)),
        old_artifact(old_run(closed_days_ago=0)),
        old_artifact(old_run(RunState.QUEUED)),
        old_artifact(old_run(RunState.FAILED)),
    ]
    assert clean() == {"checkpoints": 1}
    assert clean() == {}
    checkpoint.upload.refresh_from_db()
    assert checkpoint.upload.state == UploadState.EXPIRED
    assert checkpoint.upload.sha256
    assert rule_of(checkpoint.upload) == "checkpoints"
    run.refresh_from_db()
    assert run.state == RunState.SCORED
    assert stored(store_folder) == sorted(name_of(artifact.upload) for artifact in [log, *others])


def test_a_run_whose_checkpoint_was_removed_can_not_be_evaluated_again(clean, settings):
    settings.RETENTION_CHECKPOINT_DAYS = 30
    run = old_run()
    old_artifact(run)
    clean()
    with pytest.raises(ProblemError, match=r"E_ARTIFACT_MISSING: .*\n.*removed: checkpoint"):
        evaluate_again(run, actor=run.submission.created_by)
    run.refresh_from_db()
    assert run.state == RunState.SCORED


def test_a_rule_is_off_with_zero_days(clean, settings):
    settings.RETENTION_UPLOAD_DAYS = settings.RETENTION_DRAFT_DAYS = 0
    make_upload(make_team(), state=UploadState.OPEN, created_at=ago(5000), finished_at=None)
    old_artifact(make_run(), days=5000)
    assert clean() == {}


def test_the_clock_removes_a_batch_at_a_time(clean):
    for _ in range(3):
        make_upload(make_team(), state=UploadState.OPEN, created_at=ago(8), finished_at=None)
    assert clean(limit=2) == {"uploads": 2}
    assert clean(limit=2) == {"uploads": 1}


def test_the_clock_calls_it_every_hour():
    app.loader.import_default_modules()
    schedules = {entry["task"]: entry["schedule"] for entry in app.conf.beat_schedule.values()}
    assert schedules[CLEAN_UP_TASK] == 3600
    assert CLEAN_UP_TASK in app.tasks


def test_the_command_removes_everything_and_says_what(capsys):
    Session.objects.create(session_key="old", session_data="", expire_date=ago(1))
    make_upload(make_team(), state=UploadState.OPEN, created_at=ago(8), finished_at=None)
    call_command("clean_up")
    printed = capsys.readouterr().out
    assert "uploads: 1 removed." in printed
    assert "sessions: 1 removed." in printed
    assert not Session.objects.exists()
