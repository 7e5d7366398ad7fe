import hmac
import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.conf import settings
from django.core import mail
from django.db import connection
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.challenge.models import Phase, Track
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.evaluation import tasks
from docvqa_site.evaluation.display.results import column_epsilons
from docvqa_site.evaluation.intake import outcomes, truncation
from docvqa_site.evaluation.intake.judging import MAX_RENEWALS
from docvqa_site.evaluation.intake.receiving import receive_progress, receive_report
from docvqa_site.evaluation.models import Evaluation, EvaluationState, StepReport
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.evaluation.queue.step_secrets import step_secret
from docvqa_site.mail.models import OutgoingMail
from docvqa_site.submissions.models import Run, RunState
from evaluator.errors import ErrorCode, Problem
from evaluator.messages.jobs import (
    EVALUATOR_QUEUE,
    SCORING_QUEUE,
    Outcome,
    Step,
    TrustLevel,
)
from evaluator.messages.results import RunResults
from tests.docvqa_site.evaluation.messages import (
    RESULTS,
    fresh,
    make_detail,
    make_group,
    make_progress,
    make_report,
    signed,
)
from tests.docvqa_site.factories import make_run, make_submission, make_track

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PASSING = [Step.VALIDATE, Step.COMMUNICATION, Step.SCORING]


pytestmark = pytest.mark.django_db


class TestProgress:
    def test_the_first_sign_of_life_makes_the_run_running(self, evaluation):
        receive_progress(make_progress(evaluation, done=1, total=4, worker="gpu-1"), NOW)
        evaluation = fresh(evaluation)
        assert (evaluation.state, evaluation.run.state) == (EvaluationState.RUNNING, RunState.RUNNING)
        assert (evaluation.done, evaluation.total, evaluation.worker) == (1, 4, "gpu-1")
        assert evaluation.heartbeat_at == NOW

    def test_of_a_step_that_has_passed_everything_is_done(self, evaluation):
        """Heartbeats come now and then, and the last one before the end."""
        for step in PASSING[:-1]:
            receive_report(make_report(evaluation, step))
            evaluation = fresh(evaluation)
        receive_progress(make_progress(evaluation, step=Step.SCORING, done=672, total=1200))
        receive_report(make_report(evaluation, Step.SCORING))
        evaluation = fresh(evaluation)
        assert (evaluation.state, evaluation.done, evaluation.total) == (EvaluationState.PASSED, 1200, 1200)

    def test_progress_about_a_later_step_does_nothing(self, evaluation):
        receive_progress(make_progress(evaluation, step=Step.SCORING))
        assert fresh(evaluation).state == EvaluationState.QUEUED

    def test_progress_about_an_unknown_evaluation_does_nothing(self, evaluation):
        receive_progress(make_progress(Evaluation(pk=uuid4(), attempt=1, step=Step.VALIDATE)))
        assert fresh(evaluation).heartbeat_at is None

    @pytest.mark.parametrize("bad", [None, "text", {}, {"done": "x"}, [1]])
    def test_malformed_progress_is_dropped(self, evaluation, bad, caplog):
        tasks.receive_progress(bad)
        assert "malformed" in caplog.text

    @pytest.mark.parametrize("fields", [{"done": -1}, {"total": 2**31}])
    def test_progress_beyond_what_the_database_stores_is_dropped(self, evaluation, fields):
        tasks.receive_progress(signed(make_progress(evaluation, **fields)))
        assert fresh(evaluation).state == EvaluationState.QUEUED

    def test_the_time_left_is_the_newest_estimate_of_the_worker(self, evaluation):
        receive_progress(make_progress(evaluation, done=1, total=4, remaining_s=250.5))
        assert fresh(evaluation).remaining_s == 250.5
        receive_progress(make_progress(evaluation, done=2, total=4))
        assert fresh(evaluation).remaining_s is None

    @pytest.mark.parametrize("remaining_s", [-1, 1e9, math.nan, math.inf, "soon"])
    def test_an_impossible_time_left_is_dropped(self, evaluation, remaining_s, caplog):
        sound = make_progress(evaluation)
        content = json.dumps({**sound.model_dump(mode="json"), "remaining_s": remaining_s})
        secret = step_secret(sound.evaluation, sound.attempt, sound.step)
        signature = hmac.new(secret.encode(), content.encode(), "sha256").hexdigest()
        tasks.receive_progress({"content": content, "signature": signature})
        assert "malformed" in caplog.text
        assert fresh(evaluation).state == EvaluationState.QUEUED


class TestPassing:
    def test_all_steps_lead_to_a_scored_run(self, broker, committed):
        run = make_run(
            make_submission(track=make_track(BEST_ANLS_AT_BUDGET), state="submitted"),
            state=RunState.QUEUED,
            budget=4.0,
        )
        evaluation = committed(dispatch.start, run)
        steps = [Step.VALIDATE, Step.COMMUNICATION, Step.ACCOUNTING, Step.SCORING]
        for step in steps:
            queue = SCORING_QUEUE if step is Step.SCORING else EVALUATOR_QUEUE
            (job,) = broker.jobs(queue)
            assert job.step == step
            committed(tasks.receive_report, signed(make_report(evaluation, step)))

        run, evaluation = fresh(run), fresh(evaluation)
        assert (run.state, evaluation.state) == (RunState.SCORED, EvaluationState.PASSED)
        assert (run.results.anls, run.results.accuracy, run.results.bytes_total) == (0.5, 0.25, 6000)
        assert run.results.epsilon == 3.9
        assert [row.epsilon for row in column_epsilons(run.results)] == [3.9, 3.1, 4.2]
        assert (run.results.accountant, run.results.bytes_needed, run.results.trust_level) == (
            "PLD, evaluator 1, grid 1e-4",
            500,
            TrustLevel.RECOMPUTED,
        )
        assert [check.id for check in run.results.checks] == [
            "log.directions",
            "log.message_sizes",
            "record.budget",
            "record.linkage",
            "record.whole_change",
            "record.providers",
            "team.declared_runs",
            "team.joint_epsilon",
        ]
        assert run.scored_at == evaluation.finished_at is not None
        assert [report.step for report in evaluation.reports.all()] == steps

    def test_without_a_budget_there_is_no_accounting(self, evaluation, broker, committed):
        committed(receive_report, make_report(evaluation, Step.VALIDATE))
        committed(receive_report, make_report(evaluation, Step.COMMUNICATION))
        assert fresh(evaluation).step == Step.SCORING

    def test_a_result_is_on_the_run_as_soon_as_its_step_passed(self, evaluation):
        receive_report(make_report(evaluation, Step.VALIDATE))
        receive_report(make_report(evaluation, Step.COMMUNICATION))
        assert fresh(evaluation).run.results.bytes_total == 6000

    def test_the_next_step_waits_with_nothing_of_the_last_one(self, evaluation):
        receive_progress(make_progress(evaluation, done=3, total=4, remaining_s=9, worker="gpu-1"))
        receive_report(make_report(evaluation, Step.VALIDATE), NOW)
        evaluation = fresh(evaluation)
        assert (evaluation.state, evaluation.step) == (EvaluationState.QUEUED, Step.COMMUNICATION)
        assert (evaluation.done, evaluation.total, evaluation.remaining_s) == (0, 0, None)
        assert evaluation.worker == ""
        assert evaluation.heartbeat_at is None
        assert (evaluation.step_queued_at, evaluation.sent_at) == (NOW, None)
        assert evaluation.run.state == RunState.RUNNING

    def test_the_team_is_notified(self, evaluation, committed):
        for step in PASSING:
            committed(receive_report, make_report(evaluation, step))
        (message,) = mail.outbox
        submission = evaluation.run.submission
        assert message.to == [submission.created_by.email]
        assert message.subject == f"[PFL-DocVQA] Your run “{submission.title}” has been scored"
        assert (
            "ANLS 0.5, accuracy 0.2, 6.00 kB communicated. Not ranked: ANLS 0.5 is below the threshold of 0.8242."
            in message.body
        )
        assert settings.SITE_URL + submission.get_absolute_url() in message.body

    def test_the_team_reads_the_rank(self, evaluation, committed):
        Track.objects.update(anls_threshold=0.1)
        Phase.objects.update(requires_counted=False)
        for step in PASSING:
            committed(receive_report, make_report(evaluation, step))
        assert "6.00 kB communicated, #1 of 1 at the time." in mail.outbox[0].body

    def test_every_change_of_state_is_on_record(self, evaluation):
        for step in PASSING:
            receive_report(make_report(evaluation, step))
        recorded = AuditEntry.objects.order_by("id").values_list("action", flat=True)
        assert [action for action in recorded if action.startswith("run.")] == ["run.running", "run.scored"]
        assert [action for action in recorded if action.startswith("evaluation.")] == [
            *["evaluation.running", "evaluation.queued"] * 2,
            *["evaluation.running", "evaluation.passed"],
        ]


class TestDetail:
    @pytest.fixture
    def scoring(self, evaluation):
        for step in (Step.VALIDATE, Step.COMMUNICATION):
            receive_report(make_report(evaluation, step))
        return fresh(evaluation)

    def stored(self, evaluation):
        return evaluation.reports.get(step=evaluation.step).detail

    def test_that_of_a_score_is_stored(self, scoring):
        detail = make_detail(make_group(), make_group(by="provider", group="seen"))
        tasks.receive_report(signed(make_report(scoring, Step.SCORING, detail=detail)))
        assert self.stored(scoring) == detail.model_dump(mode="json")

    def test_a_score_may_have_none(self, scoring):
        receive_report(make_report(scoring, Step.SCORING))
        assert self.stored(scoring) is None

    def test_no_other_step_has_any(self, evaluation):
        receive_report(make_report(evaluation, Step.VALIDATE, detail=make_detail()))
        assert self.stored(evaluation) is None

    @pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.FAILED])
    def test_a_step_without_a_score_has_none(self, scoring, outcome):
        receive_report(make_report(scoring, Step.SCORING, outcome, detail=make_detail()))
        assert self.stored(scoring) is None

    def test_it_is_stored_harmless_and_short(self, scoring):
        detail = make_detail(*[make_group(group="\0" + "x" * 100_000)] * 1000)
        receive_report(make_report(scoring, Step.SCORING, detail=detail))
        groups = self.stored(scoring)["groups"]
        assert len(groups) == truncation.MOST["groups"]
        assert len(groups[0]["group"]) == 200
        assert "\0" not in groups[0]["group"]

    @pytest.mark.parametrize(
        "detail",
        [
            make_detail(make_group(anls_low=math.nan)),
            make_detail(make_group(accuracy=1.5)),
            make_detail(make_group(anls_high=-math.inf)),
            make_detail(make_group(questions=-1)),
            make_detail(pages_without_image=2**63),
        ],
    )
    def test_impossible_numbers_are_rejected(self, scoring, detail, caplog):
        tasks.receive_report(signed(make_report(scoring, Step.SCORING, detail=detail)))
        assert "malformed" in caplog.text
        assert fresh(scoring).run.state == RunState.RUNNING


def pass_validation(evaluation):
    """What is left of the steps that read a run's files is the communication log, in a track without budgets."""
    receive_report(make_report(evaluation, Step.VALIDATE))


class TestFailure:
    def test_a_new_attempt_starts_without_the_results_of_the_last(self, evaluation):
        for step in PASSING:
            receive_report(make_report(evaluation, step))
        Run.objects.filter(pk=evaluation.run_id).update(state=RunState.FAILED, scored_at=None)
        outcomes.requeue(fresh(evaluation).run)
        run = fresh(evaluation.run)
        assert (run.state, run.results, run.scored_at) == (RunState.QUEUED, RunResults(), None)

    def test_a_scored_run_keeps_its_row_until_another_attempt_has_scored_or_rejected_it(self, evaluation):
        for step in PASSING:
            receive_report(make_report(evaluation, step))
        first = fresh(evaluation.run)
        for end in (Outcome.PASSED, Outcome.REJECTED):
            attempt = outcomes.requeue(fresh(evaluation.run))
            for step in PASSING[:-1]:
                receive_report(make_report(attempt, step))
            run = fresh(evaluation.run)
            assert (run.results.anls, run.is_evaluated_again) == (first.results.anls, True)
            assert run.pending.bytes_total == first.results.bytes_total
            assert run.pending.anls is None
            receive_report(make_report(attempt, PASSING[-1], end))
            run = fresh(evaluation.run)
            assert (run.scored_at is not None) == (end is Outcome.PASSED)
            assert (run.results.anls is not None) == (end is Outcome.PASSED)
            assert run.pending == RunResults()

    def test_it_is_tried_again_from_the_first_step(self, evaluation, broker, committed):
        committed(receive_report, make_report(evaluation, Step.VALIDATE))
        broker.take(EVALUATOR_QUEUE)
        committed(receive_report, make_report(evaluation, Step.COMMUNICATION, Outcome.FAILED))
        assert fresh(evaluation).state == EvaluationState.FAILED
        assert fresh(evaluation).run.state == RunState.QUEUED
        assert broker.jobs() == []
        Evaluation.objects.update(not_before=timezone.now())
        committed(dispatch.dispatch)
        (job,) = broker.jobs()
        assert (job.attempt, job.step) == (2, Step.VALIDATE)
        assert mail.outbox == []

    def test_the_pauses_before_the_next_attempt_grow(self, evaluation):
        pauses = []
        for _ in settings.EVALUATION_BACKOFF_SECONDS:
            active = Evaluation.objects.get(state=EvaluationState.QUEUED)
            receive_report(make_report(active, Step.VALIDATE, Outcome.FAILED), NOW)
            again = Evaluation.objects.get(state=EvaluationState.QUEUED)
            assert again.not_before is not None
            pauses.append((again.not_before - NOW).total_seconds())
        assert pauses == settings.EVALUATION_BACKOFF_SECONDS == [60, 600, 3600]

    def test_after_the_last_attempt_the_run_fails_and_the_slot_is_given_back(self, evaluation, committed):
        attempts = len(settings.EVALUATION_BACKOFF_SECONDS) + 1
        for _ in range(attempts):
            active = Evaluation.objects.get(state=EvaluationState.QUEUED)
            committed(
                receive_report,
                make_report(active, Step.VALIDATE, Outcome.FAILED, operator_trace="CUDA"),
            )
        run = fresh(evaluation.run)
        assert run.state == RunState.FAILED
        assert run.evaluations.count() == attempts
        assert run.submission.refunded_at is not None
        (message,) = mail.outbox
        assert "E_PLATFORM_FAULT" in message.body
        assert "CUDA" not in message.body

    def test_the_mail_waits_in_the_outbox_whatever_the_mail_server_does(
        self, evaluation, committed, settings
    ):
        settings.EMAIL_BACKEND = "docvqa_site.mail.backend.OutboxBackend"
        settings.MAIL_DELIVERY_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
        pass_validation(evaluation)
        committed(receive_report, make_report(evaluation, Step.COMMUNICATION, Outcome.REJECTED))
        assert fresh(evaluation).run.state == RunState.REJECTED
        assert OutgoingMail.objects.count() == 1


class TestExpiredAddresses:
    @pytest.fixture
    def expired(self, evaluation):
        problem = Problem.of(ErrorCode.ARTIFACT_URL)
        return make_report(evaluation, Step.VALIDATE, Outcome.FAILED, problems=[problem])

    def test_the_step_is_sent_again_with_new_ones_in_the_same_attempt(
        self, expired, evaluation, broker, committed
    ):
        committed(receive_report, expired)
        evaluation = fresh(evaluation)
        assert (evaluation.state, evaluation.attempt, evaluation.renewals) == (EvaluationState.QUEUED, 1, 1)
        assert (evaluation.reports.count(), evaluation.worker) == (0, "")
        assert [job.evaluation for job in broker.jobs()] == [evaluation.pk]

    def test_a_store_that_rejects_every_address_is_a_fault(self, expired, evaluation):
        for _ in range(MAX_RENEWALS + 1):
            receive_report(expired)
        assert fresh(evaluation).state == EvaluationState.FAILED
        assert fresh(evaluation).reports.get().problems[0]["code"] == "E_ARTIFACT_URL"

    def test_the_next_step_has_its_own(self, expired, evaluation):
        receive_report(expired)
        receive_report(make_report(evaluation, Step.VALIDATE))
        assert fresh(evaluation).renewals == 0


class TestDisorder:
    @pytest.mark.parametrize("outcome", Outcome)
    def test_reports_that_come_five_times_and_out_of_order_count_once(self, evaluation, outcome):
        reports = [
            make_report(evaluation, step, outcome)
            for step in (Step.SCORING, Step.COMMUNICATION, Step.VALIDATE)
        ]
        receive_report(make_report(evaluation, Step.VALIDATE))
        for report in reports * 5:
            receive_report(report)
        steps = [report.step for report in evaluation.reports.all()]
        assert steps == (
            [Step.VALIDATE, Step.COMMUNICATION, Step.SCORING] if outcome == "passed" else steps[:2]
        )
        assert len(steps) == len(set(steps))

    def test_a_report_of_a_superseded_attempt_is_dropped_while_the_next_one_waits_out_its_pause(
        self, evaluation
    ):
        late = make_report(evaluation, Step.VALIDATE)
        receive_report(make_report(evaluation, Step.VALIDATE, Outcome.FAILED))
        for _ in range(5):
            receive_report(late)
            receive_progress(make_progress(evaluation))
        again = Evaluation.objects.get(state=EvaluationState.QUEUED)
        assert (again.attempt, again.step, again.reports.count()) == (2, Step.VALIDATE, 0)
        assert again.not_before is not None

    def test_a_report_that_comes_twice_counts_once(self, evaluation, broker, committed):
        again = make_report(evaluation, Step.VALIDATE)
        committed(receive_report, again)
        broker.take(EVALUATOR_QUEUE)
        committed(receive_report, again)
        assert StepReport.objects.count() == 1
        assert broker.take(EVALUATOR_QUEUE) == []

    def test_a_report_of_a_step_to_come_is_dropped(self, evaluation):
        receive_report(make_report(evaluation, Step.SCORING))
        assert fresh(evaluation).state == EvaluationState.QUEUED
        assert fresh(evaluation).run.results.anls is None

    @pytest.mark.parametrize("outcome", Outcome)
    def test_a_late_report_of_a_dead_attempt_does_not_touch_the_live_one(self, evaluation, outcome):
        receive_report(make_report(evaluation, Step.VALIDATE, Outcome.FAILED))
        live = Evaluation.objects.get(state=EvaluationState.QUEUED)
        receive_report(make_report(evaluation, Step.VALIDATE, outcome))
        receive_report(make_report(live, Step.VALIDATE, outcome, attempt=1))
        assert fresh(live).state == EvaluationState.QUEUED
        assert fresh(live).run.state == RunState.QUEUED
        assert live.reports.count() == 0

    def test_a_late_heartbeat_does_not_revive_a_dead_attempt(self, evaluation):
        pass_validation(evaluation)
        receive_report(make_report(evaluation, Step.COMMUNICATION, Outcome.REJECTED))
        receive_progress(make_progress(fresh(evaluation)))
        assert fresh(evaluation).state == EvaluationState.REJECTED

    @pytest.mark.parametrize(
        "fields",
        [
            {"result": None},
            {"result": RESULTS[Step.VALIDATE]},
            {"result": RESULTS[Step.SCORING].model_copy(update={"anls": math.nan})},
            {"result": RESULTS[Step.SCORING].model_copy(update={"anls": -0.1})},
            {"result": RESULTS[Step.SCORING].model_copy(update={"questions": 2**63})},
            {"provenance": None},
        ],
    )
    def test_a_passed_step_without_a_sound_result_is_dropped(self, evaluation, fields, caplog):
        for step in (Step.VALIDATE, Step.COMMUNICATION):
            receive_report(make_report(evaluation, step))
        report = make_report(evaluation, Step.SCORING).model_copy(update=fields)
        tasks.receive_report(signed(report))
        assert "malformed" in caplog.text
        assert fresh(evaluation).run.state == RunState.RUNNING


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def take_at_once(self, *reports):
        """Take the reports in threads of their own, which start together."""
        together = threading.Barrier(len(reports))

        def take(report):
            together.wait()
            try:
                receive_report(report)
            finally:
                connection.close()

        with ThreadPoolExecutor(len(reports)) as threads:
            list(threads.map(take, reports))

    def test_of_two_contradicting_reports_one_counts(self, evaluation):
        pass_validation(evaluation)
        reports = [
            make_report(evaluation, Step.COMMUNICATION, outcome)
            for outcome in (Outcome.REJECTED, Outcome.PASSED)
        ]
        self.take_at_once(*reports)
        outcome = StepReport.objects.get(step=Step.COMMUNICATION).outcome
        expected = RunState.REJECTED if outcome == Outcome.REJECTED else RunState.RUNNING
        assert Run.objects.get().state == expected

    def test_two_failures_start_one_new_attempt(self, evaluation):
        failed = make_report(evaluation, Step.VALIDATE, Outcome.FAILED)
        self.take_at_once(failed, failed, failed)
        assert list(Evaluation.objects.order_by("attempt").values_list("attempt", "state")) == [
            (1, EvaluationState.FAILED),
            (2, EvaluationState.QUEUED),
        ]
