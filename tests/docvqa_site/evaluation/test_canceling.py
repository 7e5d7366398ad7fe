"""A team takes back what waits for its evaluation."""

import pytest
from django.utils import timezone

from docvqa_site.evaluation.intake.receiving import receive_progress, receive_report
from docvqa_site.evaluation.models import Evaluation, EvaluationState
from docvqa_site.evaluation.services import cancel, evaluate_again, may_cancel
from docvqa_site.submissions import services
from docvqa_site.submissions.models import RunState, Submission, SubmissionState
from docvqa_site.submissions.quota import RETURNED_SLOTS, WINDOW
from docvqa_site.submissions.selectors import canceled_times, quota_of
from docvqa_site.teams.models import Membership
from evaluator.errors import ProblemError
from evaluator.messages.jobs import Step
from evaluator.messages.results import RunResults
from tests.docvqa_site.evaluation.messages import make_progress, make_report
from tests.docvqa_site.factories import SCORES, make_team, make_track, make_user
from tests.docvqa_site.submissions.drafts import make_complete_draft

pytestmark = pytest.mark.django_db


@pytest.fixture
def submission():
    submission = make_complete_draft()
    services.submit(submission, submission.created_by)
    return submission


def test_what_waits_is_a_draft_again_and_its_slot_is_free(submission):
    cancel(submission, actor=submission.created_by)
    submission.refresh_from_db()
    assert (submission.state, submission.submitted_at) == (SubmissionState.DRAFT, None)
    assert {run.state for run in submission.runs.all()} == {RunState.DRAFT}
    assert Evaluation.objects.get().state == EvaluationState.CANCELED
    assert quota_of(submission.team, submission.track, submission.created_at).used == 0


def test_it_can_be_submitted_again(submission):
    cancel(submission, actor=submission.created_by)
    submission.refresh_from_db()
    services.submit(submission, submission.created_by)
    assert [attempt.state for attempt in Evaluation.objects.order_by("attempt")] == ["canceled", "queued"]


def test_no_team_cancels_without_end(submission):
    """Each cycle would give the slot back, and queue and dispatch all runs again."""
    team, track, member = submission.team, submission.track, submission.created_by
    for _ in range(RETURNED_SLOTS):
        cancel(submission, actor=member)
        submission.refresh_from_db()
        services.submit(submission, member)
    with pytest.raises(ProblemError, match="E_SUBMISSION_QUOTA"):
        cancel(submission, actor=member)
    assert Submission.objects.get().state == SubmissionState.SUBMITTED
    later = timezone.now() + WINDOW
    assert len(canceled_times(team, track, timezone.now())) == RETURNED_SLOTS
    assert canceled_times(team, track, later) == []
    # Nor does somebody who goes on in another team; a team of others, and another track, are as before.
    new_team = make_team(make_user())
    assert canceled_times(new_team, track, timezone.now()) == []
    Membership.objects.filter(user=member).update(team=new_team)
    assert len(canceled_times(new_team, track, timezone.now())) == RETURNED_SLOTS
    assert canceled_times(new_team, make_track(), timezone.now()) == []


def test_what_a_worker_has_begun_is_not_canceled(submission):
    receive_progress(make_progress(Evaluation.objects.get()))
    assert not may_cancel(submission)
    with pytest.raises(ProblemError, match="E_SUBMISSION_STATE"):
        cancel(submission, actor=submission.created_by)
    assert Evaluation.objects.get().state == EvaluationState.RUNNING


def test_a_report_that_comes_after_all_is_dropped(submission):
    report = make_report(Evaluation.objects.get(), Step.VALIDATE)
    cancel(submission, actor=submission.created_by)
    receive_report(report)
    assert {run.state for run in submission.runs.all()} == {RunState.DRAFT}
    assert Evaluation.objects.get().state == EvaluationState.CANCELED


def test_what_the_organizers_have_evaluated_again_is_not_canceled(submission):
    run = submission.runs.get()
    Evaluation.objects.update(state=EvaluationState.PASSED)
    run.state, run.results, run.scored_at = RunState.SCORED, RunResults(**SCORES), timezone.now()
    run.save()
    evaluate_again(run, actor=submission.created_by)
    assert not may_cancel(submission)
    with pytest.raises(ProblemError, match="E_SUBMISSION_STATE"):
        cancel(submission, actor=submission.created_by)
