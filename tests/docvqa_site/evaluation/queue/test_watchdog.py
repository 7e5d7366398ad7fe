from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery
from django.conf import settings
from django.core import mail
from django.utils import timezone

from docvqa_site.celery import EXAMINATIONS_QUEUE, WATCH_TASK, app
from docvqa_site.evaluation import clock
from docvqa_site.evaluation.examining import requests
from docvqa_site.evaluation.intake.receiving import receive_progress, receive_report
from docvqa_site.evaluation.models import Evaluation, EvaluationState, Examination, Watch
from docvqa_site.evaluation.queue import dispatch, watchdog
from docvqa_site.evaluation.queue.watchdog import watch
from docvqa_site.submissions.models import RunState
from evaluator.messages.jobs import EVALUATOR_QUEUE, Outcome, Step
from evaluator.worker.broker import broker_settings
from tests.docvqa_site.evaluation.conftest import Broker
from tests.docvqa_site.evaluation.messages import make_progress, make_report
from tests.docvqa_site.factories import make_run, make_user
from tests.services.ports import free_port
from tests.services.redis import Redis

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("brokers of the site")]

SILENCE = timedelta(seconds=settings.EVALUATION_SILENCE_SECONDS)
UNATTENDED = timedelta(seconds=settings.EVALUATION_UNATTENDED_SECONDS)
A_TICK = timedelta(seconds=settings.WATCHDOG_SECONDS)
A_SECOND = timedelta(seconds=1)
HOUR_AGO = datetime.now(UTC) - timedelta(hours=1)


@pytest.fixture
def evaluation(broker):
    return dispatch.start(make_run(state=RunState.QUEUED))


def fresh(row):
    return type(row).objects.get(pk=row.pk)


def look_until(committed, since, until):
    """Look all the time, and at its end."""
    now = since
    while now + SILENCE / 3 < until:
        now += SILENCE / 3
        committed(watch, now)
    Watch.objects.update(watched_at=until - A_TICK)
    committed(watch, until)


def lose(evaluation, committed):
    now = clock.now()
    receive_progress(make_progress(evaluation, worker="gpu-1"), now)
    Watch.objects.update_or_create(
        pk=1, defaults={"watched_at": now + SILENCE - A_TICK, "since": now - A_SECOND}
    )
    committed(watch, now + SILENCE + A_SECOND)


class TestSilence:
    def test_a_worker_that_spoke_lately_is_left_alone(self, evaluation, committed):
        now = clock.now()
        receive_progress(make_progress(evaluation), now)
        look_until(committed, now, now + SILENCE)
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

    def test_a_run_that_loses_one_worker_after_the_other_fails_and_the_slot_is_given_back(
        self, evaluation, committed
    ):
        for _ in range(settings.EVALUATION_LOSSES):
            lose(Evaluation.objects.get(state=EvaluationState.QUEUED), committed)
        run = fresh(evaluation.run)
        assert run.state == RunState.FAILED
        assert run.submission.refunded_at is not None
        assert not Evaluation.objects.filter(state__in=["queued", "running"]).exists()
        (message,) = mail.outbox
        assert "E_WORKERS_LOST" in message.body
        (problem,) = run.evaluations.latest("attempt").reports.get().problems
        assert problem["code"] == "E_WORKERS_LOST"

    def test_losses_and_faults_are_counted_apart(self, evaluation, committed):
        for _ in range(settings.EVALUATION_LOSSES - 1):
            lose(Evaluation.objects.get(state=EvaluationState.QUEUED), committed)
        for _ in settings.EVALUATION_BACKOFF_SECONDS:
            active = Evaluation.objects.get(state=EvaluationState.QUEUED)
            receive_report(make_report(active, Step.VALIDATE, Outcome.FAILED))
        active = Evaluation.objects.get(state=EvaluationState.QUEUED)
        assert (active.losses, active.faults) == (settings.EVALUATION_LOSSES - 1, 3)
        receive_report(make_report(active, Step.VALIDATE, Outcome.FAILED))
        assert fresh(evaluation.run).state == RunState.FAILED

    def test_a_report_after_the_loss_does_nothing(self, evaluation, committed):
        lose(evaluation, committed)
        receive_report(make_report(evaluation, Step.VALIDATE, Outcome.REJECTED))
        assert fresh(evaluation).run.state == RunState.QUEUED


class TestClocks:
    """Web servers, intake and watchdog run on machines whose clocks are minutes apart."""

    @pytest.mark.parametrize("skew", [timedelta(minutes=10), timedelta(minutes=-10)])
    def test_nobody_is_lost_whose_sign_of_life_was_received_by_another_clock(
        self, evaluation, committed, monkeypatch, skew
    ):
        with monkeypatch.context() as other_machine:
            other_machine.setattr(timezone, "now", lambda: datetime.now(UTC) + skew)
            receive_progress(make_progress(evaluation))
        Watch.objects.create(pk=1, watched_at=clock.now() - A_TICK, since=HOUR_AGO)
        committed(watch)
        assert fresh(evaluation).state == EvaluationState.RUNNING

    @pytest.mark.parametrize("skew", [timedelta(minutes=10), timedelta(minutes=-10)])
    def test_who_is_silent_is_lost_all_the_same(self, evaluation, committed, monkeypatch, skew):
        receive_progress(make_progress(evaluation))
        long_ago = clock.now() - 2 * SILENCE
        Evaluation.objects.update(heartbeat_at=long_ago)
        Watch.objects.create(pk=1, watched_at=clock.now() - A_TICK, since=long_ago)
        monkeypatch.setattr(timezone, "now", lambda: datetime.now(UTC) + skew)
        committed(watch)
        assert fresh(evaluation).state == EvaluationState.LOST

    def test_a_late_look_still_looks(self):
        (look,) = (entry for entry in app.conf.beat_schedule.values() if entry["task"] == WATCH_TASK)
        assert "options" not in look


class TestLooking:
    def test_looks_that_piled_up_are_one(self, evaluation, broker, committed, django_assert_max_num_queries):
        now = clock.now()
        committed(watch, now)
        with django_assert_max_num_queries(4):
            committed(watch, now + A_TICK / 4)

    def test_after_a_pause_of_the_site_workers_have_time_to_be_heard(self, evaluation, committed):
        now = clock.now()
        receive_progress(make_progress(evaluation), now)
        committed(watch, now)
        later = now + timedelta(hours=1)
        committed(watch, later)
        committed(watch, later + SILENCE / 3)
        assert fresh(evaluation).state == EvaluationState.RUNNING
        look_until(committed, later + SILENCE / 3, later + SILENCE + A_SECOND)
        assert fresh(evaluation).state == EvaluationState.LOST


@pytest.fixture(params=["embedded", "redis", "rabbitmq"])
def any_broker(request, monkeypatch):
    """The workers' end of a broker, which counts its messages."""
    if request.param == "embedded":
        return request.getfixturevalue("broker")
    server = request.getfixturevalue(f"{request.param}_server")
    other = Celery("docvqa_site")
    other.conf.update(broker_settings(server.url))
    for module in (dispatch, watchdog):
        monkeypatch.setattr(module, "app", other)
    return Broker(other)


@pytest.fixture(scope="module")
def redis_server():
    server = Redis()
    yield server
    server.stop()


class TestWaiting:
    """A step was sent, and no worker has begun it."""

    @pytest.fixture
    def sent(self, any_broker, committed):
        any_broker.take(EVALUATOR_QUEUE)
        return committed(dispatch.start, make_run(state=RunState.QUEUED))

    def look_later(self, sent, committed, wait=SILENCE + A_SECOND):
        committed(watch, fresh(sent).sent_at + wait)

    def test_while_the_broker_has_the_message_it_is_not_sent_again(self, sent, any_broker, committed):
        for days in range(1, 4):
            self.look_later(sent, committed, timedelta(days=days))
        assert [job.evaluation for job in any_broker.jobs()] == [sent.pk]

    def test_a_message_that_was_just_taken_is_not_sent_again(self, sent, any_broker, committed):
        any_broker.jobs()
        self.look_later(sent, committed, SILENCE)
        assert any_broker.jobs() == []

    def test_a_message_that_the_broker_has_lost_is_sent_again_in_the_same_attempt(
        self, sent, any_broker, committed
    ):
        any_broker.jobs()
        self.look_later(sent, committed)
        (job,) = any_broker.jobs()
        assert (job.evaluation, job.attempt) == (sent.pk, 1)
        assert fresh(sent).step_queued_at == sent.step_queued_at

    def test_it_is_not_sent_again_at_every_look(self, sent, any_broker, committed):
        any_broker.jobs()
        self.look_later(sent, committed)
        committed(watch, clock.now() + SILENCE + 2 * A_SECOND)
        assert len(any_broker.jobs()) == 1

    def test_of_two_only_the_one_that_is_missing_is_sent_again(self, sent, any_broker, committed):
        any_broker.jobs()
        second = committed(dispatch.start, make_run(state=RunState.QUEUED))
        self.look_later(second, committed)
        assert [job.evaluation for job in any_broker.jobs()] == [second.pk, sent.pk]

    def test_a_broker_that_is_away_is_asked_another_time(self, sent, committed, monkeypatch, caplog):
        nobody = Celery(broker=f"redis://127.0.0.1:{free_port()}/0")
        nobody.conf.update(broker_transport_options={"max_retries": 0, "socket_connect_timeout": 1})
        monkeypatch.setattr(watchdog, "app", nobody)
        sent_at = fresh(sent).sent_at
        self.look_later(sent, committed)
        assert "doesn't say how many" in caplog.text
        assert fresh(sent).sent_at == sent_at


def test_each_broker_has_one_call_while_examinations_wait(any_broker, monkeypatch):
    monkeypatch.setattr(requests, "app", any_broker.app)
    if any_broker.app is app:
        # The other brokers are new, and have no such queue yet.
        any_broker.take(EXAMINATIONS_QUEUE)
    Examination.objects.create(run=make_run(state=RunState.SCORED), level=1)
    now = clock.now()
    for at in (now, now + A_TICK, now + 2 * A_TICK):
        Watch.objects.update_or_create(pk=1, defaults={"watched_at": at - A_TICK, "since": now})
        watch(at)
    assert len(any_broker.take(EXAMINATIONS_QUEUE)) == 1


class TestUnattended:
    """Steps wait, and no worker is seen."""

    @pytest.fixture
    def waiting(self, evaluation, committed):
        committed(watch, evaluation.step_queued_at)
        return evaluation

    def look(self, waiting, committed, wait):
        look_until(committed, waiting.step_queued_at, waiting.step_queued_at + wait)

    def test_the_organizers_are_notified_within_minutes_and_once(self, waiting, committed):
        organizer = make_user(is_staff=True)
        self.look(waiting, committed, UNATTENDED - A_SECOND)
        assert mail.outbox == []
        self.look(waiting, committed, UNATTENDED + 10 * A_TICK)
        (message,) = mail.outbox
        assert message.to == [organizer.email]
        assert "Steps waiting in the queue evaluator: 1," in message.body

    def test_they_are_not_while_a_worker_is_busy(self, waiting, committed):
        make_user(is_staff=True)
        other = dispatch.start(make_run(state=RunState.QUEUED))
        receive_progress(make_progress(other), waiting.step_queued_at + UNATTENDED / 2)
        self.look(waiting, committed, UNATTENDED + A_TICK)
        assert mail.outbox == []

    def test_they_are_notified_again_of_the_next_outage(self, waiting, committed):
        make_user(is_staff=True)
        self.look(waiting, committed, UNATTENDED + A_TICK)
        now = waiting.step_queued_at + UNATTENDED + 2 * A_TICK
        receive_report(make_report(waiting, Step.VALIDATE), now)
        look_until(committed, now, now + 2 * UNATTENDED)
        assert len(mail.outbox) == 2

    def test_the_site_s_own_pause_is_not_the_workers_fault(self, waiting, committed):
        make_user(is_staff=True)
        committed(watch, waiting.step_queued_at + timedelta(hours=5))
        assert mail.outbox == []


def test_finished_evaluations_are_left_alone(evaluation, broker, committed):
    receive_report(make_report(evaluation, Step.VALIDATE, Outcome.REJECTED))
    receive_report(make_report(evaluation, Step.COMMUNICATION))
    mail.outbox.clear()
    look_until(committed, clock.now(), clock.now() + 2 * UNATTENDED)
    assert fresh(evaluation).state == EvaluationState.REJECTED
    assert broker.take(EVALUATOR_QUEUE) == []
    assert mail.outbox == []
