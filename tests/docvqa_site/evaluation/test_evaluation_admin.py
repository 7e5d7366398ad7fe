import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.models import Evaluation, EvaluationState, StepQueue, Worker
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.submissions.models import Run, RunState
from evaluator.messages.jobs import EVALUATOR_QUEUE, Outcome, Step
from tests.docvqa_site.admin_actions import choose, confirm, run
from tests.docvqa_site.api.caller import Caller
from tests.docvqa_site.evaluation.messages import make_detail, make_group, make_report
from tests.docvqa_site.factories import make_run, make_submission, make_team, make_user

pytestmark = pytest.mark.django_db

LIST = "/admin/evaluation/evaluation/"
QUEUES = "/admin/evaluation/stepqueue/"


@pytest.fixture
def rejected():
    evaluation = dispatch.start(make_run(state=RunState.QUEUED))
    receive_report(make_report(evaluation, Step.VALIDATE, Outcome.REJECTED, operator_trace="Traceback: disk"))
    receive_report(make_report(evaluation, Step.COMMUNICATION))
    return evaluation


GROUP = "net <i>amount</i> of the group"  # a name that nothing else has
RARE = "a rare type"
NUMBERS = ("0.4321", "0.5678", "61,234", "61234", "pages_without_image", "Pages without image")


@pytest.fixture
def scored(django_capture_on_commit_callbacks):
    submission = make_submission(state="submitted")
    evaluation = dispatch.start(make_run(submission, state=RunState.QUEUED))
    for step in (Step.VALIDATE, Step.COMMUNICATION):
        receive_report(make_report(evaluation, step))
    groups = make_group(group=GROUP, questions=61_234), make_group(group=RARE, questions=199)
    detail = make_detail(*groups, pages_without_image=7)
    with django_capture_on_commit_callbacks(execute=True):
        receive_report(make_report(evaluation, Step.SCORING, detail=detail))
    return evaluation


def words(html):
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def staff(*permissions):
    user = make_user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


def test_organizers_read_the_trace_of_the_operator(client, rejected):
    client.force_login(staff("view_submission", "view_evaluation", "view_stepreport"))
    page = client.get(reverse("admin:evaluation_evaluation_change", args=[rejected.pk]))
    assert "Traceback: disk" in page.text
    # No JSON.
    assert '<dl class="values">' in page.text
    assert not re.search(r'class="readonly">\s*[\[{]&quot;', page.text)


def test_organizers_read_what_a_score_is_made_of(client, scored):
    client.force_login(staff("view_submission", "view_evaluation", "view_stepreport"))
    page = client.get(reverse("admin:evaluation_evaluation_change", args=[scored.pk]))
    assert "By Group Questions ANLS 95% interval Accuracy" in words(page.text)
    assert "key net &lt;i&gt;amount&lt;/i&gt; of the group 61,234 0.5000 0.4321 to 0.5678 0.2500" in words(
        page.text
    )
    assert "Pages without image: 7" in page.text


def test_organizers_without_the_permission_do_not(client, scored):
    client.force_login(staff("view_submission", "view_evaluation"))
    page = client.get(reverse("admin:evaluation_evaluation_change", args=[scored.pk]))
    assert page.status_code == 200
    assert "0.4321" not in page.text


@pytest.mark.parametrize("who", ["member", "outsider", "other team", "organizer"])
def test_nobody_reads_what_a_score_is_made_of_outside_the_administration(client, scored, who):
    submission = scored.run.submission
    user = {
        "member": lambda: submission.created_by,
        "outsider": lambda: None,
        "other team": lambda: make_team().memberships.get().user,
        "organizer": lambda: make_user(is_staff=True, is_superuser=True),
    }[who]()
    if user:
        client.force_login(user)
    caller = Caller(client, user)
    slug = submission.track.slug
    shown = [
        *(client.get(path) for path in ("/", f"/leaderboard/{slug}/", f"/leaderboard/{slug}.csv")),
        *(client.get(submission.get_absolute_url() + page) for page in ("", "status/")),
        client.get(reverse("submissions:list")),
        client.get("/api/v1/openapi.json"),
        *(caller("GET", path) for path in ("submissions", f"submissions/{submission.pk}")),
        caller("GET", f"leaderboards/{slug}"),
    ]
    assert any(submission.title in response.text for response in shown)  # the run itself is no secret
    for response in shown:
        # Of a frequent type everybody reads a rounded score, which isn't among these.
        for secret in (RARE, *NUMBERS):
            assert secret not in response.text, response.request["PATH_INFO"]


def test_neither_mails_nor_the_audit_trail_reveal_the_detail_of_a_score(scored, mailoutbox):
    shown = str([mail.subject + mail.body for mail in mailoutbox])
    shown += str(list(AuditEntry.objects.values()))
    assert "has been scored" in shown
    assert "run.scored" in shown
    assert not [secret for secret in (GROUP, *NUMBERS) if secret in shown]


def test_others_see_nothing(client, rejected):
    client.force_login(rejected.run.submission.created_by)
    assert client.get(LIST).status_code == 302
    client.force_login(staff())
    assert client.get(LIST).status_code == 403


def test_nothing_is_edited_added_or_deleted(client, rejected):
    client.force_login(make_user(is_staff=True, is_superuser=True))
    assert client.get(LIST + "add/").status_code == 403
    assert client.post(f"{LIST}{rejected.pk}/change/", {"state": "passed"}).status_code == 403
    assert client.post(f"{LIST}{rejected.pk}/delete/", {"post": "yes"}).status_code == 403


def test_the_action_evaluates_the_chosen_runs_again(client, rejected):
    client.force_login(staff("view_submission", "view_evaluation", "change_evaluation"))
    page = choose(client, LIST, "evaluate_runs_again", rejected.pk)
    assert "1 evaluation selected" in words(page.text)
    assert "takes a worker&#x27;s time" in page.text
    assert Run.objects.get().state == RunState.REJECTED
    assert "is queued again" in confirm(client, LIST, page).text
    assert Run.objects.get().state == RunState.QUEUED
    assert "not finished" in run(client, LIST, "evaluate_runs_again", rejected.pk).text
    assert Evaluation.objects.count() == 2


def test_the_action_needs_the_permission_to_change(client, rejected):
    client.force_login(staff("view_submission", "view_evaluation"))
    run(client, LIST, "evaluate_runs_again", rejected.pk)
    assert Run.objects.get().state == RunState.REJECTED


class TestFailedRuns:
    @pytest.fixture
    def failed(self):
        """Two runs that have failed, one of them days ago, and one that was rejected."""
        for _ in range(3):
            evaluation = dispatch.start(make_run(state=RunState.QUEUED))
            for _ in range(4):
                active = Evaluation.objects.get(run=evaluation.run, state=EvaluationState.QUEUED)
                receive_report(make_report(active, Step.VALIDATE, Outcome.FAILED))
        long_ago = timezone.now() - timedelta(days=3)
        old, _, rejected = Run.objects.order_by("pk")
        old.evaluations.update(finished_at=long_ago)
        Run.objects.filter(pk=rejected.pk).update(state=RunState.REJECTED)
        return Run.objects.order_by("pk")

    def states(self):
        return list(Run.objects.order_by("pk").values_list("state", flat=True))

    @pytest.fixture(autouse=True)
    def no_outage(self, settings):
        settings.EVALUATION_OUTAGE_SECONDS = 0

    def select(self, client, *runs):
        selected = Evaluation.objects.filter(run__in=runs).values_list("pk", flat=True)
        return run(client, LIST, "queue_failed_runs_again", *selected)

    def test_all_selected_ones_are_queued_again_and_nothing_else(self, client, failed):
        organizer = staff("view_submission", "view_evaluation", "change_evaluation")
        client.force_login(organizer)
        assert "2 failed runs queued again" in self.select(client, *failed).text
        assert self.states() == ["queued", "queued", "rejected"]
        entries = AuditEntry.objects.filter(action="run.queued", actor=organizer)
        assert {entry.object_id for entry in entries} == {str(run.pk) for run in failed[:2]}
        assert "0 failed runs queued again" in self.select(client, *failed).text

    def test_each_has_all_of_its_tries_and_the_slot_is_given_back_once(self, client, failed):
        client.force_login(staff("view_submission", "view_evaluation", "change_evaluation"))
        one = failed[0]
        refunded_at = one.submission.refunded_at
        self.select(client, one)
        again = Evaluation.objects.get(run=one, state=EvaluationState.QUEUED)
        assert (again.attempt, again.retry, again.faults, again.losses, again.not_before) == (
            5,
            0,
            0,
            0,
            None,
        )
        for _ in range(4):
            active = Evaluation.objects.get(run=one, state=EvaluationState.QUEUED)
            receive_report(make_report(active, Step.VALIDATE, Outcome.FAILED))
        one = Run.objects.get(pk=one.pk)
        assert (one.state, one.submission.refunded_at) == (RunState.FAILED, refunded_at)
        refunds = AuditEntry.objects.filter(action="submission.refunded", object_id=one.submission_id)
        assert refunds.count() == 1

    def test_all_that_failed_since_a_moment_are_queued_again(self, client, failed):
        client.force_login(staff("view_submission", "view_evaluation", "change_evaluation"))
        yesterday = timezone.now() - timedelta(days=1)
        since = f"?since_0={yesterday:%Y-%m-%d}&since_1={yesterday:%H:%M:%S}"
        page = client.get(LIST + "failed/" + since).text
        old, recent, rejected = failed
        shown = [run.submission.title in page for run in (old, recent, rejected)]
        assert shown == [False, True, False]
        assert "1 failed run queued again" in client.post(LIST + "failed/" + since, follow=True).text
        assert self.states() == ["failed", "queued", "rejected"]

    def test_without_a_moment_nothing_is_queued(self, client, failed):
        client.force_login(staff("view_submission", "view_evaluation", "change_evaluation"))
        assert "Failed since" in client.get(LIST + "failed/").text
        client.post(LIST + "failed/?since_0=nonsense")
        assert self.states() == ["failed", "failed", "rejected"]

    def test_only_who_may_change_evaluations_does_so(self, client, failed):
        client.force_login(staff("view_evaluation"))
        since = "?since_0=2026-01-01&since_1=00:00:00"
        assert "Queue " not in client.get(LIST + "failed/" + since).text
        assert client.post(LIST + "failed/" + since).status_code == 403
        self.select(client, *failed)
        client.force_login(staff())
        assert client.get(LIST + "failed/" + since).status_code == 403
        assert self.states() == ["failed", "failed", "rejected"]


class TestQueues:
    @pytest.fixture
    def paused(self):
        dispatch.start(make_run(state=RunState.QUEUED))
        queue = StepQueue.objects.create(
            name=EVALUATOR_QUEUE, paused_at=timezone.now(), reason="the store is away"
        )
        now = timezone.now()
        Worker.objects.create(queue=queue, name="gpu-7:1", seen_at=now, sick_at=now, reason="CUDA error")
        return queue

    def test_organizers_see_why_one_is_paused_and_which_worker_is_sick(self, client, paused):
        client.force_login(staff("view_stepqueue", "view_worker"))
        assert "the store is away" in client.get(QUEUES).text
        page = client.get(f"{QUEUES}{paused.pk}/change/").text
        assert "gpu-7:1" in page
        assert "CUDA error" in page

    def test_they_resume_it_by_hand(self, client, paused):
        client.force_login(staff("view_stepqueue", "change_evaluation"))
        assert "evaluator is resumed" in run(client, QUEUES, "resume", paused.pk).text
        assert StepQueue.objects.get().paused_at is None
        assert "not paused" in run(client, QUEUES, "resume", paused.pk).text

    def test_who_may_only_look_does_not(self, client, paused):
        client.force_login(staff("view_stepqueue"))
        run(client, QUEUES, "resume", paused.pk)
        assert StepQueue.objects.get().paused_at is not None


def test_the_list_takes_as_many_queries_for_many_as_for_one(client, rejected, django_assert_max_num_queries):
    client.force_login(make_user(is_staff=True, is_superuser=True))
    for _ in range(5):
        dispatch.start(make_run(state=RunState.QUEUED))
    with django_assert_max_num_queries(10):
        client.get(LIST)
