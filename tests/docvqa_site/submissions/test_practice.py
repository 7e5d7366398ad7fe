"""Practice submissions: evaluated like any other, and never public, reviewed or ranked."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.db import IntegrityError
from django.urls import reverse
from django.utils import timezone

from docvqa_site.api.ranks import Ranks
from docvqa_site.boards.standings import rank_in_words
from docvqa_site.challenge.rankings import BEST_ANLS
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.submissions import publication, services
from docvqa_site.submissions.models import RunState, RunToken
from docvqa_site.submissions.quota import PRACTICE_SLOTS
from docvqa_site.submissions.selectors import quota_of
from evaluator.messages.jobs import ArtifactKind, Step
from tests.docvqa_site.evaluation.messages import make_report, make_result
from tests.docvqa_site.factories import (
    make_artifact,
    make_run,
    make_submission,
    make_team,
    make_token,
    make_track,
    owner_of,
)
from tests.docvqa_site.submissions.drafts import fill, make_complete_draft, make_private_track
from tests.docvqa_site.submissions.submitting import codes, rejected, submit

pytestmark = pytest.mark.django_db


def practiced(track=None, **results):
    submission = make_submission(
        track=track, state="submitted", practice=True, published_at=None, title="Trial"
    )
    make_run(submission, state=RunState.SCORED, **results)
    return submission


def page(client, submission, name="submissions:detail"):
    client.force_login(owner_of(submission.team))
    arguments = [submission.pk] if name == "submissions:detail" else []
    return client.get(reverse(name, args=arguments)).content.decode()


class TestWhoSeesIt:
    def test_it_is_on_no_board_and_has_no_page_for_others(self, client):
        submission = practiced()
        board = client.get(reverse("leaderboard:track", args=[submission.track.slug])).content.decode()
        assert "Trial" not in board
        assert client.get(submission.get_absolute_url()).status_code == 404

    def test_its_team_sees_it_marked_wherever_it_is_shown(self, client):
        submission = practiced()
        html = page(client, submission)
        assert "Practice." in html
        assert '<span class="badge badge-draft">practice</span>' in html
        assert "would rank" not in html
        for untrue in ("95% interval reflects", "team has not agreed", "copy them to a new draft"):
            assert untrue not in html
        assert '<span class="badge badge-draft">practice</span>' in page(
            client, submission, "submissions:list"
        )
        assert str(submission) == "Trial (practice)"

    def test_its_team_reads_which_rank_it_would_have(self, client):
        track = make_track(BEST_ANLS)
        for anls in (0.9, 0.785, 0.6):
            make_run(make_submission(track=track, state="submitted"), state=RunState.SCORED, anls=anls)
        submission = practiced(track, anls=0.78, decimals=2)
        # 0.78 stands for 0.7899 as well.
        assert "would be #2–3<" in page(client, submission)
        (run,) = submission.runs.all()
        would_be = "would be rank 2–3 of 4 today (practice scores are rounded)"
        assert rank_in_words(run) == would_be
        assert Ranks.of_runs([run]).explained(run) == f"practice; {would_be}"

    def test_it_does_not_compete_with_its_own_checkpoint_that_was_submitted_for_a_rank(self, client):
        track = make_track(BEST_ANLS)
        practice = practiced(track, anls=0.78, decimals=2)
        (run,) = practice.runs.all()
        other = make_run(make_submission(track=track, state="submitted"), state=RunState.SCORED, anls=0.9)
        ranked = make_submission(practice.team, track=track, state="submitted")
        copy = make_run(ranked, state=RunState.SCORED, anls=0.785)
        for one in (run, copy, other):
            make_artifact(one, ArtifactKind.CHECKPOINT, b"the same" if one is not other else b"another")
        assert rank_in_words(run=run) == "would be rank 2 of 2 today"
        assert "would be #2<" in page(client, practice)

    def test_its_team_reads_that_it_misses_the_threshold(self, client):
        submission = practiced(make_track(anls_threshold=0.75), anls=0.7, decimals=2)
        assert "ANLS 0.70 &lt; 0.7500" in page(client, submission)
        (run,) = submission.runs.all()
        missed = "practice; ANLS 0.70 is below the threshold of 0.7500"
        assert Ranks.of_runs([run]).explained(run) == missed
        assert not rank_in_words(run)

    def test_nobody_can_publish_it(self):
        submission = practiced()
        with rejected("E_SUBMISSION_STATE") as error:
            publication.publish(submission, submission.created_by)
        assert "a practice submission" in str(error.value)
        publication.follow_phases()
        submission.refresh_from_db()
        assert submission.published_at is None
        submission.published_at = timezone.now()
        with pytest.raises(IntegrityError):
            submission.save()


class TestSubmitting:
    def test_it_has_a_quota_of_its_own(self):
        team, track, now = make_team(), make_track(submissions_per_day=1), timezone.now()
        for number in range(PRACTICE_SLOTS):
            submit(make_complete_draft(team, track, practice=True), now - timedelta(hours=number))
        assert codes(make_complete_draft(team, track, practice=True), now) == ["E_SUBMISSION_QUOTA"]
        assert quota_of(team, track, now).used == 0
        submit(make_complete_draft(team, track), now)
        assert quota_of(team, track, now, practice=True).used == PRACTICE_SLOTS

    def test_it_needs_no_proof_and_is_not_public(self):
        submission = make_submission(track=make_private_track(), practice=True)
        fill(make_run(submission, budget=1.0))
        submit(submission)
        assert submission.published_at is None

    def test_a_choice_that_the_phase_does_not_allow_does_not_matter(self):
        submit(make_complete_draft(practice=True, keep_private=True, anonymous=True))

    def test_what_was_practiced_is_copied_to_compete_with_it(self, client):
        submission = practiced()
        make_artifact(submission.runs.get(), ArtifactKind.CHECKPOINT, b"weights", "model.safetensors")
        html = page(client, submission)
        assert "Compete with these files" in html
        assert "To compete with these files, copy them to a draft" in html
        draft = services.copy_to_draft(submission, submission.created_by)
        assert not draft.practice
        assert draft.artifacts.count() == 1

    def test_what_was_submitted_already_is_not_offered_to_compete(self, client):
        submission, first = practiced(), make_submission(state="submitted")
        first.track, first.team = submission.track, submission.team
        first.save()
        for run in (submission.runs.get(), make_run(first, state=RunState.SCORED)):
            make_artifact(run, ArtifactKind.CHECKPOINT, b"weights", "model.safetensors")
        html = page(client, submission)
        for untrue in ("Compete with these files", "To compete with these files"):
            assert untrue not in html
        assert f'for a rank: “<a href="{first.get_absolute_url()}">{first.title}</a>”' in html

    def test_what_was_rejected_is_practiced_again(self):
        submission = make_submission(state="submitted", practice=True, published_at=None)
        make_run(submission, state=RunState.REJECTED)
        assert services.copy_to_draft(submission, submission.created_by).practice


def test_its_scores_have_two_decimals_and_no_intervals():
    submission = make_submission(state="submitted", practice=True, published_at=None)
    evaluation = dispatch.start(make_run(submission, state=RunState.QUEUED))
    for step in (Step.VALIDATE, Step.COMMUNICATION):
        receive_report(make_report(evaluation, step))
    scores = {
        "anls": 0.98765,
        "accuracy": 0.54321,
        "questions": 1234,
    }
    result = make_result(evaluation, Step.SCORING).model_copy(update=scores)
    receive_report(make_report(evaluation, Step.SCORING, result=result))
    found = submission.runs.get().results
    assert (found.anls, found.accuracy, found.decimals) == (0.98, 0.54, 2)
    assert (found.anls_low, found.anls_high, found.question_types) == (None, None, [])


def test_the_upgrade_takes_tokens_from_practice_runs_alone(team):
    track = make_private_track()
    practice = {"practice": True, "published_at": None}
    for fields in (practice, {}):
        submission = make_submission(team, track, state="submitted", **fields)
        make_token(team, track, run=make_run(submission, budget=1.0))
    import_module("docvqa_site.submissions.migrations.0018_practice_has_no_token").release_tokens(apps, None)
    (kept,) = RunToken.objects.filter(run__isnull=False)
    assert not kept.run.submission.practice
