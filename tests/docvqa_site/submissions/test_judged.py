"""A disqualification and a failed examination hold for the files of a run, whoever submits them again."""

import numpy as np
import pytest
from django.test import Client
from django.utils import timezone

from docvqa_site.boards.ordering import ranks_of
from docvqa_site.evaluation.examining.requests import request
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.models import Examination
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.evaluation.services import evaluate_again
from docvqa_site.submissions import services
from docvqa_site.submissions.models import Run, RunState
from evaluator.messages.jobs import ArtifactKind, Step, TrustLevel, WeightSample
from tests.docvqa_site.api.caller import Caller
from tests.docvqa_site.evaluation.messages import make_report
from tests.docvqa_site.factories import (
    change_results,
    make_artifact,
    make_organizer,
    make_run,
    make_submission,
    make_team,
    make_track,
    owner_of,
)
from tests.docvqa_site.submissions.contents import checkpoint
from tests.docvqa_site.submissions.drafts import fill, make_private_track
from tests.docvqa_site.submissions.submitting import codes, rejected, start_upload, submit
from tests.docvqa_site.uploads.sending import sha

pytestmark = pytest.mark.django_db

CHECKPOINT, RECORD = checkpoint(), b"the record of one training"
WHY = "the log is invented"


@pytest.fixture
def track():
    return make_track(anls_threshold=0.5)


@pytest.fixture
def organizer():
    return make_organizer("change_submission")


def scored_run(track, team=None, content=CHECKPOINT, **fields):
    run = make_run(make_submission(team, track, state="submitted"), state=RunState.SCORED, **fields)
    fill(run, leave_out=[ArtifactKind.CHECKPOINT])
    make_artifact(run, ArtifactKind.CHECKPOINT, content, "model.safetensors")
    return run


def copied(run):
    """A draft with the files of the run, which its owner has withdrawn."""
    owner = owner_of(run.submission.team)
    services.withdraw(run.submission, owner)
    draft = services.copy_to_draft(run.submission, owner)
    services.describe(draft, {"title": "Another title"}, owner)
    return draft


def scored_again(track, run=None, sample=None, content=CHECKPOINT):
    """A run with these files that was in the queue when the first one was judged, after its evaluation."""
    if run is None:
        run = make_run(make_submission(track=track, state="submitted"), state=RunState.QUEUED)
        make_artifact(run, ArtifactKind.CHECKPOINT, content)
    evaluation = run.evaluations.filter(state="queued").first() or dispatch.start(run)
    for step in (Step.VALIDATE, Step.COMMUNICATION, Step.SCORING):
        given = {"sample": sample} if sample and step is Step.VALIDATE else {}
        receive_report(make_report(evaluation, step, **given))
        evaluation.refresh_from_db()
    return Run.objects.get(pk=run.pk)


def rank(run):
    return ranks_of(run.submission.track, run.budget, [run.pk]).get(run.pk)


def fail(run):
    change_results(run, failed_level=TrustLevel.RERUN, failed_because="another score")


class TestSubmitting:
    def test_a_disqualified_checkpoint_is_rejected_after_it_was_withdrawn(self, track, organizer):
        run = scored_run(track)
        services.disqualify(run, WHY, organizer)
        assert codes(copied(run)) == ["E_SUBMISSION_DUPLICATE"]

    def test_and_one_that_failed_an_examination(self, track):
        run = scored_run(track)
        fail(run)
        draft = copied(run)
        with rejected("E_SUBMISSION_DUPLICATE") as error:
            submit(draft)
        assert "The same checkpoint failed the rerun (L3): another score" in str(error.value)

    def test_the_upload_says_why_before_anything_is_sent(self, track, organizer):
        run = scored_run(track)
        services.disqualify(run, WHY, organizer)
        services.withdraw(run.submission, owner_of(run.submission.team))
        for team in (run.submission.team, make_team()):
            draft = make_submission(team, track)
            with rejected("E_SUBMISSION_DUPLICATE") as error:
                start_upload(draft, make_run(draft), "checkpoint", CHECKPOINT)
            today = f"{timezone.now():%B %-d, %Y}"
            assert f"The same checkpoint was disqualified on {today}: {WHY}" in str(error.value)
        api = Caller(Client(), owner_of(run.submission.team))
        (problem,) = api.get(f"tracks/{track.slug}/checkpoints/{sha(CHECKPOINT)}")["problems"]
        assert WHY in problem["message"]

    def test_the_record_is_rejected_with_another_checkpoint(self, organizer):
        track = make_private_track()
        run = scored_run(track, budget=1.0)
        run.artifacts.filter(kind=ArtifactKind.TRAINING_RECORD).delete()
        make_artifact(run, ArtifactKind.TRAINING_RECORD, RECORD, "record.jsonl")
        services.disqualify(run, WHY, organizer)
        services.withdraw(run.submission, owner_of(run.submission.team))
        draft = make_submission(run.submission.team, track)
        with rejected("E_SUBMISSION_DUPLICATE") as error:
            start_upload(draft, make_run(draft, budget=1.0), "training_record", RECORD)
        assert "The same training record was disqualified on" in str(error.value)

    def test_practice_and_other_tracks_take_it(self, track, organizer):
        run = scored_run(track)
        services.disqualify(run, WHY, organizer)
        for draft in (make_submission(track=track, practice=True), make_submission(track=make_track())):
            assert start_upload(draft, make_run(draft), "checkpoint").state == "open"

    def test_it_is_submitted_again_once_organizers_have_lifted_the_disqualification(self, track, organizer):
        run = scored_run(track)
        services.disqualify(run, WHY, organizer)
        draft = copied(run)
        services.disqualify(run, "", organizer)
        submit(draft)

    def test_organizers_examine_a_withdrawn_run_whose_files_may_come_again(self, track):
        run = scored_run(track)
        make_artifact(run, ArtifactKind.SETTINGS, b"seed: 1", "settings.yaml")
        services.withdraw(run.submission, owner_of(run.submission.team))
        assert request(run, TrustLevel.RERUN, by=None) == Examination.objects.get()


class TestScoring:
    """What was in evaluation when the first run was judged gets no rank."""

    def test_a_later_run_of_any_team_has_the_reason_in_its_row_and_in_the_mail(
        self, track, organizer, mailoutbox, django_capture_on_commit_callbacks
    ):
        services.disqualify(scored_run(track), WHY, organizer)
        with django_capture_on_commit_callbacks(execute=True):
            later = scored_again(track)
        reason = f"the same checkpoint was disqualified on {timezone.now():%B %-d, %Y}: {WHY}"
        assert (rank(later), later.disqualified_because) == (None, reason)
        exported = Client().get(f"/leaderboard/{track.slug}.csv").getvalue().decode()
        assert f"disqualified by the organizers: {reason}" in exported
        assert any(reason in message.body for message in mailoutbox)

    def test_a_failed_examination_holds_too(self, track):
        fail(scored_run(track))
        later = scored_again(track)
        assert rank(later) is None
        assert later.disqualified_because == "the same checkpoint failed the rerun (L3): another score"

    def test_what_organizers_lift_stays_lifted_when_the_run_is_evaluated_again(self, track, organizer):
        services.disqualify(scored_run(track), WHY, organizer)
        later = scored_again(track)
        services.disqualify(later, "", organizer)
        assert rank(later) == 1
        evaluate_again(later, actor=organizer)
        assert rank(scored_again(track, later)) == 1

    def test_equal_weights_in_another_file_are_the_same_checkpoint(self, track, organizer):
        changes = np.random.default_rng(1).normal(size=320).astype("<f4")
        same, other = (
            WeightSample.model_construct(key_id="0" * 16, per_tensor=4, changes=found.tobytes())
            for found in (changes, changes + np.float32(1e-3))
        )
        first = scored_again(track, sample=same, content=b"one")
        services.disqualify(first, WHY, organizer)
        copy = scored_again(track, sample=same, content=b"with other metadata")
        assert WHY in copy.disqualified_because
        assert rank(scored_again(track, sample=other, content=b"other weights")) == 1

    def test_a_run_with_files_of_its_own_is_ranked(self, track, organizer):
        services.disqualify(scored_run(track), WHY, organizer)
        assert rank(scored_again(track, content=b"other weights")) == 1
