from datetime import timedelta

import pytest
from django.conf import settings
from django.core import mail
from django.utils import timezone

from evaluator.contracts import EVALUATOR_QUEUE, Outcome, Step
from portal.evaluation import dispatch, intake
from portal.evaluation.dispatch import MESSAGE_LIFETIME
from portal.evaluation.models import Evaluation, EvaluationState
from portal.evaluation.watchdog import watch
from portal.submissions.models import RunState
from tests.portal.evaluation.messages import make_progress, make_report
from tests.portal.factories import make_run, make_user

pytestmark = pytest.mark.django_db

SILENCE = timedelta(seconds=settings.EVALUATION_SILENCE_SECONDS)
QUEUE = timedelta(seconds=settings.EVALUATION_QUEUE_SECONDS)
A_SECOND = timedelta(seconds=1)


@pytest.fixture
def evaluation(broker):
    return dispatch.start(make_run(state=RunState.QUEUED))


def fresh(row):
    return type(row).objects.get(pk=row.pk)


def lose(evaluation, committed):
    now = timezone.now()
    intake.receive_progress(make_progress(evaluation, worker="gpu-1"), now)
    committed(watch, now + SILENCE + A_SECOND)


class TestSilence:
    def test_a_worker_that_spoke_lately_is_left_alone(self, evaluation, committed):
        now = timezone.now()
        intake.receive_progress(make_progress(evaluation), now)
        committed(watch, now + SILENCE)
        assert fresh(evaluation).state == EvaluationState.RUNNING

    def test_the_evaluation_of_a_silent_worker_is_lost_and_retried(self, evaluation, broker, committed):
        lose(evaluation, committed)
        assert fresh(evaluation).state == EvaluationState.LOST
        assert fresh(evaluation).run.state == RunState.QUEUED
        (job,) = broker.jobs()
        assert (job.attempt, job.step) == (2, Step.VALIDATE)

    def test_the_loss_is_reported_with_its_code(self, evaluation, committed):
        lose(evaluation, committed)
        (problem,) = evaluation.reports.get().problems
        assert (problem["code"], problem["where"]) == ("E_WORKER_LOST", "step validate")

    def test_when_every_attempt_is_lost_the_run_fails_and_the_slot_is_given_back(self, evaluation, committed):
        for _ in range(settings.EVALUATION_ATTEMPTS):
            lose(Evaluation.objects.get(state=EvaluationState.QUEUED), committed)
        run = fresh(evaluation.run)
        assert run.state == RunState.FAILED
        assert run.submission.refunded_at is not None
        assert not Evaluation.objects.filter(state__in=["queued", "running"]).exists()
        (message,) = mail.outbox
        assert "E_PLATFORM_FAULT" in message.body

    def test_failed_and_lost_attempts_count_together(self, evaluation, committed):
        intake.receive_report(make_report(evaluation, Step.VALIDATE, Outcome.FAILED))
        for _ in range(settings.EVALUATION_ATTEMPTS - 1):
            lose(Evaluation.objects.get(state=EvaluationState.QUEUED), committed)
        assert fresh(evaluation.run).state == RunState.FAILED

    def test_a_report_after_the_loss_does_nothing(self, evaluation, committed):
        lose(evaluation, committed)
        intake.receive_report(make_report(evaluation, Step.VALIDATE, Outcome.REJECTED))
        assert fresh(evaluation).run.state == RunState.QUEUED


class TestWaiting:
    def test_a_message_that_may_still_arrive_is_not_sent_again(self, evaluation, broker, committed):
        committed(watch, evaluation.sent_at + MESSAGE_LIFETIME)
        assert broker.take(EVALUATOR_QUEUE) == []

    def test_an_expired_message_is_sent_again_in_the_same_attempt(self, evaluation, broker, committed):
        now = evaluation.sent_at + MESSAGE_LIFETIME + A_SECOND
        committed(watch, now)
        (job,) = broker.jobs()
        assert (job.evaluation, job.attempt) == (evaluation.pk, 1)
        assert fresh(evaluation).sent_at == now
        assert fresh(evaluation).step_queued_at == evaluation.step_queued_at

    def test_it_is_not_sent_again_at_every_look(self, evaluation, broker, committed):
        now = evaluation.sent_at + MESSAGE_LIFETIME + A_SECOND
        committed(watch, now)
        committed(watch, now + A_SECOND)
        assert len(broker.jobs()) == 1

    def test_the_organizers_are_notified_once_that_no_worker_takes_it(self, evaluation, committed):
        organizer = make_user(is_staff=True)
        committed(watch, evaluation.step_queued_at + QUEUE + A_SECOND)
        committed(watch, evaluation.step_queued_at + QUEUE + 2 * A_SECOND)
        (message,) = mail.outbox
        assert message.to == [organizer.email]
        assert evaluation.run.submission.title in message.body

    def test_they_are_notified_again_when_a_later_step_waits(self, evaluation, committed):
        make_user(is_staff=True)
        now = evaluation.step_queued_at + QUEUE + A_SECOND
        committed(watch, now)
        committed(intake.receive_report, make_report(evaluation, Step.VALIDATE), now)
        committed(watch, now + QUEUE + A_SECOND)
        assert len(mail.outbox) == 2


def test_finished_evaluations_are_left_alone(evaluation, broker, committed):
    intake.receive_report(make_report(evaluation, Step.VALIDATE, Outcome.REJECTED))
    committed(watch, timezone.now() + 2 * QUEUE)
    assert fresh(evaluation).state == EvaluationState.REJECTED
    assert broker.take(EVALUATOR_QUEUE) == []
    assert mail.outbox == []
