from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.submissions import services
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.submissions.selectors import quota_of
from docvqa_site.submissions.signals import runs_queued
from docvqa_site.uploads.models import Upload, UploadState
from evaluator.errors import ProblemError
from evaluator.messages.jobs import ArtifactKind, TrackRules
from evaluator.messages.results import RunResults
from tests.docvqa_site.factories import (
    SCORES,
    make_artifact,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_upload,
    make_user,
)
from tests.docvqa_site.submissions.contents import checkpoint
from tests.docvqa_site.submissions.drafts import fill, make_complete_draft, make_private_track
from tests.docvqa_site.submissions.submitting import codes, rejected, start_upload, submit
from tests.docvqa_site.uploads.sending import cut, send

pytestmark = pytest.mark.django_db

CHECKPOINT = checkpoint()


def test_submitting_freezes_the_rules_and_queues_every_run():
    submission = make_complete_draft(track=make_private_track(delta=1e-6))
    submit(submission)
    assert submission.state == SubmissionState.SUBMITTED
    assert [run.state for run in submission.runs.all()] == [RunState.QUEUED, RunState.QUEUED]
    rules = [TrackRules.model_validate(run.rules) for run in submission.runs.all()]
    assert [(rule.privacy.epsilon, rule.privacy.delta) for rule in rules] == [(1, 1e-6), (8, 1e-6)]


def test_receivers_are_called_inside_the_transaction():
    submission = make_complete_draft()
    heard: list[Any] = []

    def listen(runs, **_):
        heard.extend(run.state for run in runs)
        raise RuntimeError("can't be evaluated")

    runs_queued.connect(listen)
    try:
        with pytest.raises(RuntimeError):
            submit(submission)
    finally:
        runs_queued.disconnect(listen)
    assert heard == [RunState.QUEUED]
    submission.refresh_from_db()
    assert submission.state == SubmissionState.DRAFT  # nothing happened


def test_every_change_of_state_is_in_the_audit_record():
    submission = make_complete_draft()
    submit(submission)
    actions = set(AuditEntry.objects.filter(actor=submission.created_by).values_list("action", flat=True))
    assert {"submission.submitted", "run.queued"} <= actions


def test_everything_that_is_missing_is_reported_at_once():
    track = make_private_track(paused=True)
    submission = make_submission(track=track)
    fill(make_run(submission, budget=1.0), leave_out=[ArtifactKind.TRAINING_RECORD])
    make_run(submission, budget=3.0)
    with pytest.raises(ProblemError) as error:
        submit(submission)
    found = [(str(problem.code), problem.message, problem.where) for problem in error.value.problems]
    assert [code for code, _, _ in found] == [
        "E_TRACK_CLOSED",
        *["E_ARTIFACT_MISSING"] * 6,
        "E_SUBMISSION_BUDGET",
    ]
    assert ("E_ARTIFACT_MISSING", "The privacy proof is missing.", "for all runs") in found
    assert ("E_ARTIFACT_MISSING", "The training record is missing.", "Run at ε = 1") in found
    assert Run.objects.exclude(state=RunState.DRAFT).count() == 0


def test_a_submission_without_a_run_is_rejected():
    submission = make_submission(track=make_private_track())
    assert codes(submission) == ["E_SUBMISSION_INCOMPLETE", "E_ARTIFACT_MISSING"]


def test_gaps_in_description_and_proof_are_found_with_their_lines(client):
    draft = make_complete_draft(
        track=make_private_track(), description="Ours.\n\n**[FILL IN: what it does]**"
    )
    proof = draft.proof()
    proof.upload = make_upload(draft.team, "# Proof\n[FILL IN: the data]".encode("utf-16"), "proof.md")
    proof.save()
    with pytest.raises(ProblemError) as error:
        services.submit(draft, draft.created_by)
    found = [(str(problem.code), problem.where, problem.found) for problem in error.value.problems]
    assert found == [
        ("E_SUBMISSION_INCOMPLETE", "description, line 3", "[FILL IN: what it does]"),
        ("E_SUBMISSION_INCOMPLETE", "proof.md, line 2", "[FILL IN: the data]"),
    ]
    client.force_login(draft.created_by)
    html = client.get(draft.get_absolute_url()).content.decode()
    # The line of steps counts files alone.
    assert "not ready" in html
    assert "2 to do" not in html
    assert '<a href="#describe">' in html
    assert '<a href="#name-submission-privacy_proof">' in html
    # At the file's own place, too, with what to do.
    slot = html.split('id="stored-submission-privacy_proof"')[1].split("</section>")[0]
    assert "tick-wrong" in slot
    assert "proof.md, line 2" in slot
    assert "Replace everything from [FILL IN: to the closing bracket" in slot
    # Nobody reads them of a practice submission.
    Submission.objects.filter(pk=draft.pk).update(practice=True)
    submit(draft)


@pytest.mark.parametrize(
    "fields",
    [
        {"paused": True},
        {"opens_at": timezone.now() + timedelta(days=1)},
        {"closes_at": timezone.now() - timedelta(days=1)},
    ],
    ids=["paused", "not yet open", "closed"],
)
def test_a_closed_track_takes_nothing(fields):
    assert codes(make_complete_draft(track=make_track(**fields))) == ["E_TRACK_CLOSED"]


def test_a_submission_is_submitted_once():
    submission = make_complete_draft()
    submit(submission)
    assert codes(submission) == ["E_SUBMISSION_STATE"]
    assert codes(make_submission(state=SubmissionState.WITHDRAWN)) == ["E_SUBMISSION_STATE"]


def test_a_budget_that_the_track_gave_up_is_rejected():
    track = make_private_track()
    submission = make_complete_draft(track=track)
    track.budgets = [1.0, 4.0]
    track.save()
    assert codes(submission) == ["E_SUBMISSION_BUDGET"]


class TestQuota:
    """Of a team, in a track, over 24 hours."""

    def test_it_rejects_what_is_over_it_and_says_when_the_next_slot_is_free(self):
        team, track = make_team(), make_track(submissions_per_day=2)
        now = timezone.now()
        submit(make_complete_draft(team, track), now - timedelta(hours=20))
        submit(make_complete_draft(team, track), now - timedelta(hours=1))
        last = make_complete_draft(team, track)
        with pytest.raises(ProblemError) as error:
            submit(last, now)
        assert error.value.problem.code == "E_SUBMISSION_QUOTA"
        free_at = now + timedelta(hours=4)
        assert f"{free_at:%B %-d at %H:%M} UTC" in error.value.problem.next_step
        submit(last, free_at)

    def test_it_is_counted_by_team_and_track(self):
        team, track = make_team(), make_track(submissions_per_day=1)
        submit(make_complete_draft(team, track))
        submit(make_complete_draft(make_team(), track))
        submit(make_complete_draft(team, make_track(submissions_per_day=1)))
        assert codes(make_complete_draft(team, track)) == ["E_SUBMISSION_QUOTA"]

    def test_a_withdrawn_submission_still_counts(self):
        team, track = make_team(), make_track(submissions_per_day=1)
        submission = make_complete_draft(team, track)
        submit(submission)
        services.withdraw(submission, submission.created_by)
        assert codes(make_complete_draft(team, track)) == ["E_SUBMISSION_QUOTA"]

    def test_a_refunded_submission_does_not_count(self):
        team, track = make_team(), make_track(submissions_per_day=1)
        submission = make_complete_draft(team, track)
        submit(submission)
        services.refund(submission)
        submit(make_complete_draft(team, track))

    def test_a_refund_is_made_once(self):
        submission = make_complete_draft()
        submit(submission)
        first, second = timezone.now(), timezone.now() + timedelta(days=1)
        services.refund(submission, now=first)
        services.refund(submission, now=second)
        submission.refresh_from_db()
        assert submission.refunded_at == first
        assert AuditEntry.objects.filter(action="submission.refunded").count() == 1

    def test_so_many_rejected_submissions_give_their_slots_back_in_a_day(self, monkeypatch):
        monkeypatch.setattr("docvqa_site.submissions.quota.RETURNED_SLOTS", 1)
        team, track, now = make_team(), make_track(submissions_per_day=5), timezone.now()
        rejected_ones = [make_complete_draft(team, track) for _ in range(2)]
        for submission in rejected_ones:
            submit(submission, now)
            submission.runs.update(state=RunState.REJECTED)
            services.refund_rejected(submission, now)
        assert [submission.refunded_for for submission in rejected_ones] == ["rejected", ""]
        assert quota_of(team, track, now).used == 1

    def test_a_submission_with_a_score_keeps_its_slot_used(self):
        submission = make_complete_draft(track=make_private_track())
        submit(submission)
        first, second = submission.runs.all()
        for run, state in ((first, RunState.REJECTED), (second, RunState.SCORED)):
            run.state, run.results = state, RunResults(**SCORES)
            run.scored_at = timezone.now() if state is RunState.SCORED else None
            run.save()
        services.refund_rejected(submission)
        assert submission.refunded_at is None

    def test_a_rejected_attempt_costs_nothing(self):
        team, track = make_team(), make_track(submissions_per_day=1)
        assert codes(make_submission(team, track)) == ["E_SUBMISSION_INCOMPLETE"]
        submit(make_complete_draft(team, track))


class TestFiles:
    """What may be uploaded into which place."""

    def test_an_uploaded_file_takes_its_place(self, client):
        run = make_run()
        upload = start_upload(run.submission, run, "checkpoint")
        send(client, upload, cut(CHECKPOINT))
        artifact = services.finish_upload(upload, run.submission.created_by)
        assert (artifact.run, artifact.kind, artifact.upload) == (run, "checkpoint", upload)
        assert services.finish_upload(upload, run.submission.created_by) == artifact

    def test_a_new_file_replaces_the_old_one(self, client, store_folder, django_capture_on_commit_callbacks):
        run = make_run()
        old = make_artifact(run, ArtifactKind.CHECKPOINT, b"old", "old.safetensors").upload
        upload = start_upload(run.submission, run, "checkpoint")
        send(client, upload, cut(CHECKPOINT))
        with django_capture_on_commit_callbacks(execute=True):
            services.finish_upload(upload, run.submission.created_by)
        assert [artifact.upload for artifact in run.artifacts.all()] == [upload]
        old.refresh_from_db()
        assert old.state == UploadState.ABORTED
        assert [path.read_bytes() for path in store_folder.rglob("*") if path.is_file()] == [CHECKPOINT]

    def test_the_same_file_is_resumed_and_another_one_starts_again(self):
        run = make_run()
        first = start_upload(run.submission, run, "checkpoint")
        assert start_upload(run.submission, run, "checkpoint") == first
        second = start_upload(run.submission, run, "checkpoint", b"another")
        first.refresh_from_db()
        assert (first.state, second.state) == (UploadState.ABORTED, UploadState.OPEN)

    @pytest.mark.parametrize(
        ("kind", "on_run"),
        [
            ("training_record", True),
            ("privacy_proof", True),
            ("privacy_proof", False),
            ("checkpoint", False),
            ("pickle", True),
            ("", True),
        ],
    )
    def test_a_kind_that_has_no_place_there_is_rejected(self, kind, on_run):
        run = make_run()  # in a track where ε plays no part
        with rejected("E_ARTIFACT_KIND"):
            start_upload(run.submission, run if on_run else None, kind)

    def test_a_proof_belongs_to_the_submission_and_a_record_to_the_run(self):
        run = make_run(make_submission(track=make_private_track()), budget=1.0)
        start_upload(run.submission, run, "training_record")
        start_upload(run.submission, None, "privacy_proof")
        with rejected("E_ARTIFACT_KIND"):
            start_upload(run.submission, run, "privacy_proof")
        with rejected("E_ARTIFACT_KIND"):
            start_upload(run.submission, None, "training_record")

    @pytest.mark.parametrize("filename", ["model.pt", "model.pkl", "model.safetensors.zip", "safetensors"])
    def test_only_files_in_a_format_of_the_kind_are_accepted(self, filename):
        run = make_run()
        with rejected("E_ARTIFACT_KIND"):
            start_upload(run.submission, run, "checkpoint", filename=filename)

    @pytest.mark.parametrize(
        ("kind", "limit"),
        [
            ("checkpoint", 1_000_000),
            ("communication_log", 200_000_000),
            ("training_record", 500_000_000),
            ("privacy_proof", 20_000_000),
        ],
    )
    def test_each_kind_has_a_size_that_it_must_not_exceed(self, kind, limit):
        run = make_run(make_submission(track=make_private_track(max_checkpoint_bytes=1_000_000)), budget=1.0)
        place = None if kind == "privacy_proof" else run
        with rejected("E_ARTIFACT_SIZE"):
            start_upload(run.submission, place, kind, size_bytes=limit + 1)
        start_upload(run.submission, place, kind, size_bytes=limit)

    def test_an_empty_file_is_rejected(self):
        run = make_run()
        with rejected("E_ARTIFACT_SIZE"):
            start_upload(run.submission, run, "checkpoint", b"")

    def test_nothing_is_uploaded_into_a_submitted_submission(self, client):
        submission = make_complete_draft()
        run = submission.runs.get()
        upload = start_upload(submission, run, "checkpoint")
        send(client, upload, cut(CHECKPOINT))
        submit(submission)
        before = set(run.artifacts.values_list("upload", flat=True))
        with rejected("E_UPLOAD_STATE"):  # submitting gave it up
            services.finish_upload(Upload.objects.get(pk=upload.pk), submission.created_by)
        with rejected("E_SUBMISSION_STATE"):
            start_upload(submission, run, "checkpoint")
        assert set(run.artifacts.values_list("upload", flat=True)) == before

    def test_a_file_that_was_completed_before_the_submission_was_frozen_does_not_get_in(self, client):
        submission = make_complete_draft()
        upload = start_upload(submission, submission.runs.get(), "checkpoint")
        Submission.objects.filter(pk=submission.pk).update(
            state=SubmissionState.SUBMITTED,
            submitted_at=timezone.now(),
            phase=submission.track.phases.first(),
        )
        send(client, upload, cut(CHECKPOINT))
        with rejected("E_SUBMISSION_STATE"):
            services.finish_upload(upload, submission.created_by)


class TestDrafts:
    def test_a_track_without_budgets_starts_with_its_run(self):
        team, user = make_team(), make_user()
        submission = services.create_submission(team, user, make_track(), title="Method")
        assert [run.budget for run in submission.runs.all()] == [None]
        assert not services.create_submission(team, user, make_private_track(), title="Method").runs.exists()

    def test_adding_a_run_again_gives_the_same_run(self):
        submission = make_submission(track=make_private_track())
        assert services.add_run(submission, 4.0) == services.add_run(submission, 4)
        assert submission.runs.count() == 1

    @pytest.mark.parametrize("budget", [None, 0.0, 2.0, float("nan"), float("inf")])
    def test_a_run_needs_a_board(self, budget):
        with rejected("E_SUBMISSION_BUDGET"):
            services.add_run(make_submission(track=make_private_track()), budget)

    def test_a_budget_has_no_board_where_epsilon_plays_no_part(self):
        with rejected("E_SUBMISSION_BUDGET"):
            services.add_run(make_submission(), 1.0)

    def test_removing_a_run_removes_its_files(self, store_folder, django_capture_on_commit_callbacks):
        submission = make_complete_draft(track=make_private_track())
        with django_capture_on_commit_callbacks(execute=True):
            services.remove_run(submission.runs.get(budget=1.0), submission.created_by)
        assert [run.budget for run in submission.runs.all()] == [8.0]
        assert len([path for path in store_folder.rglob("*") if path.is_file()]) == 4 + 1

    def test_a_submitted_run_stays(self):
        submission = make_complete_draft()
        submit(submission)
        with rejected("E_SUBMISSION_STATE"):
            services.remove_run(submission.runs.get(), submission.created_by)
        with rejected("E_SUBMISSION_STATE"):
            services.add_run(submission, None)

    def test_a_team_has_so_many_drafts_at_most(self, monkeypatch):
        monkeypatch.setattr(services, "MAX_DRAFTS", 1)
        team, track = make_team(), make_track()
        draft = make_submission(team, track)
        with rejected("E_SUBMISSION_STATE"):
            services.create_submission(team, draft.created_by, track, title="One more")
        services.withdraw(draft, draft.created_by)
        services.create_submission(team, draft.created_by, track, title="One more")
