import pytest
from allauth.account.models import EmailAddress
from django.conf import settings
from django.core import mail
from django.test import Client

from docvqa_site.accounts.services import make_track_organizer
from docvqa_site.audit.models import AuditEntry
from docvqa_site.news.models import NewsItem
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
        Audience.TEAM: [],
    }
    assert list(recipients(Audience.WITHOUT_SUBMISSION, make_track())) == [idle, failed, admitted, declined]
    assert list(recipients(Audience.IN_TRACK, None)) == [failed, admitted]


def test_a_track_that_narrows_nothing_is_said_nowhere(client: Client, organizer) -> None:
    make_team(make_person())
    track = make_track(name="Byte-limited")
    for audience, is_narrowed in (("everyone", False), ("in_track", True)):
        data = {**MAIL, "audience": audience, "track": track.pk}
        page = client.post(PAGE, data).text
        assert ("(in Byte-limited)" in page) is is_narrowed
        client.post(PAGE, {**data, "seen": "1"})
    track.registrations.create(team=make_team(make_person()), created_by=make_user(), state="admitted")
    client.post(PAGE, {**data, "seen": "1"})
    entries = AuditEntry.objects.filter(action="announcement.sent").order_by("pk")
    assert [entry.details["track"] for entry in entries] == ["", track.slug]


def test_one_text_reads_well_on_news_by_email_and_as_a_notification(client: Client, organizer) -> None:
    reader = make_person()
    text = "Version **2** is out: [what changed](https://example.org/2).\n\n- one\n- two"
    data = {**MAIL, "audience": "everyone", "text": text, "on_news": "on"}
    plain = "Version 2 is out: what changed (https://example.org/2)."
    page = client.post(PAGE, data).text
    assert "Version <strong>2</strong> is out" in page
    assert plain in page
    client.post(PAGE, {**data, "seen": "1"})
    item = NewsItem.objects.get()
    body = mail.outbox[0].body
    assert f"{plain}\n\n- one\n- two\n\n{settings.SITE_URL}{item.get_absolute_url()}\n" in body
    client.force_login(reader)
    notifications = client.get("/account/notifications/").text
    assert 'what changed (<a href="https://example.org/2"' in notifications
    assert client.post(f"/account/notifications/{reader.notifications.get().pk}/open/")["Location"] == (
        item.get_absolute_url()
    )
    news = client.get(item.get_absolute_url()).text
    assert "<strong>2</strong>" in news
    assert f'content="{plain}' in news


def test_a_message_reaches_the_members_of_one_team_alone(client: Client) -> None:
    sign_in_organizer(client, "organize", "view_user", "view_submission")
    member = make_person()
    team, _ = make_team(member, name="Engines"), make_team(make_person())
    page = f"/organize/teams/{team.pk}/"
    assert f'href="{page}message/"' in client.get(page).text
    message = {"subject": "Your log", "text": "Please send it *again*."}
    preview = client.post(f"{page}message/", message).text
    assert "1 recipient</h2>" in preview
    assert "To members of Engines." in preview
    sent = client.post(f"{page}message/", {**message, "seen": "1"}, follow=True)
    assert "The message was sent to 1 recipient." in sent.text
    assert sent.redirect_chain[0][0] == page
    assert [one.to for one in mail.outbox] == [[member.email]]
    assert "From the organizers to your team, Engines.\n\nPlease send it again." in mail.outbox[0].body
    entry = AuditEntry.objects.get(action="announcement.sent")
    assert (entry.details["audience"], entry.details["team"]) == ("members of one team", team.pk)


@pytest.fixture
def track_organizer(client: Client):
    organizer = make_user(is_staff=True)
    make_track_organizer(organizer)
    client.force_login(organizer)
    return organizer


def test_organizers_of_single_tracks_write_to_the_teams_of_theirs(client: Client, track_organizer) -> None:
    own, other = make_track(name="Mine"), make_track(name="Theirs")
    own.organizers.add(track_organizer)
    people = []
    for track in (own, other):
        people.append(make_person())
        make_submission(make_team(people[-1]), track, state=SubmissionState.SUBMITTED)
    assert "Write to the teams of a track" in client.get("/organize/").text
    assert f'href="{PAGE}?track={own.slug}"' in client.get(f"/organize/tracks/{own.slug}/").text
    page = client.get(f"{PAGE}?track={own.slug}").text
    assert "Theirs" not in page
    assert "on_news" not in page
    assert "everyone" not in page
    data = {**MAIL, "audience": "in_track", "track": own.pk}
    client.post(PAGE, {**data, "seen": "1", "on_news": "on"})
    assert [one.to for one in mail.outbox] == [[people[0].email]]
    assert "From the organizers of Mine to the teams of this track.\n\nVersion 2" in mail.outbox[0].body
    assert not NewsItem.objects.exists()
    for rejected in ({"track": other.pk}, {"track": ""}, {"audience": "everyone"}, {"audience": "nobody"}):
        client.post(PAGE, {**data, **rejected, "seen": "1"})
    assert len(mail.outbox) == 1
    teams = [person.membership.team for person in people]
    assert client.get(f"/organize/teams/{teams[0].pk}/message/").status_code == 200
    assert client.get(f"/organize/teams/{teams[1].pk}/message/").status_code == 404


def test_a_track_organizer_who_competes_learns_nothing_by_counting(client: Client, track_organizer) -> None:
    track = make_track()
    track.organizers.add(track_organizer)
    make_submission(make_team(track_organizer), track, state=SubmissionState.SUBMITTED)
    page = client.post(PAGE, {**MAIL, "audience": "with_failed_run", "track": track.pk}).text
    assert "recipient</h2>" not in page
    assert "recipients</h2>" not in page


def test_announcing_needs_its_permission_and_a_known_method(client: Client, organizer) -> None:
    assert client.delete(PAGE).status_code == 405
    client.force_login(make_organizer("organize"))
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {**MAIL, "seen": "0"}).status_code == 403
    team = make_team()
    client.force_login(make_organizer("organize", "view_submission"))
    assert client.get(f"/organize/teams/{team.pk}/message/").status_code == 403
    assert "message/" not in client.get(f"/organize/teams/{team.pk}/").text
