import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from docvqa_site.accounts import services
from docvqa_site.accounts.adapters import AccountAdapter
from docvqa_site.accounts.models import User
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.evaluation.models import (
    Evaluation,
    EvaluationState,
    Inventory,
    StepQueue,
    StepReport,
    Worker,
)
from docvqa_site.mail.models import OutgoingMail
from docvqa_site.reviews.assignments import assign, unassign
from docvqa_site.reviews.deadlines import SECOND_OPINION_TIME, default_due
from docvqa_site.reviews.models import Recusal
from docvqa_site.reviews.recusals import recuse
from docvqa_site.reviews.selectors import assignments
from docvqa_site.submissions.models import ExtraSubmissions, RunState, Submission, SubmissionState
from docvqa_site.teams.models import Membership
from evaluator.messages.jobs import ArtifactKind, Check, CheckStatus, Outcome, Step
from tests.docvqa_site.factories import (
    make_artifact,
    make_organizer,
    make_reviewer,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_upload,
    make_user,
    scored_submission,
    sign_in_organizer,
)
from tests.docvqa_site.reviews.test_decisions import accept, ask, reject

pytestmark = pytest.mark.django_db

DESK = "/organize/"


@pytest.fixture
def organizer(client: Client):
    return sign_in_organizer(client, "organize", "change_evaluation")


def desk(client: Client) -> str:
    answer = client.get(DESK)
    assert answer.status_code == 200
    return answer.content.decode()


def failed_run(code: str = "", state: str = EvaluationState.FAILED):
    run = make_run(state=RunState.FAILED)
    evaluation = Evaluation.objects.create(
        run=run, attempt=1, state=state, step=Step.SCORING, finished_at=timezone.now()
    )
    if code:
        problems = [{"code": code, "message": "It failed."}]
        StepReport.objects.create(
            evaluation=evaluation, step=Step.SCORING, outcome=Outcome.FAILED, problems=problems
        )
    return run


def test_an_empty_site_is_told_to_set_up_its_first_track(client: Client) -> None:
    sign_in_organizer(client, "organize", "change_track", "add_track")
    assert "Set up the first one" in client.get("/organize/").text
    make_track()
    assert "Set up the first one" not in client.get("/organize/").text


def test_only_staff_with_the_permission_and_a_second_factor_come_in(client: Client) -> None:
    assert client.get(DESK).status_code == 302
    client.force_login(make_user())
    assert client.get(DESK).status_code == 403
    client.force_login(make_organizer("view_submission"))
    assert client.get(DESK).status_code == 403
    client.force_login(make_organizer("organize", second_factor=False))
    assert client.get(DESK)["Location"] == "/account/2fa/"


def test_the_permission_alone_opens_nothing_to_those_who_are_not_staff(client: Client) -> None:
    member = make_organizer("organize")
    member.is_staff = False
    member.save()
    client.force_login(member)
    assert client.get(DESK).status_code == 403
    assert DESK not in client.get("/tracks/").content.decode()


def test_the_menu_leads_organizers_to_the_desk(client: Client, organizer) -> None:
    assert f'href="{DESK}"' in client.get("/tracks/").content.decode()


def test_organizers_land_at_the_desk_when_they_log_in(client: Client) -> None:
    organizer = make_organizer("organize")
    assert AccountAdapter().get_login_redirect_url(request_of(organizer)) == DESK
    member = make_organizer("organize", second_factor=False)
    assert AccountAdapter().get_login_redirect_url(request_of(member)) == DESK
    client.force_login(member)
    assert client.get(DESK)["Location"] == "/account/2fa/"


def request_of(user):
    request = RequestFactory().get("/")
    request.user = user
    return request


def test_the_desk_takes_no_post(client: Client, organizer) -> None:
    assert client.post(DESK).status_code == 405


def test_failed_runs_are_counted_by_code_and_queued_again(client: Client, organizer) -> None:
    run, lost = failed_run("E_ARTIFACT_MISSING"), failed_run(state=EvaluationState.LOST)
    page = desk(client)
    assert "E_ARTIFACT_MISSING" in page
    assert "E_WORKERS_LOST" in page
    assert client.post("/organize/failures/E_ARTIFACT_MISSING/queue/").status_code == 302
    run.refresh_from_db()
    lost.refresh_from_db()
    assert (run.state, lost.state) == (RunState.QUEUED, RunState.FAILED)


def test_a_team_whose_owner_is_inactive_needs_an_organizer(client: Client, organizer) -> None:
    team, left = make_team(make_user(is_active=False)), make_team(make_user(is_active=False))
    assert "without an active owner" not in desk(client)
    Membership.objects.create(team=team, user=make_user())
    assert "1 team without an active owner" in desk(client)
    Membership.objects.create(team=left, user=make_user(is_active=False))
    assert "1 team without an active owner" in desk(client)


def test_queuing_again_needs_its_permission_a_known_code_and_a_post(client: Client, organizer) -> None:
    address = "/organize/failures/E_PLATFORM_FAULT/queue/"
    assert client.get(address).status_code == 405
    assert client.post("/organize/failures/E_UNHEARD/queue/").status_code == 404
    client.force_login(make_organizer("organize"))
    assert client.post(address).status_code == 403


def test_what_is_wrong_with_the_platform_is_named(client: Client, organizer) -> None:
    run = make_run(state=RunState.QUEUED)
    waiting_since = timezone.now() - timedelta(hours=7)
    Evaluation.objects.create(run=run, attempt=1, step=Step.SCORING, step_queued_at=waiting_since)
    OutgoingMail.objects.create(recipients=["a@example.org"], failed_at=timezone.now())
    page = desk(client)
    assert "No worker is taking steps from evaluator.scoring" in page
    assert "The queue evaluator.scoring is slow" in page
    assert "1 email not delivered" in page
    assert "The process “clock” is silent" in page
    for heading in ("queuestalled", "queuelong", "mailfailed", "processsilent"):
        assert f'<a href="/docs/operations/#{heading}">What to do</a>' in page
        assert f'id="{heading}"' in client.get("/docs/operations/").text


def test_workers_show_their_heartbeat_and_what_they_run(client: Client, organizer) -> None:
    queue = StepQueue.objects.create(name="evaluator.scoring")
    seen_at = timezone.now() - timedelta(minutes=5)
    Worker.objects.create(queue=queue, name="idle@gpu", seen_at=seen_at)
    Worker.objects.create(queue=queue, name="stuck@gpu", seen_at=seen_at)
    run = make_run(state=RunState.RUNNING)
    Evaluation.objects.create(
        run=run, attempt=1, state=EvaluationState.RUNNING, step=Step.SCORING, worker="stuck@gpu"
    )
    Worker.objects.create(queue=queue, name="left@gpu", seen_at=seen_at)
    steps = StepQueue.objects.create(name="evaluator")
    Worker.objects.create(queue=steps, name="left@gpu", seen_at=seen_at)
    Inventory.objects.create(worker="idle@gpu", seen_at=timezone.now())
    Inventory.objects.create(worker="left@gpu", seen_at=timezone.now() - timedelta(minutes=3))
    Inventory.objects.create(worker="new@gpu", seen_at=timezone.now())
    page = desk(client)
    states = dict(re.findall(r'row">(\w+@gpu).*?badge-\w+">(\w+)<', page, re.DOTALL))
    assert page.count('row">left@gpu<') == 1
    assert '"Queue">evaluator, evaluator.scoring<' in page
    assert page.index('row">new@gpu<') < page.index("1 worker gone</summary>") < page.index('row">left@gpu<')
    assert '"Queue">no step yet<' in page
    assert states == {"idle@gpu": "idle", "stuck@gpu": "silent", "left@gpu": "gone", "new@gpu": "idle"}
    assert "1 silent worker" in page
    assert "#workersilent" in page
    assert "during a step: stuck@gpu." in page
    assert run.submission.title in page


def test_overdue_proofs_and_flagged_checks_are_listed_except_where_one_competes(
    client: Client, organizer
) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET)
    long_ago = timezone.now() - timedelta(days=20)
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED, submitted_at=long_ago)
    flagged = Check(id="record.budget", status=CheckStatus.FLAGGED)
    make_run(submission, state=RunState.SCORED, budget=1.0, checks=[flagged])
    page = desk(client)
    assert "1 overdue proof" in page
    assert "#proofsoverdue" in page
    # Who reviews no proofs isn't led to a page that they may not read.
    assert '<p><a href="/reviews/">' not in page
    organizer.user_permissions.add(Permission.objects.get(codename="review_proofs"))
    assert '<p><a href="/reviews/">Proof reviews</a></p>' in desk(client)
    assert "1 flagged" in page
    own = make_team(organizer)
    make_submission(own, track, state=SubmissionState.SUBMITTED)
    page = desk(client)
    assert "overdue proof" not in page
    assert "Flagged checks" not in page


def test_flagged_runs_and_logs_are_listed_the_newest_first_also_in_both_lists(
    client: Client, organizer, monkeypatch
) -> None:
    monkeypatch.setattr("docvqa_site.organizers.desk.MOST_FLAGGED", 2)
    track, flagged = make_track(), Check(id="log.directions", status=CheckStatus.FLAGGED)
    for hours, title in enumerate(("Newest", "Middle", "Oldest")):
        submission = make_submission(track=track, state=SubmissionState.SUBMITTED, title=title)
        at, flag = timezone.now() - timedelta(hours=hours), "log.directions"
        make_run(submission, state=RunState.SCORED, scored_at=at, checks=[flagged], log_flag=flag)
    page = desk(client)
    logs, checks = page.partition("Flagged communication logs")[2].split("Flagged checks")
    for part in (logs, checks):
        assert part.index("Newest") < part.index("Middle")
        assert "Oldest" not in part


def test_a_proof_is_reported_until_enough_reviewers_are_assigned(client: Client, organizer) -> None:
    submission, reviewer, other = scored_submission(), make_reviewer(), make_reviewer()
    reported = "1 proof with too few assigned reviewers"
    link = f'<a href="{reverse("reviews:assign", args=[submission.pk])}">Assign a reviewer to “{submission.title}”</a>'
    assert reported in desk(client)
    assert 'id="proofs-with-too-few-assigned-reviewers"' in client.get("/docs/operations/").text
    review = assign(submission, reviewer, default_due(), actor=organizer)
    page = desk(client)
    assert reported in page
    assert link in page
    assign(submission, other, default_due(), actor=organizer)
    assert "assigned reviewers" not in desk(client)
    unassign(review, actor=organizer)
    assert reported in desk(client)
    # Who has decided counts as well.
    accept(submission, reviewer)
    assert "assigned reviewers" not in desk(client)
    unassign(submission.reviews.get(reviewer=other), actor=organizer)
    assert reported in desk(client)
    accept(submission, other)
    assert "assigned reviewers" not in desk(client)


def test_an_assignment_counts_while_its_reviewer_is_one(client: Client, organizer) -> None:
    submission, reviewers = scored_submission(), [make_reviewer() for _ in range(3)]
    for reviewer in reviewers[:2]:
        assign(submission, reviewer, default_due(), actor=organizer)
    assert "assigned reviewers" not in desk(client)
    assert submission in {review.submission for review in assignments()}
    reviewers[0].user_permissions.clear()
    assert "1 proof with too few assigned reviewers" in desk(client)
    assert [review.reviewer for review in assignments()] == [reviewers[1]]
    User.objects.filter(pk=reviewers[1].pk).update(is_active=False)
    assert not assignments()


def test_a_proof_that_one_rejects_is_named_with_its_day(client: Client, organizer) -> None:
    submission, _ = scored_submission(), make_reviewer()
    reject(submission, make_reviewer())
    day = timezone.now().date() + SECOND_OPINION_TIME
    assert f"“{submission.title}” (by {day:%b} {day.day}, {day:%Y}). The reviewers who haven" in desk(client)


def test_a_proof_that_too_few_can_accept_is_reported(client: Client, organizer) -> None:
    submission, reviewer = scored_submission(), make_reviewer()
    make_reviewer()
    recuse(submission, Recusal.Why.TIME, actor=reviewer)
    page = desk(client)
    assert "1 proof has too few reviewers left" in page
    assert "assigned reviewers" not in page
    make_reviewer()
    page = desk(client)
    assert "reviewers left" not in page
    assert "1 proof with too few assigned reviewers" in page


def test_a_proof_that_needs_another_reviewer_is_reported(client: Client, organizer) -> None:
    submission = scored_submission()
    assert "another reviewer" not in desk(client)
    ask(submission, make_reviewer())
    reject(submission, make_reviewer())
    # Nobody was asked by email, and nobody can be assigned.
    page = desk(client)
    assert "1 proof has too few reviewers left" in page
    assert "1 proof needs another reviewer" not in page
    assert '<p><a href="/organize/people/">Reviewers and organizers</a></p>' not in page
    organizer.user_permissions.add(Permission.objects.get(codename="change_track"))
    assert '<p><a href="/organize/people/">Reviewers and organizers</a></p>' in desk(client)
    make_reviewer()
    page = desk(client)
    assert "reviewers left" not in page
    assert "1 proof needs another reviewer" in page
    assert f"<p>“{submission.title}”. The reviewers who haven" in page
    # All who can decide were asked by email.
    assert "assigned reviewers" not in page
    assert 'id="another-reviewer"' in client.get("/docs/operations/").text
    assert f'<p><a href="{reverse("admin:reviews_proof_changelist")}">Privacy proofs</a></p>' in page


class TestTeamsNearTheirQuota:
    def test_who_has_no_submission_left_in_an_open_track_is_listed(self, client: Client, organizer) -> None:
        track = make_track(name="Few bytes", submissions_per_day=2)
        spent, spare, refunded, yesterday = (make_team(name=f"Team {number}") for number in range(4))
        now = timezone.now()
        day = timedelta(hours=24)
        for team, changes in (
            (spent, {}),
            (spare, {"submitted_at": now - day - timedelta(minutes=1)}),
            (refunded, {"refunded_at": now}),
            (yesterday, {"submitted_at": now - day - timedelta(minutes=1)}),
        ):
            make_submission(team, track, state=SubmissionState.SUBMITTED, **changes)
            make_submission(team, track, state=SubmissionState.SUBMITTED)
        page = desk(client)
        assert "Teams near their quota" in page
        # Nothing is to be done about the organizers' own baselines.
        Submission.objects.filter(team=spent).update(is_baseline=True)
        assert "Team 0: " not in desk(client)
        Submission.objects.filter(team=spent).update(is_baseline=False)
        assert "Team 0: 2 submissions in the last 24 hours in Few bytes, with a quota of 2" in page
        assert not [number for number in (1, 2, 3) if f"Team {number}: " in page]
        granted = {"team": spent, "track": track, "count": 1}
        ExtraSubmissions.objects.create(**granted, granted_at=now - day - timedelta(minutes=1))
        assert "Team 0: 2 submissions" in desk(client)
        for _ in range(2):
            ExtraSubmissions.objects.create(**granted)
        make_submission(spent, track, state=SubmissionState.SUBMITTED)
        assert "Team 0: " not in desk(client)
        make_submission(spent, track, state=SubmissionState.SUBMITTED)
        assert "Team 0: 4 submissions in the last 24 hours in Few bytes, with a quota of 4" in desk(client)
        track.paused = True
        track.save()
        assert "Teams near their quota" not in desk(client)

    def test_a_track_in_which_the_organizer_competes_is_left_out(self, client: Client, organizer) -> None:
        track = make_track(submissions_per_day=1)
        make_submission(track=track, state=SubmissionState.SUBMITTED)
        assert "Teams near their quota" in desk(client)
        make_submission(make_team(organizer), track, state=SubmissionState.SUBMITTED)
        assert "Teams near their quota" not in desk(client)

    def test_who_has_nearly_used_up_the_storage_is_listed(self, client: Client, organizer, settings) -> None:
        settings.TEAM_STORAGE_BYTES = 1000
        full, roomy = make_team(name="Full"), make_team(name="Roomy")
        make_upload(full, b"x" * 450)
        make_upload(full, b"y" * 450)
        make_upload(roomy, b"z" * 890)
        submitted = make_run(make_submission(roomy, state=SubmissionState.SUBMITTED), state=RunState.QUEUED)
        make_artifact(submitted, ArtifactKind.CHECKPOINT, b"s" * 500)
        page = desk(client)
        assert "Full: 900 B of 1.00 kB of storage for drafts" in page
        assert "Roomy: " not in page


def test_the_desk_counts_people_proofs_and_content_and_leads_to_them(client: Client) -> None:
    make_user(is_staff=True, is_superuser=True)
    services.make_reviewer(make_user(is_staff=True))
    services.make_track_organizer(make_user())
    client.force_login(make_organizer("organize", "view_user", "change_newsitem"))
    track = make_track(BEST_ANLS_AT_BUDGET, budgets=[4])
    make_run(make_submission(track=track, state=SubmissionState.SUBMITTED), state=RunState.SCORED, budget=4.0)
    make_submission()
    # The test of a draft belongs to a team of its own.
    make_submission(track=make_track(is_draft=True))
    page = desk(client)
    assert "Audit trail" not in page
    assert '<a href="/admin/accounts/user/">7 accounts, 7 new this week</a>' in page
    assert "<li>2 teams, 2 new this week</li>" in page
    group = Group.objects.get(name="Reviewers")
    assert f'?is_active__exact=1&amp;groups__id__exact={group.pk}">1 reviewer</a>' in page
    # The superuser among them, as on the page that lists them.
    assert "<li>2 organizers of all tracks</li>" in page
    assert ">1 organizer of single tracks</a>" in page
    assert (
        '?is_active__exact=1&amp;is_superuser__exact=1">1 superuser, who can also review and organize</a>'
        in page
    )
    assert "<li>1 draft by 1 team</li>" in page
    assert "<li>1 waiting for reviewers</li>" in page
    assert '<a href="/admin/news/newsitem/">No news items</a>' in page
    for none in ("waiting for the team", "open appeal", "pending invitation", "final results</a>"):
        assert none not in page


def test_the_desk_leads_to_all_proofs_and_to_each_decision_on_them(client: Client) -> None:
    client.force_login(make_organizer("organize", "view_proofreview"))
    page = desk(client)
    assert '<a href="/admin/reviews/proof/">All privacy proofs</a>' in page
    assert '<a href="/admin/reviews/proofreview/">Each reviewer&#x27;s latest decision</a>' in page


def test_the_desk_shows_what_workers_have(client: Client, organizer) -> None:
    now = timezone.now()
    Inventory.objects.create(worker="a", references={"vt5": "1" * 64}, test_sets={}, seen_at=now)
    Inventory.objects.create(worker="b", references={"vt5": "2" * 64}, test_sets={}, seen_at=now)
    page = desk(client)
    assert "<code>vt5</code> on 2 workers, with different contents" in page
    assert "Test sets: none reported recently." in page
    Inventory.objects.filter(worker="b").update(seen_at=now - timedelta(minutes=3))
    assert "<code>vt5</code> on 1 worker, with different contents" in desk(client)
    Inventory.objects.update(seen_at=now - timedelta(minutes=3))
    assert "<code>vt5</code> on a worker that reported it less than 10 minutes ago and is gone" in desk(
        client
    )


def test_a_phase_that_has_ended_can_be_closed_from_the_desk(client: Client) -> None:
    client.force_login(make_organizer("organize", "change_track", "view_submission"))
    ended = make_track(closes_at=timezone.now() - timedelta(hours=1))
    make_track()
    phase, page = ended.phases.get(), desk(client)
    assert page.count("/close/") == page.count(f"/organize/tracks/{ended.slug}/phases/{phase.pk}/close/") == 2
    attention = page[page.index('id="needs"') : page.index('id="change"')]
    assert f"{ended}: “{phase}” has ended" in attention
    assert "/close/" in attention
    assert 'id="phases-to-close"' in client.get("/docs/operations/").text
    # Who may not close it reads that it has ended.
    client.force_login(make_organizer("organize"))
    assert "has ended" in desk(client)
    assert "/close/" not in desk(client)


def test_the_submissions_of_each_day_are_drawn_with_their_numbers(client: Client, organizer) -> None:
    for _ in range(3):
        make_submission(state=SubmissionState.SUBMITTED)
    assert "3 submissions in the last 30 days, with a peak of 3 in one day" in desk(client)


def test_the_number_of_queries_is_constant(
    client: Client, organizer, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(5):
        failed_run("E_ARTIFACT_MISSING")
        make_submission(state=SubmissionState.SUBMITTED)
        make_submission(track=make_track(submissions_per_day=1), state=SubmissionState.SUBMITTED)
    with django_assert_max_num_queries(31):
        assert "Teams near their quota" in desk(client)
