from datetime import timedelta

import pytest
from django.conf import settings
from django.core import mail

from docvqa_site.audit.models import AuditEntry
from docvqa_site.evaluation import clock
from docvqa_site.evaluation.display.status import statuses
from docvqa_site.evaluation.intake.receiving import receive_progress, receive_report
from docvqa_site.evaluation.models import Evaluation, EvaluationState, StepQueue, Worker
from docvqa_site.evaluation.queue import breaker, dispatch
from docvqa_site.evaluation.queue.diagnosis import MANY
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from evaluator.messages.jobs import EVALUATOR_QUEUE, SCORING_QUEUE, Outcome, Provenance, Step
from tests.docvqa_site.evaluation.messages import make_progress, make_report
from tests.docvqa_site.factories import make_run, make_submission, make_team, make_user

pytestmark = pytest.mark.django_db

TRACE = "Traceback\n  in fetch\nFetchError: the store answered 503"


@pytest.fixture
def organizer():
    return make_user(is_staff=True)


def fresh(row):
    return type(row).objects.get(pk=row.pk)


@pytest.fixture
def site(broker, committed, organizer):
    return Site(broker, committed)


class Site:
    """The site's real intake and dispatcher, with workers that are the test."""

    def __init__(self, broker, committed):
        self.broker = broker
        self.committed = committed
        self.now = clock.now()

    def submit(self, count):
        def start():
            return [dispatch.start(make_run(state=RunState.QUEUED)).run for _ in range(count)]

        return self.committed(start)

    def report(self, job, outcome, worker="w1"):
        evaluation = Evaluation.objects.get(pk=job.evaluation)
        report = make_report(
            evaluation, job.step, outcome, operator_trace=TRACE if outcome == Outcome.FAILED else ""
        )
        provenance: Provenance = report.provenance.model_copy(update={"worker": worker})
        self.committed(receive_progress, make_progress(evaluation, worker=worker))
        self.committed(receive_report, report.model_copy(update={"provenance": provenance}))

    def work(self, outcome, worker="w1"):
        """Take what the broker has; return the runs whose step it was."""
        jobs = self.broker.jobs()
        for job in jobs:
            self.report(job, outcome, worker)
        return [Evaluation.objects.get(pk=job.evaluation).run_id for job in jobs]

    def pass_time(self):
        """Let every pause be over."""
        Evaluation.objects.filter(not_before__isnull=False).update(not_before=clock.now())
        StepQueue.objects.filter(probe_at__isnull=False).update(probe_at=clock.now())
        self.committed(dispatch.dispatch)

    def fail_until_paused(self):
        while not self.queue().paused_at:
            assert self.work(Outcome.FAILED)

    def queue(self, name=EVALUATOR_QUEUE):
        return StepQueue.objects.get(pk=name)


def test_faults_of_many_runs_pause_the_queue(site):
    site.submit(10)
    site.fail_until_paused()
    queue = site.queue()
    assert queue.reason == "FetchError: the store answered 503"
    assert (
        Evaluation.objects.filter(state=EvaluationState.FAILED).count()
        <= MANY + settings.EVALUATION_SENT_STEPS
    )


def test_a_few_faults_don_t(site):
    site.submit(MANY - 1)
    for _ in range(2):
        site.work(Outcome.FAILED)
        site.pass_time()
    assert site.queue().paused_at is None


def test_faults_in_one_queue_don_t_pause_the_other(site):
    site.submit(5)
    site.fail_until_paused()
    evaluation = dispatch.start(make_run(state=RunState.QUEUED))
    evaluation.step = Step.SCORING
    evaluation.save()
    site.committed(dispatch.dispatch)
    assert len(site.broker.jobs(SCORING_QUEUE)) == 1


def test_the_organizers_are_notified_at_once_and_once_for_each_outage(site, organizer):
    site.submit(8)
    site.fail_until_paused()
    for _ in range(5):
        site.work(Outcome.FAILED)
        site.pass_time()
    (message,) = mail.outbox
    assert message.to == [organizer.email]
    assert "queue evaluator is paused" in message.subject
    assert "FetchError: the store answered 503" in message.body


def test_while_it_is_paused_one_step_is_tried_at_a_time_and_each_time_another(site):
    site.submit(12)
    site.fail_until_paused()
    site.work(Outcome.FAILED)
    tried = []
    for _ in range(3):
        assert site.broker.jobs() == []
        StepQueue.objects.update(probe_at=clock.now())
        site.committed(dispatch.dispatch)
        (run,) = site.work(Outcome.FAILED)
        tried.append(run)
    assert len(set(tried)) == 3


def test_the_next_step_is_not_tried_before_the_last_one_has_ended(site):
    site.submit(8)
    site.fail_until_paused()
    site.work(Outcome.FAILED)
    site.pass_time()
    (job,) = site.broker.jobs()
    site.pass_time()
    assert site.broker.jobs() == []
    site.committed(receive_progress, make_progress(Evaluation.objects.get(pk=job.evaluation)))
    site.pass_time()
    assert site.broker.jobs() == []


@pytest.mark.parametrize("outcome", [Outcome.PASSED, Outcome.REJECTED])
def test_a_step_that_gets_through_resumes_the_queue(site, outcome):
    site.submit(8)
    site.fail_until_paused()
    site.work(Outcome.FAILED)
    site.pass_time()
    site.work(outcome)
    assert (site.queue().paused_at, site.queue().reason) == (None, "")
    assert len(site.broker.jobs()) >= settings.EVALUATION_SENT_STEPS


def test_a_step_that_was_sent_before_the_pause_proves_nothing(site):
    site.submit(8)
    (first, *others) = site.broker.jobs()
    for job in others:
        site.report(job, Outcome.FAILED)
    while not site.queue().paused_at:
        site.work(Outcome.FAILED)
    site.report(first, Outcome.PASSED)
    assert site.queue().paused_at is not None


def test_a_store_that_was_away_for_long_costs_no_run_its_evaluation(site):
    runs = site.submit(6)
    site.fail_until_paused()
    for _ in range(20):
        site.work(Outcome.FAILED)
        site.pass_time()
    assert set(Run.objects.values_list("state", flat=True)) <= {RunState.QUEUED, RunState.RUNNING}
    for _ in range(40):
        site.work(Outcome.PASSED)
        for job in site.broker.jobs(SCORING_QUEUE):
            site.report(job, Outcome.PASSED)
        site.pass_time()
    assert {fresh(run).state for run in runs} == {RunState.SCORED}
    assert {fresh(run).submission.refunded_at for run in runs} == {None}


def test_runs_of_one_team_that_always_fail_don_t_pause_the_queue_of_the_others(site):
    (waiting,) = site.submit(1)
    team = make_team()
    hostile = [
        make_run(make_submission(team, state=SubmissionState.SUBMITTED), state=RunState.QUEUED)
        for _ in range(MANY)
    ]
    site.committed(lambda: [dispatch.start(run) for run in hostile])
    for _ in range(MANY * (1 + len(settings.EVALUATION_BACKOFF_SECONDS))):
        for job in site.broker.jobs():
            run = Evaluation.objects.get(pk=job.evaluation).run
            if run != waiting:
                site.report(job, Outcome.FAILED)
        site.pass_time()
    assert site.queue().paused_at is None
    assert {fresh(run).state for run in hostile} == {RunState.FAILED}


def test_runs_that_always_fail_don_t_keep_others_from_being_tried_in_a_paused_queue(site):
    site.submit(4)
    site.fail_until_paused()
    site.work(Outcome.FAILED)
    Evaluation.objects.filter(retry=0, state=EvaluationState.QUEUED).delete()
    (late,) = site.submit(1)
    site.pass_time()
    assert site.work(Outcome.PASSED) == [late.pk]
    assert site.queue().paused_at is None


def test_an_organizer_resumes_it_by_hand(site, organizer):
    site.submit(12)
    site.fail_until_paused()
    site.work(Outcome.FAILED)
    assert site.committed(breaker.resume, site.queue(), organizer)
    assert not breaker.resume(site.queue(), organizer)
    assert len(site.broker.jobs()) >= settings.EVALUATION_SENT_STEPS
    entries = AuditEntry.objects.filter(object_type="evaluation.stepqueue").order_by("id")
    assert [(entry.action, entry.actor) for entry in entries] == [
        ("stepqueue.paused", None),
        ("stepqueue.resumed", organizer),
    ]


def test_the_team_reads_that_its_queue_is_paused(site, client):
    runs = site.submit(6)
    site.fail_until_paused()
    (status,) = statuses([fresh(runs[-1])])
    assert status.is_paused
    client.force_login(runs[-1].submission.created_by)
    assert "Evaluation is paused" in client.get(runs[-1].submission.get_absolute_url()).text


class TestSickWorkers:
    @pytest.fixture
    def sick(self, site):
        """A site with a good worker, and one at which every step fails."""
        site.submit(12)
        site.work(Outcome.PASSED, "good")
        for _ in range(MANY):
            (first, *others) = site.broker.jobs()
            site.report(first, Outcome.FAILED, "bad")
            for job in others:
                site.report(job, Outcome.PASSED, "good")
        return site

    def test_one_that_fails_for_many_while_others_pass_is_named(self, sick, organizer):
        (message,) = mail.outbox
        assert message.to == [organizer.email]
        assert "The worker bad is failing" in message.subject
        assert "FetchError: the store answered 503" in message.body
        worker = Worker.objects.get(name="bad")
        assert (worker.sick_at is not None, worker.reason) == (True, "FetchError: the store answered 503")

    def test_the_others_work_on(self, sick):
        assert sick.queue().paused_at is None
        assert Worker.objects.get(name="good").sick_at is None

    def test_its_faults_cost_no_run_a_try(self, sick):
        faults = Evaluation.objects.filter(faults__gt=0).count()
        for _ in range(10):
            sick.pass_time()
            (first, *others) = sick.broker.jobs()
            sick.report(first, Outcome.FAILED, "bad")
            for job in others:
                sick.report(job, Outcome.PASSED, "good")
        assert Evaluation.objects.filter(faults__gt=faults).count() == 0
        assert not Run.objects.filter(state=RunState.FAILED).exists()
        assert len(mail.outbox) == 1

    def test_one_that_passes_a_step_is_well(self, sick):
        sick.work(Outcome.PASSED, "bad")
        assert Worker.objects.get(name="bad").sick_at is None


def test_long_ago_is_forgotten(site):
    site.submit(6)
    jobs = site.broker.jobs()
    for job in jobs:
        site.report(job, Outcome.FAILED)
    Evaluation.objects.get(pk=jobs[0].evaluation).reports.update(
        received_at=clock.now() - timedelta(seconds=settings.EVALUATION_OUTAGE_SECONDS + 1)
    )
    (third, *_) = site.broker.jobs()
    site.report(third, Outcome.FAILED)
    assert site.queue().paused_at is None
