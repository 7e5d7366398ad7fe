"""What a team can do with a submission after it was submitted."""

import pytest
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.submissions import services
from docvqa_site.submissions.models import Artifact, RunState, SubmissionState
from docvqa_site.submissions.proof_versions import discard_staged, send_revision
from docvqa_site.submissions.selectors import quota_of
from docvqa_site.uploads.models import Upload, UploadState
from docvqa_site.uploads.storage import storage_of
from tests.docvqa_site.factories import (
    make_submission,
    make_upload,
)
from tests.docvqa_site.submissions.drafts import make_complete_draft, make_private_track
from tests.docvqa_site.submissions.submitting import codes, rejected, start_upload, submit
from tests.docvqa_site.uploads.sending import sha

pytestmark = pytest.mark.django_db


class TestTryingAgain:
    """A new draft with the text and the files of what was submitted."""

    def test_it_has_the_text_and_every_file_without_an_upload(self, store_folder):
        first = make_complete_draft(track=make_private_track(), description="*Much* noise.", title="DP")
        submit(first)
        before = [path for path in store_folder.rglob("*") if path.is_file()]
        first.runs.update(state=RunState.REJECTED)
        draft = services.copy_to_draft(first, first.created_by)
        assert (draft.state, draft.title, draft.description) == ("draft", "DP", "*Much* noise.")
        assert [path for path in store_folder.rglob("*") if path.is_file()] == before
        assert {
            (file.kind, file.run and file.run.budget, file.upload_id) for file in draft.artifacts.all()
        } == {(file.kind, file.run and file.run.budget, file.upload_id) for file in first.artifacts.all()}
        assert list(draft.runs.values_list("challenge", flat=True)) == list(
            first.runs.values_list("challenge", flat=True)
        )
        submit(draft)

    def test_a_file_that_is_replaced_or_discarded_there_stays_with_the_first(
        self, store_folder, django_capture_on_commit_callbacks
    ):
        first = make_complete_draft()
        submit(first)
        draft = services.copy_to_draft(first, first.created_by)
        with django_capture_on_commit_callbacks(execute=True):
            services.withdraw(draft, draft.created_by)
        assert {file.upload.state for file in first.artifacts.all()} == {UploadState.COMPLETED}
        assert len([path for path in store_folder.rglob("*") if path.is_file()]) == 2

    def test_it_takes_no_storage_of_the_drafts(self):
        first = make_complete_draft()
        submit(first)
        services.copy_to_draft(first, first.created_by)
        assert storage_of(first.team).used_bytes == 0

    def test_a_file_that_was_removed_is_missing(self):
        first = make_complete_draft()
        submit(first)
        first.runs.update(state=RunState.REJECTED)
        Upload.objects.filter(artifacts__kind="checkpoint").update(state=UploadState.EXPIRED)
        assert codes(services.copy_to_draft(first, first.created_by)) == ["E_ARTIFACT_MISSING"]

    def test_a_draft_is_not_copied(self):
        draft = make_complete_draft()
        with rejected("E_SUBMISSION_STATE"):
            services.copy_to_draft(draft, draft.created_by)


class TestRevisedProof:
    """A new version of the proof of what was submitted."""

    @pytest.fixture
    def submission(self):
        submission = make_complete_draft(track=make_private_track(submissions_per_day=1))
        submit(submission)
        return submission

    @staticmethod
    def revise(submission, content=b"# Better", filename="proof.md"):
        upload = services.start_upload(
            submission,
            None,
            "privacy_proof",
            submission.created_by,
            filename=filename,
            size_bytes=len(content),
            sha256=sha(content),
        )
        store = make_upload(submission.team, content)
        Upload.objects.filter(pk=upload.pk).update(state=UploadState.COMPLETED, store_upload="")
        key, store.store_key = store.store_key, f"gone/{store.pk}"
        store.save()
        Upload.objects.filter(pk=upload.pk).update(store_key=key)
        upload.refresh_from_db()
        return services.finish_upload(upload, submission.created_by)

    def send(self, submission, content=b"# Better", note="Section 3."):
        self.revise(submission, content)
        return send_revision(submission, note, submission.created_by)

    def test_it_is_staged_until_its_team_sends_it(self, submission, django_capture_on_commit_callbacks):
        first, staged = submission.proof(), self.revise(submission)
        assert (staged.state, staged.version) == ("staged", 2)
        assert list(submission.artifacts.filter(kind="privacy_proof")) == [first]
        with django_capture_on_commit_callbacks(execute=True):
            better = self.revise(submission, b"# Even better")
        assert list(Artifact.staged.all()) == [better]
        assert Upload.objects.get(pk=staged.upload_id).state == UploadState.ABORTED
        discard_staged(submission, submission.created_by)
        with rejected("E_SUBMISSION_STATE"):
            send_revision(submission, "Section 3.", submission.created_by)

    def test_one_with_gaps_is_not_sent(self, submission):
        with rejected("E_SUBMISSION_INCOMPLETE") as error:
            self.send(submission, b"# Better\n\n[FILL IN: the data]")
        assert "proof.md, line 3" in str(error.value.problems[0].where)
        assert Artifact.staged.count() == 1

    def test_it_is_the_next_version_with_its_note_and_the_first_is_kept(self, submission):
        first = submission.proof()
        second = self.send(submission)
        assert (first.version, second.version, submission.proof()) == (1, 2, second)
        assert submission.proof().note == "Section 3."
        first.refresh_from_db()
        assert first.superseded_at is not None
        assert first.upload.state == UploadState.COMPLETED
        assert AuditEntry.objects.get(action="submission.proof_revised").details["version"] == 2

    def test_it_uses_no_slot_and_changes_no_run(self, submission):
        self.send(submission)
        assert quota_of(submission.team, submission.track, timezone.now()).used == 1
        assert {run.state for run in submission.runs.all()} == {RunState.QUEUED}

    def test_a_version_comes_once_and_not_too_often(self, submission):
        self.send(submission, b"# Better")
        with rejected("E_SUBMISSION_STATE"):
            self.revise(submission, b"# Better")
        self.send(submission, b"# Even better")
        with rejected("E_SUBMISSION_STATE"):
            self.revise(submission, b"# Best")

    def test_what_reviewers_could_not_read_is_rejected_on_arrival(self, submission):
        with rejected("E_PROOF_FORMAT"):
            self.revise(submission, b"{", "proof.ipynb")
        assert not Artifact.staged.exists()

    def test_no_other_file_is_taken(self, submission):
        run = submission.runs.first()
        with rejected("E_SUBMISSION_STATE"):
            start_upload(submission, run, "checkpoint")

    def test_what_was_withdrawn_takes_none(self, submission):
        services.withdraw(submission, submission.created_by)
        with rejected("E_SUBMISSION_STATE"):
            self.revise(submission)


class TestEditing:
    def test_description_and_links_of_what_was_submitted_change_with_a_date_and_the_title_stays(self):
        submission = make_complete_draft(title="FedAvg")
        submit(submission)
        text = {"title": "Else", "description": "More.", "code_url": "", "paper_url": "https://example.org/p"}
        services.describe(submission, text, submission.created_by)
        submission.refresh_from_db()
        assert (submission.title, submission.description) == ("FedAvg", "More.")
        assert submission.paper_url == "https://example.org/p"
        assert submission.edited_at is not None
        entry = AuditEntry.objects.get(action="submission.edited")
        assert entry.details["before"] == {"description": "", "paper_url": ""}

    def test_nothing_changed_leaves_no_date(self):
        submission = make_complete_draft()
        submit(submission)
        services.describe(submission, {"description": ""}, submission.created_by)
        submission.refresh_from_db()
        assert submission.edited_at is None

    def test_what_was_withdrawn_stays_as_it_is(self):
        submission = make_submission(state=SubmissionState.WITHDRAWN)
        with rejected("E_SUBMISSION_STATE"):
            services.describe(submission, {"description": "Late"}, submission.created_by)


class TestWithdrawing:
    def test_a_withdrawn_draft_loses_its_files(self, store_folder, django_capture_on_commit_callbacks):
        submission = make_complete_draft()
        with django_capture_on_commit_callbacks(execute=True):
            services.withdraw(submission, submission.created_by)
        assert submission.state == SubmissionState.WITHDRAWN
        assert [path for path in store_folder.rglob("*") if path.is_file()] == []

    def test_a_withdrawn_submission_keeps_its_files(self):
        submission = make_complete_draft()
        submit(submission)
        services.withdraw(submission, submission.created_by)
        assert submission.artifacts.count() == 2

    def test_it_is_for_good(self):
        submission = make_complete_draft()
        services.withdraw(submission, submission.created_by)
        with rejected("E_SUBMISSION_STATE"):
            services.withdraw(submission, submission.created_by)
