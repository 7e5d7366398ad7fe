"""A track may ask teams to register, and an organizer to admit them, before they train or submit."""

import pytest
from django.core import mail
from django.test import Client

from docvqa_site.accounts.services import create_token, make_track_organizer
from docvqa_site.audit.models import AuditEntry
from docvqa_site.challenge.models import Registration, Track
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.notifications.models import Notification
from docvqa_site.submissions.models import Submission
from docvqa_site.submissions.services import submit
from docvqa_site.submissions.tokens import issue_token
from evaluator.errors import ProblemError
from tests.docvqa_site.factories import make_organizer, make_submission, make_team, make_track, make_user
from tests.docvqa_site.ui.test_pages import check

pytestmark = pytest.mark.django_db

DESK = "/organize/registrations/"


@pytest.fixture
def track() -> Track:
    return make_track(
        BEST_ANLS_AT_BUDGET,
        slug="closed",
        registration=Registration.APPROVAL,
        registration_questions="Which data do you train on?\nWho funds you?",
    )


def logged_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_team_answers_is_admitted_and_submits(client: Client, track: Track) -> None:
    member = make_user()
    team = make_team(member)
    client.force_login(member)
    assert "/tracks/closed/register/" in client.get("/tracks/closed/").text
    check(client, "/tracks/closed/register/")
    new = {"title": "M", "track": track.pk}
    assert "isn't registered" in client.post("/submissions/create/", new).text.replace("&#x27;", "'")
    page = client.post("/tracks/closed/register/", {"answer_0": "", "answer_1": "Nobody"}).text
    assert "Who funds you?" in page
    answers = {"answer_0": "The forms.", "answer_1": "Nobody"}
    page = client.post("/tracks/closed/register/", answers, follow=True).text
    assert f"{team} asks to be admitted. The organizers will decide." in page
    assert "is registered" not in page
    assert not Submission.objects.exists()

    organizer = make_organizer("organize", "change_track")
    desk = logged_in(organizer)
    page = desk.get("/organize/").text
    assert "1 team waiting for admission" in page
    assert 'id="registrationswait"' in client.get("/docs/operations/").text
    check(desk, DESK)
    assert "The forms." in desk.get(DESK).text
    registration = team.registrations.get()
    desk.post(f"{DESK}{registration.pk}/", {"state": "admitted", "reason": "Welcome."})
    assert "waiting for admission" not in desk.get("/organize/").text
    assert "Registration for Track" in client.get("/account/notifications/").text
    assert client.post("/submissions/create/", new).status_code == 302
    assert AuditEntry.objects.get(action="teamregistration.admitted").actor == organizer


def test_organizers_who_may_admit_a_team_are_notified_once(client: Client, track: Track) -> None:
    every, single, other = (make_organizer("organize", "change_track") for _ in range(3))
    for one in (single, other):
        make_track_organizer(one)
    track.organizers.add(single)
    make_organizer("organize")
    member = make_user()
    team = make_team(member)
    client.force_login(member)
    for _ in range(2):
        client.post("/tracks/closed/register/", {"answer_0": "a", "answer_1": "b"})
    found = Notification.objects.filter(subject=f"{team} asks to be admitted to {track}")
    assert {one.user for one in found} == {every, single}
    assert len(found) == 2
    assert {one.page for one in found} == {f"{DESK}?track=closed"}
    assert {address for sent in mail.outbox for address in sent.to} == {every.email, single.email}
    assert "a team asks to be admitted to a track" in logged_in(every).get("/account/notifications/").text


def test_a_declined_team_reads_why_and_gets_no_token_and_submits_no_draft(
    client: Client, track: Track
) -> None:
    member = make_user()
    team = make_team(member)
    draft = make_submission(team, track)
    client.force_login(member)
    client.post("/tracks/closed/register/", {"answer_0": "a", "answer_1": "b"})
    desk = logged_in(make_organizer("organize", "change_track"))
    desk.post(f"{DESK}{team.registrations.get().pk}/", {"state": "declined", "reason": "For students only."})
    assert "For students only." in client.get("/tracks/closed/register/").text
    with pytest.raises(ProblemError, match="E_TEAM_REGISTRATION"):
        issue_token(team, track, member)
    with pytest.raises(ProblemError, match="E_TEAM_REGISTRATION"):
        submit(draft, member)
    _, secret = create_token(member, "cluster")
    answer = client.post(
        "/api/v1/submissions",
        {"track": "closed", "title": "M"},
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )
    assert answer.status_code == 403
    assert "E_TEAM_REGISTRATION" in answer.text


def test_without_an_approval_a_team_is_admitted_at_once(client: Client, track: Track) -> None:
    Track.objects.update(registration=Registration.QUESTIONS, registration_questions="")
    member = make_user()
    make_team(member)
    client.force_login(member)
    make_organizer("organize", "change_track")
    page = client.post("/tracks/closed/register/", follow=True).text
    assert "is registered." in page
    assert not mail.outbox
    assert "can submit" in page


def test_the_registrations_for_one_track_are_listed_alone(client: Client, track: Track) -> None:
    member = make_user()
    registration = make_team(member).registrations.create(track=track, created_by=member)
    other = make_track(slug="other")
    client.force_login(make_organizer("organize", "change_track"))
    page = client.get(f"{DESK}?track=closed").text
    assert str(registration.team) in page
    assert str(registration.team) not in client.get(f"{DESK}?track={other.slug}").text
    action = f"{DESK}{registration.pk}/?track=closed"
    assert f'action="{action}"' in page
    assert client.post(action, {"state": "admitted"})["Location"] == f"{DESK}?track=closed"


def test_organizers_of_another_track_neither_read_nor_decide(client: Client, track: Track) -> None:
    member = make_user()
    team = make_team(member)
    logged_in(member).post("/tracks/closed/register/", {"answer_0": "Private", "answer_1": "b"})
    organizer = make_user(is_staff=True)
    make_track_organizer(organizer)
    client.force_login(organizer)
    assert "Private" not in client.get(DESK).text
    address = f"{DESK}{team.registrations.get().pk}/"
    assert client.post(address, {"state": "admitted"}).status_code == 404
    track.organizers.add(organizer)
    assert client.post(address, {"state": "admitted"}).status_code == 302
