"""The progress of an evaluation on the page of its submission."""

import re

import pytest
from django.urls import reverse
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.evaluation.display.polling import REFRESH_S
from docvqa_site.evaluation.models import EvaluationState
from docvqa_site.submissions.models import RunState, SubmissionState
from evaluator.messages.jobs import Step
from evaluator.messages.results import RunResults
from tests.docvqa_site.evaluation.display.test_run_status import PROBLEM, evaluate, report
from tests.docvqa_site.factories import (
    SCORES,
    make_organizer,
    make_run,
    make_submission,
)
from tests.docvqa_site.submissions.drafts import make_complete_draft, make_private_track
from tests.docvqa_site.submissions.pages import page, post

pytestmark = pytest.mark.django_db


class TestStatusPage:
    def test_submitting_leads_to_a_page_that_keeps_itself_up_to_date(self, member, team):
        submission = make_complete_draft(team)
        response = post(member, "submit", submission.pk, follow=True)
        assert 'hx-trigger="every 10s, shown"' in response.content.decode()
        assert re.search(r'role="status"[^>]*>Submitted\. 1 of \d+ submissions used', response.text)

    def test_a_scored_private_run_needs_its_vectors_no_more(self, member, team):
        sentence = "The run folder&#x27;s <code>vectors</code> were only needed for the annex"
        submission = make_submission(team, make_private_track(), state=SubmissionState.SUBMITTED)
        run = make_run(submission, state=RunState.RUNNING, budget=1.0)
        assert sentence not in page(member, "detail", submission.pk)
        run.state, run.scored_at, run.results = RunState.SCORED, timezone.now(), RunResults(**SCORES)
        run.save()
        assert sentence in page(member, "detail", submission.pk)

    def test_it_says_where_in_the_queue_the_run_is(self, member, team):
        evaluate(make_run(state=RunState.QUEUED), state=EvaluationState.QUEUED)
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        evaluate(make_run(submission, state=RunState.QUEUED), state=EvaluationState.QUEUED)
        assert "1 run ahead of yours" in page(member, "status", submission.pk)

    def test_it_says_how_far_the_worker_is_and_when_it_was_heard_of(self, member, team):
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        run = make_run(submission, state=RunState.RUNNING)
        evaluate(run, 2, Step.SCORING, done=30, total=100, heartbeat_at=timezone.now())
        html = page(member, "status", submission.pk)
        assert "Scoring: 30 of 100" in html
        assert 'max="100" value="30"' in html
        assert "Last heartbeat" in html
        assert "attempt 2" in html

    @pytest.mark.parametrize(
        ("remaining_s", "line"),
        [
            (250, "Scoring: 12,300 of 43,591, about 4 min left. <"),
            (20, "Scoring: 12,300 of 43,591, less than a minute left. <"),
            (None, "Scoring: 12,300 of 43,591. <"),
        ],
    )
    def test_it_says_how_long_the_step_still_takes_where_the_worker_knows(
        self, member, team, remaining_s, line
    ):
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        run, progress = make_run(submission, state=RunState.RUNNING), {"done": 12_300, "total": 43_591}
        evaluate(run, 1, Step.SCORING, **progress, remaining_s=remaining_s, heartbeat_at=timezone.now())
        html = page(member, "status", submission.pk)
        assert line in html
        assert 'hx-trigger="every 2s, shown"' in html

    @pytest.mark.parametrize("state", [RunState.SCORED, RunState.REJECTED, RunState.FAILED])
    def test_it_stops_asking_once_every_run_has_ended(self, member, team, state):
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        make_run(submission, state=state)
        assert "every" not in page(member, "status", submission.pk)
        assert "HX-Refresh" not in member.get(reverse("submissions:status", args=[submission.pk])).headers
        assert "hx-trigger" not in page(member, "detail", submission.pk).partition('id="evaluated"')[2]

    def test_a_page_with_results_waits_for_the_leakage_and_then_loads_them_again(self, member, team):
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        run = make_run(submission, state=RunState.SCORED)
        measurement = evaluate(run, 2, Step.LEAKAGE)
        # A page that has shown the progress loads the results at once.
        assert 'hx-select="#evaluated"' in page(member, "status", submission.pk)
        shown = page(member, "detail", submission.pk)
        assert "Leakage is still being measured." in shown
        assert "status.js" in shown
        assert 'measuring=1" hx-trigger="every' in shown.partition('id="evaluated"')[2]
        waiting = page(member, "status", submission.pk, measuring=1)
        assert 'measuring=1" hx-trigger="every' in waiting
        assert 'hx-select="#evaluated"' not in waiting
        measurement.state = EvaluationState.PASSED
        measurement.save()
        assert 'hx-select="#evaluated"' in page(member, "status", submission.pk, measuring=1)
        assert "hx-trigger" not in page(member, "detail", submission.pk).partition('id="evaluated"')[2]

    def test_screen_readers_hear_of_a_change_once(self, member, team):
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        make_run(submission, state=RunState.QUEUED)
        first = page(member, "status", submission.pk)
        assert "hx-swap-oob" in first
        seen = first.split("?seen=")[1].split("&")[0]
        assert "hx-swap-oob" not in page(member, "status", submission.pk, seen=seen)

    def test_canceling_is_no_longer_offered_once_a_run_has_begun(self, member, team):
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        run = make_run(submission, state=RunState.QUEUED)
        assert 'id="cancel" hx-swap-oob="true">' in page(member, "status", submission.pk)
        assert "Cancel this submission" in page(member, "detail", submission.pk)
        run.state = RunState.RUNNING
        run.save()
        assert 'id="cancel" hx-swap-oob="true" hidden>' in page(member, "status", submission.pk)
        assert "Cancel this submission" not in page(member, "detail", submission.pk)
        member.force_login(make_organizer())
        assert 'id="cancel"' not in page(member, "status", submission.pk)

    def test_a_page_that_shows_the_newest_progress_keeps_it(
        self, member, team, monkeypatch, django_assert_max_num_queries
    ):
        monkeypatch.setattr("docvqa_site.evaluation.display.polling.time.time", lambda: 1e9)
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        evaluation = evaluate(make_run(submission, state=RunState.RUNNING), done=1, total=9)
        address = reverse("submissions:status", args=[submission.pk])
        version = page(member, "status", submission.pk).split("version=")[1].split('"')[0]
        with django_assert_max_num_queries(6):
            assert member.get(address, {"version": version}).status_code == 204
        evaluation.done = 2
        evaluation.save()
        assert member.get(address, {"version": version}).status_code == 200

    def test_the_place_in_the_queue_is_shown_anew_after_a_while(self, member, team, monkeypatch):
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        evaluate(make_run(submission, state=RunState.QUEUED), state=EvaluationState.QUEUED)
        address = reverse("submissions:status", args=[submission.pk])
        monkeypatch.setattr("docvqa_site.evaluation.display.polling.time.time", lambda: 1e9)
        version = page(member, "status", submission.pk).split("version=")[1].split('"')[0]
        monkeypatch.setattr("docvqa_site.evaluation.display.polling.time.time", lambda: 1e9 + REFRESH_S)
        assert member.get(address, {"version": version}).status_code == 200

    def test_a_rejected_run_shows_what_to_fix(self, member, team):
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        run = make_run(submission, state=RunState.REJECTED)
        evaluation = evaluate(run, step=Step.COMMUNICATION, state=EvaluationState.REJECTED)
        report(evaluation, Step.COMMUNICATION, "rejected", [PROBLEM])
        html = page(member, "detail", submission.pk)
        assert "line 7" in html
        # Nothing is public that could be withdrawn.
        assert "Withdraw this submission" not in html
        assert html.index("E_LOG_ROW") < html.index('<h2 id="description">')

    def test_the_steps_of_a_finished_evaluation_are_folded_unless_one_had_a_problem(self, client):
        run = make_run(state=RunState.SCORED)
        evaluate(run, step=Step.SCORING, state=EvaluationState.PASSED)
        client.force_login(run.submission.created_by)
        folded = "<details>\n      <summary>Steps of the evaluation"
        assert folded in client.get(run.submission.get_absolute_url()).text
        failed = make_run(run.submission, state=RunState.REJECTED, budget=8)
        report(
            evaluate(failed, step=Step.VALIDATE, state=EvaluationState.REJECTED),
            Step.VALIDATE,
            problems=[PROBLEM],
        )
        html = client.get(run.submission.get_absolute_url()).text
        assert folded not in html
        assert "<details open>\n      <summary>Steps of the evaluation" in html

    def test_a_scored_run_shows_where_its_score_comes_from(self, client):
        run = make_run(state=RunState.SCORED)
        evaluation = evaluate(run, step=Step.SCORING, state=EvaluationState.PASSED)
        result = {"test_set_sha256": "7e57" * 16, "checkpoint_sha256": "c4ec" * 16, "questions": 100}
        report(evaluation, Step.SCORING, result=result)
        html = page(client, "run", run.submission.pk, run.pk)
        for expected in ("0.9000", "7e57" * 16, "c4ec" * 16, "gpu-1", "evaluator 1.0", "Mar 1, 2026"):
            assert expected in html

    @pytest.mark.parametrize(
        ("hardware", "precision", "shown"),
        [
            ("NVIDIA H100", "bfloat16", " (NVIDIA H100, bfloat16)"),
            ("", "float32", " (float32)"),
            ("8 cores", None, " (8 cores)"),
            ("", None, ""),
        ],
    )
    def test_the_hardware_is_shown_with_the_numbers_that_it_computed_with(
        self, client, hardware, precision, shown
    ):
        run = make_run(state=RunState.SCORED)
        evaluation = evaluate(run, step=Step.SCORING, state=EvaluationState.PASSED)
        scored = report(evaluation, Step.SCORING, result={"precision": precision} if precision else None)
        scored.provenance |= {"hardware": hardware}
        scored.save()
        assert f'<span class="mono">gpu-1</span>{shown}\n' in page(client, "run", run.submission.pk, run.pk)

    def test_withdrawing_takes_it_away(self, member, team, client):
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        make_run(submission, state=RunState.SCORED)
        post(member, "withdraw", submission.pk)
        shown = page(member, "detail", submission.pk)
        assert "The team withdrew this submission on " in shown
        assert 'data-label="Status"><span class="badge badge-withdrawn">withdrawn</span>' in shown
        assert shown.count("same title, description and files") == 1
        assert "The draft gets the same text" not in shown
        member.logout()
        assert "withdrew this submission" in page(client, "detail", submission.pk, status=410)

    @pytest.fixture
    def published(self, team):
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        make_run(submission, state=RunState.SCORED)
        return submission

    def test_the_page_gives_the_reason_that_the_team_gave(self, member, client, published):
        assert 'name="reason"' in page(member, "detail", published.pk)
        post(member, "withdraw", published.pk, reason="  A client trained on the <test> set. ")
        assert "A client trained on the &lt;test&gt; set." in page(member, "detail", published.pk)
        member.logout()
        shown = page(client, "detail", published.pk, status=410)
        assert "A client trained on the &lt;test&gt; set." in shown
        entry = AuditEntry.objects.get(action="submission.withdrawn")
        assert entry.details["reason"] == "A client trained on the <test> set."

    def test_without_a_reason_the_page_has_none(self, member, client, published):
        post(member, "withdraw", published.pk, reason=" ")
        member.logout()
        shown = page(client, "detail", published.pk, status=410)
        assert "withdrew this submission" in shown
        assert "reason" not in shown.lower()
        assert "reason" not in AuditEntry.objects.get(action="submission.withdrawn").details

    @pytest.mark.parametrize("reason", ["x" * 301, "a null \0 character"], ids=["too long", "null"])
    def test_a_reason_that_cannot_be_shown_withdraws_nothing(self, member, published, reason):
        answer = post(member, "withdraw", published.pk, reason=reason, follow=True)
        published.refresh_from_db()
        assert published.state == SubmissionState.SUBMITTED
        assert "notice-error" in answer.content.decode()

    def test_a_draft_is_discarded_without_being_asked_for_a_reason(self, member, team):
        draft = make_submission(team)
        assert 'name="reason"' not in page(member, "detail", draft.pk)
