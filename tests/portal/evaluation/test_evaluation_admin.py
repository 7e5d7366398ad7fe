import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from evaluator.contracts import Outcome, Step
from portal.evaluation import dispatch, intake
from portal.evaluation.models import Evaluation
from portal.submissions.models import Run, RunState
from tests.portal.evaluation.messages import make_report
from tests.portal.factories import make_run, make_user

pytestmark = pytest.mark.django_db

LIST = "/admin/evaluation/evaluation/"


@pytest.fixture
def refused():
    evaluation = dispatch.start(make_run(state=RunState.QUEUED))
    intake.take_report(
        make_report(evaluation, Step.VALIDATE, Outcome.REFUSED, operator_trace="Traceback: disk")
    )
    return evaluation


def staff(*permissions):
    user = make_user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


def test_organizers_read_the_operator_s_trace(client, refused):
    client.force_login(staff("view_evaluation", "view_stepreport"))
    page = client.get(reverse("admin:evaluation_evaluation_change", args=[refused.pk]))
    assert "Traceback: disk" in page.text


def test_others_see_nothing(client, refused):
    client.force_login(refused.run.submission.created_by)
    assert client.get(LIST).status_code == 302
    client.force_login(staff())
    assert client.get(LIST).status_code == 403


def test_nothing_is_edited_added_or_deleted(client, refused):
    client.force_login(make_user(is_staff=True, is_superuser=True))
    assert client.get(LIST + "add/").status_code == 403
    assert client.post(f"{LIST}{refused.pk}/change/", {"state": "passed"}).status_code == 403
    assert client.post(f"{LIST}{refused.pk}/delete/", {"post": "yes"}).status_code == 403


def test_the_action_evaluates_the_chosen_runs_again(client, refused):
    client.force_login(staff("view_evaluation", "change_evaluation"))
    action = {"action": "evaluate_runs_again", "_selected_action": [str(refused.pk)]}
    assert "is queued again" in client.post(LIST, action, follow=True).text
    assert Run.objects.get().state == RunState.QUEUED
    assert "not finished" in client.post(LIST, action, follow=True).text
    assert Evaluation.objects.count() == 2


def test_the_action_needs_the_permission_to_change(client, refused):
    client.force_login(staff("view_evaluation"))
    client.post(LIST, {"action": "evaluate_runs_again", "_selected_action": [str(refused.pk)]})
    assert Run.objects.get().state == RunState.REFUSED


def test_the_list_takes_as_many_queries_for_many_as_for_one(client, refused, django_assert_max_num_queries):
    client.force_login(make_user(is_staff=True, is_superuser=True))
    for _ in range(5):
        dispatch.start(make_run(state=RunState.QUEUED))
    with django_assert_max_num_queries(9):
        client.get(LIST)
