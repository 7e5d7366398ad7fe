"""Who sees what is private: each role against each page, on a submission before its score."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import AnonymousUser, Permission
from django.test import Client
from django.urls import reverse

from docvqa_site.accounts.models import User
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.submissions.selectors import private_submissions, private_through, sees_private
from docvqa_site.teams.models import Membership
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_organizer,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_user,
)

pytestmark = pytest.mark.django_db

SECRET = "secret-file-name"


@pytest.fixture
def run() -> Run:
    submission = make_submission(track=make_track(BEST_ANLS_AT_BUDGET), state=SubmissionState.SUBMITTED)
    run = make_run(submission, budget=1.0, state=RunState.RUNNING)
    make_artifact(run, ArtifactKind.CHECKPOINT, b"w", f"{SECRET}.safetensors")
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, SECRET.encode(), f"{SECRET}.md")
    return run


def competing(user: User, run: Run) -> User:
    """The same person, with a team that has submitted to the track."""
    make_submission(make_team(user), run.submission.track, state=SubmissionState.SUBMITTED)
    return user


def former(run: Run) -> User:
    user = make_user()
    Membership.objects.create(team=run.submission.team, user=user).delete()
    return user


ADMIN = ("view_submission", "view_evaluation", "view_proofreview", "view_runtoken", "review_proofs")
ROLES: dict[str, Callable[[Run], User | None]] = {
    "visitor": lambda run: None,
    "participant": lambda run: make_user(),
    "other team": lambda run: make_team().memberships.get().user,
    "former member": former,
    "member": lambda run: run.submission.created_by,
    "staff": lambda run: make_user(is_staff=True),
    "reviewer": lambda run: make_organizer("review_proofs"),
    "organizer": lambda run: make_organizer(),
    "organizer without a second factor": lambda run: make_organizer(second_factor=False),
    "competing organizer": lambda run: competing(make_organizer(*ADMIN), run),
    "superuser": lambda run: make_user(is_staff=True, is_superuser=True),
    "competing superuser": lambda run: competing(make_user(is_staff=True, is_superuser=True), run),
}
PAGES: dict[str, Callable[[Submission], str]] = {
    "page": lambda submission: submission.get_absolute_url(),
    "status": lambda submission: submission.get_absolute_url() + "status/",
    "proof": lambda submission: reverse("reviews:proof", args=[submission.pk]),
    "admin": lambda submission: reverse("admin:submissions_submission_change", args=[submission.pk]),
    "review": lambda submission: reverse("reviews:desk", args=[submission.pk]),
}
# Everybody else sees none of these pages.
ALLOWED = {
    "member": {"page", "status", "proof"},
    "organizer": {"page", "status", "proof", "admin"},
    "reviewer": {"proof", "review"},
    "superuser": {"page", "status", "proof", "admin", "review"},
}


@pytest.mark.parametrize("role", ROLES)
def test_each_role_sees_its_pages_and_no_other(client: Client, run: Run, role: str) -> None:
    user = ROLES[role](run)
    if user:
        client.force_login(user)
    responses = {name: client.get(address(run.submission)) for name, address in PAGES.items()}
    seen = {name for name, response in responses.items() if response.status_code == 200}
    assert seen == ALLOWED.get(role, set())
    for name in set(PAGES) - seen:
        assert SECRET not in responses[name].content.decode()


@pytest.mark.parametrize("role", ["member", "organizer", "superuser"])
def test_the_list_of_files_is_for_those_who_see_what_is_private(client: Client, run: Run, role: str) -> None:
    make_run(run.submission, budget=4.0, state=RunState.SCORED)
    assert SECRET not in client.get(run.submission.get_absolute_url()).content.decode()
    user = ROLES[role](run)
    assert user is not None
    client.force_login(user)
    assert SECRET in client.get(run.submission.get_absolute_url()).content.decode()


@pytest.mark.parametrize("role", ["competing organizer", "competing superuser"])
def test_lists_of_the_administration_leave_out_the_track_of_ones_own_team(
    client: Client, run: Run, role: str
) -> None:
    user = ROLES[role](run)
    assert user is not None
    client.force_login(user)
    for path in ("submissions/submission", "evaluation/evaluation", "reviews/proofreview"):
        page = client.get(f"/admin/{path}/").content.decode()
        assert run.submission.title not in page
        assert str(run.submission.pk) not in page


def test_the_selector_and_its_question_agree(run: Run) -> None:
    permission = Permission.objects.get(codename="view_submission")
    organizer = make_user(is_staff=True)
    assert not sees_private(organizer, run.submission)
    organizer.user_permissions.add(permission)
    organizer = User.objects.get(pk=organizer.pk)
    assert sees_private(organizer, run.submission)
    assert list(private_submissions(organizer)) == [run.submission]


def test_only_an_owner_withdraws_what_was_submitted(client: Client, run: Run) -> None:
    member = make_user()
    Membership.objects.create(team=run.submission.team, user=member)
    client.force_login(member)
    assert "Withdraw" not in client.get(run.submission.get_absolute_url()).content.decode()
    address = reverse("submissions:withdraw", args=[run.submission.pk])
    assert "Only an owner of the team can do this." in client.post(address, follow=True).content.decode()
    run.submission.refresh_from_db()
    assert run.submission.state == SubmissionState.SUBMITTED
    client.force_login(run.submission.created_by)
    assert "Withdraw" in client.get(run.submission.get_absolute_url()).content.decode()
    client.post(address)
    run.submission.refresh_from_db()
    assert run.submission.state == SubmissionState.WITHDRAWN


def test_any_member_discards_a_draft(client: Client) -> None:
    draft = make_submission()
    member = make_user()
    Membership.objects.create(team=draft.team, user=member)
    client.force_login(member)
    page = client.post(reverse("submissions:withdraw", args=[draft.pk]), follow=True).text
    draft.refresh_from_db()
    assert draft.state == SubmissionState.WITHDRAWN
    assert f"“{draft.title}” was discarded." in page
    assert draft.get_absolute_url() not in page


def test_tables_that_lead_to_submissions_show_those_that_the_visitor_sees_the_private_part_of(run):
    organizer = make_organizer()
    others = make_submission(track=make_track(), state=SubmissionState.SUBMITTED)
    make_run(others)
    visitors = [AnonymousUser(), make_user(), make_user(is_staff=True), run.submission.created_by, organizer]
    visitors.append(competing(make_organizer(), run))
    for visitor in visitors:
        through = Run.objects.filter(private_through(visitor, "submission__"))
        seen = set(private_submissions(visitor).values_list("pk", flat=True))
        with_runs = set(Run.objects.filter(submission__in=seen).values_list("submission", flat=True))
        assert set(through.values_list("submission", flat=True)) == with_runs
        assert set(Submission.objects.filter(private_through(visitor)).values_list("pk", flat=True)) == seen
    seeing = [visitor for visitor in visitors if private_submissions(visitor).exists()]
    assert seeing == [run.submission.created_by, organizer, visitors[-1]]
