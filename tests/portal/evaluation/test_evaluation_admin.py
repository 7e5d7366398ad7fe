import re

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from evaluator.contracts import Outcome, Step
from portal.audit.models import AuditEntry
from portal.evaluation import dispatch, intake
from portal.evaluation.models import Evaluation
from portal.submissions.models import Run, RunState
from tests.portal.api.caller import Caller
from tests.portal.evaluation.messages import make_detail, make_group, make_report
from tests.portal.factories import make_run, make_submission, make_team, make_user

pytestmark = pytest.mark.django_db

LIST = "/admin/evaluation/evaluation/"


@pytest.fixture
def rejected():
    evaluation = dispatch.start(make_run(state=RunState.QUEUED))
    intake.receive_report(
        make_report(evaluation, Step.VALIDATE, Outcome.REJECTED, operator_trace="Traceback: disk")
    )
    return evaluation


GROUP = "net <i>amount</i> of the group"  # a name that nothing else has
NUMBERS = ("0.4321", "0.5678", "61,234", "61234", "anls_low", "pages_without_image", "Pages without image")


@pytest.fixture
def scored(django_capture_on_commit_callbacks):
    submission = make_submission(state="submitted")
    evaluation = dispatch.start(make_run(submission, state=RunState.QUEUED))
    for step in (Step.VALIDATE, Step.COMMUNICATION):
        intake.receive_report(make_report(evaluation, step))
    detail = make_detail(make_group(group=GROUP, questions=61_234), pages_without_image=7)
    with django_capture_on_commit_callbacks(execute=True):
        intake.receive_report(make_report(evaluation, Step.SCORING, detail=detail))
    return evaluation


def words(html):
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def staff(*permissions):
    user = make_user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


def test_organizers_read_the_trace_of_the_operator(client, rejected):
    client.force_login(staff("view_evaluation", "view_stepreport"))
    page = client.get(reverse("admin:evaluation_evaluation_change", args=[rejected.pk]))
    assert "Traceback: disk" in page.text


def test_organizers_read_what_a_score_is_made_of(client, scored):
    client.force_login(staff("view_evaluation", "view_stepreport"))
    page = client.get(reverse("admin:evaluation_evaluation_change", args=[scored.pk]))
    assert "By Group Questions ANLS 95 % interval Accuracy" in words(page.text)
    assert "key net &lt;i&gt;amount&lt;/i&gt; of the group 61,234 0.5000 0.4321 to 0.5678 0.2500" in words(
        page.text
    )
    assert "Pages without image: 7" in page.text


def test_organizers_without_the_permission_do_not(client, scored):
    client.force_login(staff("view_evaluation"))
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
        for secret in ("net &lt;i&gt;", GROUP, *NUMBERS):
            assert secret not in response.text, response.request["PATH_INFO"]


def test_neither_mails_nor_the_audit_trail_reveal_the_detail_of_a_score(scored, mailoutbox):
    shown = str([str(mail.message()) for mail in mailoutbox])
    shown += str(list(AuditEntry.objects.values()))
    assert "is scored" in shown
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
    client.force_login(staff("view_evaluation", "change_evaluation"))
    action = {"action": "evaluate_runs_again", "_selected_action": [str(rejected.pk)]}
    assert "is queued again" in client.post(LIST, action, follow=True).text
    assert Run.objects.get().state == RunState.QUEUED
    assert "not finished" in client.post(LIST, action, follow=True).text
    assert Evaluation.objects.count() == 2


def test_the_action_needs_the_permission_to_change(client, rejected):
    client.force_login(staff("view_evaluation"))
    client.post(LIST, {"action": "evaluate_runs_again", "_selected_action": [str(rejected.pk)]})
    assert Run.objects.get().state == RunState.REJECTED


def test_the_list_takes_as_many_queries_for_many_as_for_one(client, rejected, django_assert_max_num_queries):
    client.force_login(make_user(is_staff=True, is_superuser=True))
    for _ in range(5):
        dispatch.start(make_run(state=RunState.QUEUED))
    with django_assert_max_num_queries(9):
        client.get(LIST)
