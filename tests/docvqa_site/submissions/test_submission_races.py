"""Several requests at the same time, in threads of their own, on a real database."""

from threading import Barrier, Thread

import pytest
from django.db import OperationalError, connection, transaction

from docvqa_site.challenge.models import Track
from docvqa_site.submissions import services
from docvqa_site.submissions.models import Artifact, Submission, SubmissionState
from docvqa_site.uploads.models import Upload
from evaluator.errors import ProblemError
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import make_artifact, make_run, make_submission, make_team, make_track
from tests.docvqa_site.submissions.contents import checkpoint
from tests.docvqa_site.submissions.drafts import fill, make_complete_draft, make_private_track
from tests.docvqa_site.uploads.sending import cut, send, sha

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*actions):
    """Run all of them at the same moment; the codes of those that were rejected."""
    start, rejections, crashes = Barrier(len(actions)), [], []

    def run(action):
        start.wait()
        try:
            action()
        except ProblemError as error:
            rejections.append(str(error.problem.code))
        except BaseException as error:  # noqa: BLE001  (shown by the main thread)
            crashes.append(error)
        finally:
            connection.close()

    threads = [Thread(target=run, args=[action]) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert crashes == []
    return rejections


def submitting(submission):
    return lambda: services.submit(Submission.objects.get(pk=submission.pk), submission.created_by)


def test_a_team_never_gets_more_than_its_quota():
    team, track = make_team(), make_track(submissions_per_day=2)
    drafts = [make_complete_draft(team, track) for _ in range(6)]
    assert at_once(*map(submitting, drafts)) == ["E_SUBMISSION_QUOTA"] * 4
    assert Submission.objects.filter(state=SubmissionState.SUBMITTED).count() == 2


def test_a_draft_is_submitted_once_however_often_the_button_is_pressed():
    draft = make_complete_draft()
    assert at_once(*[submitting(draft)] * 4) == ["E_SUBMISSION_STATE"] * 3
    assert draft.runs.get().evaluations.count() == 1


def test_one_of_two_teams_with_the_same_checkpoint_gets_in():
    track, drafts = make_track(submissions_per_day=5), []
    for _ in range(4):
        run = fill(make_run(make_submission(track=track)), leave_out=[ArtifactKind.CHECKPOINT])
        make_artifact(run, ArtifactKind.CHECKPOINT, b"the same weights", "model.safetensors")
        drafts.append(run.submission)
    assert at_once(*map(submitting, drafts)) == ["E_SUBMISSION_DUPLICATE"] * 3


def test_submissions_to_one_track_wait_only_for_others_of_the_same_checkpoint():
    track = make_track(submissions_per_day=5)
    first, other = (make_complete_draft(make_team(), track) for _ in range(2))

    def impatient():
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '3s'")
        submitting(other)()

    with transaction.atomic():
        submitting(first)()
        assert at_once(impatient) == []
        assert at_once(lambda: cannot_change(track)) == []
    other.refresh_from_db()
    assert other.state == SubmissionState.SUBMITTED


def cannot_change(track):
    with pytest.raises(OperationalError), transaction.atomic():
        Track.objects.select_for_update(nowait=True).get(pk=track.pk)


def test_a_run_is_added_once():
    submission = make_submission(track=make_private_track())
    assert at_once(*[lambda: services.add_run(submission, 4.0)] * 4) == []
    assert submission.runs.count() == 1


def test_an_upload_is_completed_once_and_never_gets_into_a_frozen_submission(client):
    content = checkpoint()
    for _ in range(3):
        draft = make_complete_draft()
        run = draft.runs.get()
        upload = services.start_upload(
            draft,
            run,
            "checkpoint",
            draft.created_by,
            filename="model.safetensors",
            size_bytes=len(content),
            sha256=sha(content),
        )
        send(client, upload, cut(content))

        def finish(upload=upload, draft=draft):
            services.finish_upload(Upload.objects.get(pk=upload.pk), draft.created_by)

        rejections = at_once(finish, finish, submitting(draft))
        held = Artifact.objects.get(run=run, kind=ArtifactKind.CHECKPOINT).upload
        draft.refresh_from_db()
        assert draft.state == SubmissionState.SUBMITTED
        assert held.state == "completed"
        assert (held == upload) == (rejections == [])
