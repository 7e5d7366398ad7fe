import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client

from docvqa_site.audit.models import AuditEntry
from docvqa_site.organizers.announcements import Audience, recipients
from docvqa_site.submissions.models import RunState, SubmissionState
from tests.docvqa_site.factories import (
    make_organizer,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_user,
    sign_in_organizer,
)

pytestmark = pytest.mark.django_db

PAGE = "/organize/announcement/"
MAIL = {"audience": "members", "track": "", "subject": "New data", "text": "Version 2 is out."}


@pytest.fixture
def organizer(client: Client):
    return sign_in_organizer(client, "organize", "view_user")


def make_person(*, verified: bool = True, **fields):
    person = make_user(**fields)
    EmailAddress.objects.create(user=person, email=person.email, primary=True, verified=verified)
    return person


def test_the_number_of_recipients_is_shown_and_nothing_is_sent(client: Client, organizer) -> None:
    make_team(make_person())
    assert "Send to 1 recipient<" in client.post(PAGE, MAIL).content.decode()
    assert mail.outbox == []


def test_a_confirmed_announcement_is_mailed_to_each_and_audited(client: Client, organizer) -> None:
    people = [make_person(), make_person()]
    for person in people:
        make_team(person)
    assert client.post(PAGE, {**MAIL, "seen": "2"}).status_code == 302
    assert [message.to for message in mail.outbox] == [[person.email] for person in people]
    entry = AuditEntry.objects.get(action="announcement.sent")
    assert (entry.actor, entry.details["recipients"]) == (organizer, 2)


def test_an_announcement_appears_on_news_if_that_is_ticked(client: Client, organizer) -> None:
    make_team(make_person())
    client.post(PAGE, {**MAIL, "seen": "1"})
    assert "There is no news yet." in client.get("/news/").text
    assert "It will also be published on News." in client.post(PAGE, {**MAIL, "on_news": "on"}).text
    client.post(PAGE, {**MAIL, "on_news": "on", "seen": "1"})
    assert "Version 2 is out." in client.get("/news/").text


def test_news_are_published_that_nobody_would_get_by_mail(client: Client, organizer) -> None:
    mail = {**MAIL, "audience": "with_failed_run"}
    assert "Nobody would get it." in client.post(PAGE, mail).text
    assert "Publish on News</button>" in client.post(PAGE, {**mail, "on_news": "on"}).text
    client.post(PAGE, {**mail, "seen": "0"})
    assert "There is no news yet." in client.get("/news/").text
    client.post(PAGE, {**mail, "on_news": "on", "seen": "0"})
    assert "Version 2 is out." in client.get("/news/").text


def test_news_alone_are_previewed_and_published_without_a_mail(client: Client, organizer) -> None:
    make_team(make_person())
    news = {**MAIL, "audience": "nobody", "on_news": "on", "text": "Version **2** is out."}
    page = client.post(PAGE, news).text
    assert "<p>Version <strong>2</strong> is out.</p>" in page
    assert "Publish on News</button>" in page
    client.post(PAGE, {**news, "seen": "0"})
    assert "<strong>2</strong>" in client.get("/news/").text
    assert mail.outbox == []


def test_an_announcement_that_would_reach_others_by_now_is_shown_again(client: Client, organizer) -> None:
    make_team(make_person())
    page = client.post(PAGE, {**MAIL, "seen": "7"}).content.decode()
    assert "The number of recipients has changed in the meantime" in page
    assert mail.outbox == []


def test_audiences_are_chosen_by_what_teams_submitted(organizer) -> None:
    track = make_track()
    loner, idle, failed = make_person(), make_person(), make_person()
    make_person(verified=False)
    make_person(is_active=False)
    make_team(idle)
    make_run(
        make_submission(make_team(failed), track, state=SubmissionState.SUBMITTED), state=RunState.FAILED
    )
    admitted, declined = make_person(), make_person()
    for person, state in ((admitted, "admitted"), (declined, "declined")):
        make_team(person).registrations.create(track=track, created_by=person, state=state)
    reached = {audience: list(recipients(audience, track)) for audience in Audience}
    assert reached == {
        Audience.EVERYONE: [loner, idle, failed, admitted, declined],
        Audience.MEMBERS: [idle, failed, admitted, declined],
        Audience.IN_TRACK: [failed, admitted],
        Audience.WITHOUT_SUBMISSION: [idle, admitted, declined],
        Audience.WITH_FAILED_RUN: [failed],
        Audience.WITH_REJECTED_RUN: [],
        Audience.WITH_SCORED_RUN: [],
        Audience.NOBODY: [],
    }
    assert list(recipients(Audience.WITHOUT_SUBMISSION, make_track())) == [idle, failed, admitted, declined]
    assert list(recipients(Audience.IN_TRACK, None)) == [failed, admitted]


def test_announcing_needs_its_permission_and_a_known_method(client: Client, organizer) -> None:
    assert client.delete(PAGE).status_code == 405
    client.force_login(make_organizer("organize"))
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {**MAIL, "seen": "0"}).status_code == 403
