"""The pages of teams on the organizers' desk."""

import re
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import make_track_organizer
from docvqa_site.audit.models import AuditEntry, record
from docvqa_site.challenge.models import RegistrationState, TeamRegistration
from docvqa_site.challenge.registering import registration_problems
from docvqa_site.reviews.threads import post_message
from docvqa_site.submissions.models import IndexChallenge, Submission, SubmissionState
from docvqa_site.submissions.selectors import quota_of
from docvqa_site.teams.models import PastMembership, Role
from tests.docvqa_site.factories import (
    make_challenge,
    make_reviewer,
    make_submission,
    make_team,
    make_token,
    make_track,
    make_user,
    owner_of,
    scored_submission,
    sign_in_organizer,
)
from tests.docvqa_site.ui.test_pages import check

pytestmark = pytest.mark.django_db


@pytest.fixture
def organizer(client: Client) -> User:
    return sign_in_organizer(
        client, "organize", "view_submission", "view_proofreview", "view_auditentry", "view_team"
    )


@pytest.fixture
def submission() -> Submission:
    """A submission of a team that is registered, has lost a token and an index, and got a message."""
    submission = scored_submission()
    team, track = submission.team, submission.track
    TeamRegistration.objects.create(
        team=team, track=track, state=RegistrationState.WAITING, created_by=owner_of(team)
    )
    make_token(team, track, record_sha256=make_challenge(), explanation="The disk broke.")
    IndexChallenge.objects.create(
        team=team, track=track, index_sha256=make_challenge(), challenge=make_challenge()
    )
    PastMembership.objects.create(
        team=team, user=make_user(name="Lee Left"), role=Role.MEMBER, joined_at=team.created_at
    )
    post_message(submission, "noise", "Which deviation?", author=make_reviewer())
    return submission


def address(submission: Submission) -> str:
    return f"/organize/teams/{submission.team_id}/"


def test_a_page_shows_what_a_team_did_and_what_it_may_still_do(
    client: Client, organizer: User, submission: Submission
) -> None:
    make_submission(submission.team, submission.track, title="Not yet")
    check(client, address(submission))
    page = client.get(address(submission)).text
    for text in (
        "waiting for the organizers",
        "1 of 5 used",
        "0 of 3 used",
        "1 issued, 0 used by a run, 1 with an unresolved challenge",
        "The disk broke.",
        "no run with counted bytes",
        "Lee Left",
        "Which deviation?",
        "Not yet",
        f"/organize/runs/{submission.runs.get().pk}/",
    ):
        assert text in page
    assert owner_of(submission.team).email not in page


def test_addresses_and_messages_are_shown_to_who_may_read_them(
    client: Client, submission: Submission
) -> None:
    sign_in_organizer(client, "organize", "view_submission", "view_user")
    page = client.get(address(submission)).text
    assert owner_of(submission.team).email in page
    assert "Which deviation?" not in page


def test_who_may_read_the_list_of_emails_gets_from_an_address_to_what_was_sent_there(
    client: Client, submission: Submission
) -> None:
    sign_in_organizer(client, "organize", "view_submission", "view_user")
    link = f'/admin/mail/outgoingmail/?q={quote(owner_of(submission.team).email)}"'
    assert link not in client.get(address(submission)).text
    sign_in_organizer(client, "organize", "view_submission", "view_user", "view_outgoingmail")
    assert link in client.get(address(submission)).text


def test_a_competitor_sees_nothing_of_the_track(
    client: Client, organizer: User, submission: Submission
) -> None:
    make_submission(make_team(organizer), submission.track, state=SubmissionState.SUBMITTED)
    page = client.get(address(submission)).text
    assert f"You compete in {submission.track}" in page
    assert submission.title not in page
    assert "The disk broke." not in page
    assert "waiting for the organizers" not in page


def test_organizers_of_single_tracks_see_the_teams_of_theirs(client: Client, submission: Submission) -> None:
    organizer = make_user(is_staff=True)
    make_track_organizer(organizer)
    own = make_track()
    own.organizers.add(organizer)
    client.force_login(organizer)
    assert client.get(address(submission)).status_code == 404
    other = make_submission(submission.team, own, state=SubmissionState.SUBMITTED)
    page = client.get(address(submission)).text
    assert other.title in page
    assert submission.title not in page


def test_the_list_finds_teams_by_name(client: Client, organizer: User, submission: Submission) -> None:
    make_team(name="Gradient Gang")
    page = client.get("/organize/teams/?text=gang").text
    assert "Gradient Gang" in page
    assert str(submission.team) not in page
    assert f'href="{address(submission)}"' in client.get("/organize/teams/").text


def test_the_list_finds_teams_by_member_and_track_and_is_sorted(
    client: Client, submission: Submission
) -> None:
    sign_in_organizer(client, "organize", "view_submission")
    other = make_team(make_user("grace@example.org", name="Grace Hopper"), name="A first team")

    def found(**chosen: str) -> list[str]:
        return re.findall(
            r'<th scope="row"><a [^>]+>([^<]+)</a>', client.get("/organize/teams/", chosen).text
        )

    assert found(text="hopper") == [str(other)]
    assert found(text="grace@") == []
    assert found(track=submission.track.slug) == [str(submission.team)]
    assert found(order="name") == [str(other), str(submission.team)]
    assert found(order="last") == [str(submission.team), str(other)]
    sign_in_organizer(client, "organize", "view_submission", "view_user")
    assert found(text="grace@") == [str(other)]


def test_submissions_and_the_audit_trail_lead_to_the_page(
    client: Client, organizer: User, submission: Submission
) -> None:
    record(None, "team.changed", submission.team)
    run = submission.runs.get()
    for page in ("/organize/runs/", f"/organize/runs/{run.pk}/", "/admin/submissions/submission/"):
        assert f'href="{address(submission)}"' in client.get(page).text
    assert f'href="{address(submission)}"' in client.get("/admin/audit/auditentry/").text


def giving(client: Client, *more: str) -> User:
    return sign_in_organizer(client, "organize", "view_submission", "change_submission", *more)


def test_a_team_is_given_more_submissions_for_a_reason_that_it_reads(
    client: Client, submission: Submission
) -> None:
    organizer = giving(client)
    team, track = submission.team, submission.track
    track.phases.update(submissions_per_day=1)
    assert quota_of(team, track, timezone.now()).left == 0
    form = {"track": track.pk, "count": 2, "reason": "The site lost your upload."}
    page = client.post(f"{address(submission)}submissions/", form, follow=True).text
    assert "1 of 3 used" in page
    assert "The site lost your upload." in page
    assert quota_of(team, make_track(submissions_per_day=1), timezone.now()).left == 1
    body = mail.outbox[-1].body
    assert mail.outbox[-1].to == [owner_of(team).email]
    assert f"2 more submissions in {track}, in addition to its quota, until " in body
    assert "Reason: The site lost your upload." in body
    assert "only until then" not in page
    entry = AuditEntry.objects.get(action="team.submissions_granted")
    assert (entry.actor, entry.details["count"]) == (organizer, 2)
    for number in range(2):
        make_submission(team, track, state=SubmissionState.SUBMITTED, submitted_at=timezone.now())
        assert quota_of(team, track, timezone.now()).left == 1 - number
    assert quota_of(team, track, timezone.now()).next_slot is not None


def test_who_gives_more_submissions_shortly_before_the_deadline_reads_so(
    client: Client, submission: Submission
) -> None:
    giving(client)
    track, form = submission.track, {"track": submission.track.pk, "count": 2, "reason": "Lost."}
    ends_at = timezone.now() + timedelta(minutes=2)
    track.phases.update(ends_at=ends_at)
    page = client.post(f"{address(submission)}submissions/", form, follow=True).text
    assert re.search(r"The phase “Submissions” ends on .*: the team can use them only until then\.", page)
    assert f"in addition to its quota, until {ends_at:%b %-d, %Y, %H:%M} UTC." in mail.outbox[-1].body
    track.phases.update(ends_at=timezone.now() - timedelta(minutes=2))
    page = client.post(f"{address(submission)}submissions/", form, follow=True).text
    assert "takes no submissions now" in page


def test_extra_submissions_need_a_number_a_reason_and_a_track_of_the_team(
    client: Client, submission: Submission
) -> None:
    giving(client)
    mail.outbox.clear()
    page = f"{address(submission)}submissions/"
    form = {"track": submission.track.pk, "count": 2, "reason": "Lost."}
    for wrong in ({"reason": ""}, {"count": 0}, {"count": 11}, {"track": make_track().pk}):
        assert client.post(page, {**form, **wrong}).status_code == 422
    assert not submission.team.extra_submissions.exists()
    assert mail.outbox == []


def test_nobody_gives_submissions_without_the_right_to_their_own_team_or_where_they_compete(
    client: Client, organizer: User, submission: Submission
) -> None:
    page, form = address(submission), {"track": submission.track.pk, "count": 1, "reason": "Lost."}
    assert "Give more submissions" not in client.get(page).text
    assert client.post(f"{page}submissions/", form).status_code == 403
    rival = giving(client)
    assert "Give more submissions" in client.get(page).text
    make_submission(make_team(rival), submission.track, state=SubmissionState.SUBMITTED)
    assert client.post(f"{page}submissions/", form).status_code == 422
    member = giving(client)
    PastMembership.objects.create(
        team=submission.team, user=member, role=Role.MEMBER, joined_at=submission.team.created_at
    )
    assert "Give more submissions" not in client.get(page).text
    assert client.post(f"{page}submissions/", form).status_code == 403
    assert client.get(f"{page}submissions/").status_code == 405
    assert not submission.team.extra_submissions.exists()


def test_a_team_is_excluded_from_a_track_for_a_reason_and_admitted_again(
    client: Client, submission: Submission
) -> None:
    organizer = sign_in_organizer(client, "organize", "view_submission", "change_track")
    team, track = submission.team, make_track(name="Another")
    page, form = f"{address(submission)}admission/", {"admission-track": track.pk, "admission-reason": ""}
    client.post(page, form)
    reasoned = {**form, "admission-reason": "A second team of the same lab."}
    assert "tick the box" in client.post(page, reasoned, follow=True).text
    assert not registration_problems(team, track)
    shown = client.post(page, {**reasoned, "admission-confirmed": "on"}, follow=True).text
    assert ">excluded</a>" in shown
    assert "Excluded from Another: A second team of the same lab." in shown
    (problem,) = registration_problems(team, track)
    assert problem.found == "excluded"
    assert not registration_problems(make_team(), track)
    assert "your team can't submit to it" in mail.outbox[-1].body
    assert "A second team of the same lab." in mail.outbox[-1].body
    member = Client()
    member.force_login(owner_of(team))
    assert "A second team of the same lab." in member.get(f"/tracks/{track.slug}/register/").text
    client.post(page, {**form, "admission-reason": "They merged.", "admit": "1"})
    assert not registration_problems(team, track)
    entries = AuditEntry.objects.filter(object_type="challenge.teamregistration", actor=organizer)
    assert [one.details["reason"] for one in entries.order_by("pk")] == [
        "A second team of the same lab.",
        "They merged.",
    ]
    make_submission(make_team(organizer), track, state=SubmissionState.SUBMITTED)
    client.post(page, {**form, "admission-reason": "A rival.", "admission-confirmed": "on"})
    assert not registration_problems(team, track)


def test_superusers_are_led_to_the_accounts_that_they_can_block(
    client: Client, submission: Submission
) -> None:
    sign_in_organizer(client, is_superuser=True)
    account = f"/admin/accounts/user/{owner_of(submission.team).pk}/change/"
    assert f'href="{account}"' in client.get(address(submission)).text


def test_more_submissions_take_no_more_queries(
    client: Client,
    organizer: User,
    submission: Submission,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for _ in range(3):
        make_submission(submission.team, submission.track, state=SubmissionState.SUBMITTED)
    with django_assert_max_num_queries(45):
        client.get(address(submission))
