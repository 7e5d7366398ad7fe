"""What the site does with a run whose files are wrong."""

from datetime import UTC, datetime

import pytest
from django.core import mail

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.evaluation.display.team_actions import team_actions_on
from docvqa_site.evaluation.intake import truncation
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.models import Evaluation, EvaluationState, StepReport
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.submissions.models import RunState, Submission
from evaluator.errors import ErrorCode, Problem
from evaluator.messages.jobs import (
    Check,
    CheckStatus,
    Outcome,
    Step,
)
from tests.docvqa_site.evaluation.messages import (
    RESULTS,
    fresh,
    make_report,
    make_result,
)
from tests.docvqa_site.factories import make_run, make_submission, make_track

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


pytestmark = pytest.mark.django_db


def pass_validation(evaluation):
    """What is left of the steps that read a run's files is the communication log, in a track without budgets."""
    receive_report(make_report(evaluation, Step.VALIDATE))


class TestRejection:
    DTYPE = Problem.of(ErrorCode.CHECKPOINT_DTYPE, where="shared.weight", expected="F32", found="F16")
    ROW = Problem.of(ErrorCode.LOG_ROW, where="line 7", expected="four numbers", found="three")

    def test_one_report_names_what_is_wrong_with_every_file(self, evaluation, committed):
        first = make_report(
            evaluation, Step.VALIDATE, Outcome.REJECTED, problems=[self.DTYPE], operator_trace="secret"
        )
        committed(receive_report, first)
        evaluation = fresh(evaluation)
        assert (evaluation.state, evaluation.step) == (EvaluationState.QUEUED, Step.COMMUNICATION)
        assert evaluation.run.state == RunState.RUNNING
        committed(
            receive_report,
            make_report(evaluation, Step.COMMUNICATION, Outcome.REJECTED, problems=[self.ROW]),
        )
        evaluation = fresh(evaluation)
        assert (evaluation.state, evaluation.run.state) == (EvaluationState.REJECTED, RunState.REJECTED)
        assert [report.problems for report in evaluation.reports.all()] == [
            [self.DTYPE.model_dump(mode="json")],
            [self.ROW.model_dump(mode="json")],
        ]
        (message,) = mail.outbox
        assert "E_CHECKPOINT_DTYPE" in message.body
        assert "shared.weight" in message.body
        assert "line 7" in message.body
        assert "secret" not in message.body

    def test_a_log_that_is_right_is_still_counted_and_the_run_rejected(self, evaluation):
        receive_report(make_report(evaluation, Step.VALIDATE, Outcome.REJECTED, problems=[self.DTYPE]))
        receive_report(make_report(evaluation, Step.COMMUNICATION))
        run = fresh(evaluation).run
        assert (run.state, run.results.bytes_total) == (RunState.REJECTED, 6000)
        assert not StepReport.objects.filter(step=Step.SCORING).exists()

    @pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.FAILED])
    def test_a_step_that_stumbles_over_the_rejected_file_adds_nothing(self, evaluation, outcome, committed):
        problem = self.DTYPE if outcome == Outcome.REJECTED else Problem.of(ErrorCode.PLATFORM_FAULT)
        receive_report(make_report(evaluation, Step.VALIDATE, Outcome.REJECTED, problems=[self.DTYPE]))
        committed(
            receive_report,
            make_report(evaluation, Step.COMMUNICATION, outcome, problems=[problem]),
        )
        assert fresh(evaluation).run.state == RunState.REJECTED
        assert Evaluation.objects.count() == 1
        last = StepReport.objects.get(step=Step.COMMUNICATION)
        assert (last.outcome, last.problems) == (Outcome.REJECTED, [])
        assert mail.outbox[0].body.count("shared.weight") == 1

    def test_the_quota_slot_is_given_back(self, evaluation):
        pass_validation(evaluation)
        receive_report(make_report(evaluation, Step.COMMUNICATION, Outcome.REJECTED))
        submission = fresh(evaluation).run.submission
        assert submission.refunded_at is not None
        assert submission.refunded_for == "rejected"

    def test_a_practice_slot_is_not_called_one_of_the_quota(self, evaluation, committed):
        Submission.objects.update(practice=True, published_at=None)
        committed(
            receive_report, make_report(evaluation, Step.VALIDATE, Outcome.REJECTED, problems=[self.DTYPE])
        )
        committed(receive_report, make_report(evaluation, Step.COMMUNICATION))
        assert "The practice slot was returned." in mail.outbox[0].body
        submission = Submission.objects.get()
        assert "the practice slot was returned" in team_actions_on(submission).news[0]

    def test_the_slot_stays_used_while_another_run_may_be_scored(self):
        submission = make_submission(track=make_track(BEST_ANLS_AT_BUDGET), state="submitted")
        runs = [make_run(submission, budget=budget, state=RunState.QUEUED) for budget in (1.0, 4.0)]
        for run in runs:
            evaluation = dispatch.start(run)
            for step in (Step.VALIDATE, Step.COMMUNICATION, Step.ACCOUNTING):
                assert fresh(submission).refunded_at is None
                receive_report(make_report(evaluation, step, Outcome.REJECTED))
        assert fresh(submission).refunded_at is not None

    def test_hostile_names_in_problems_are_stored_harmless_and_short(self, evaluation):
        problem = Problem(code=ErrorCode.CHECKPOINT_EXTRA_TENSOR, message="", where="\0" + "x" * 100_000)
        receive_report(
            make_report(
                evaluation,
                Step.VALIDATE,
                Outcome.REJECTED,
                problems=[problem] * 1000,
                operator_trace="\0" * 50_000,
            )
        )
        stored = StepReport.objects.get()
        assert len(stored.problems) == truncation.MOST["problems"]
        assert len(stored.problems[0]["where"]) == truncation.MAX_TEXT_CHARACTERS
        assert "\0" not in stored.problems[0]["where"] + stored.operator_trace

    def test_what_checks_found_is_stored_harmless_and_short(self, evaluation):
        receive_report(make_report(evaluation, Step.VALIDATE))
        hostile = Check(id="log.directions", status=CheckStatus.FLAGGED, found="\0" + "x" * 100_000)
        result = RESULTS[Step.COMMUNICATION].model_copy(update={"checks": [hostile] * 1000})
        receive_report(make_report(evaluation, Step.COMMUNICATION, result=result))
        checks = fresh(evaluation).run.results.checks
        assert len(checks) == truncation.MOST["checks"]
        assert len(checks[0].found) == truncation.MAX_TEXT_CHARACTERS
        assert "\0" not in checks[0].found

    def test_names_of_tensors_are_capped(self, evaluation):
        changes = {"changed": ["x\0" * 1000] * 20_001, "tensors": 20_001, "parameters": 20_001}
        result = make_result(evaluation, Step.VALIDATE).model_copy(update=changes)
        receive_report(make_report(evaluation, Step.VALIDATE, result=result))
        changed = (StepReport.objects.get().result or {})["changed"]
        assert len(changed) == truncation.MOST["changed"]
        assert len(changed[0]) == truncation.MAX_TEXT_CHARACTERS
        assert "\0" not in changed[0]

    def test_a_title_of_several_lines_never_forges_mail_headers(self, evaluation, committed):
        submission = evaluation.run.submission
        submission.title = "Method\nBcc: everyone@example.org"
        submission.save()
        pass_validation(evaluation)
        committed(receive_report, make_report(evaluation, Step.COMMUNICATION, Outcome.REJECTED))
        (message,) = mail.outbox
        assert message.subject == "[PFL-DocVQA] Your run “Method Bcc: everyone@example.org” has been rejected"
        assert message.bcc == []
