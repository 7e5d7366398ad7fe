"""What people are notified of: deadlines, and changes to the security of their account."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from django.test import Client

from portal.accounts.models import User
from portal.accounts.services import note_password_set, reset_second_factor, vouch_for_address
from portal.celery import DEADLINES_TASK, app
from portal.challenge.models import Phase
from portal.notifications.kinds import Kind
from portal.notifications.models import Notification
from portal.submissions.deadline_reminders import remind_of_deadlines
from portal.submissions.models import SubmissionState
from tests.portal.accounts.codes import log_in
from tests.portal.factories import make_organizer, make_submission, make_team, make_track, make_user

pytestmark = pytest.mark.django_db

DEADLINE = datetime(2026, 12, 1, 23, 59, tzinfo=UTC)
PASSWORD = "rose-hill-42-x"


def before(**span: int) -> datetime:
    return DEADLINE - timedelta(**span)


class TestDeadlines:
    @pytest.fixture
    def member(self) -> User:
        member = make_user("ada@example.org")
        track = make_track(name="Track 1", slug="track-1", closes_at=DEADLINE)
        team = make_team(member)
        make_submission(team, track)
        make_submission(team, track, state=SubmissionState.SUBMITTED)
        return member

    def test_who_takes_part_is_reminded_a_week_and_a_day_before_and_once_each(self, member: User) -> None:
        make_team()
        moments = [
            before(days=8),
            before(days=7),
            before(days=5),
            before(hours=24),
            before(hours=1),
            before(days=-1),
        ]
        assert [remind_of_deadlines(moment) for moment in moments] == [0, 1, 0, 1, 0, 0]
        subjects = [sent.subject for sent in mail.outbox]
        assert subjects == [f"[PFL-DocVQA] Track 1 closes within a {span}" for span in ("week", "day")]
        assert mail.outbox[0].to == ["ada@example.org"]
        assert "until 1 Dec 2026, 23:59 UTC" in mail.outbox[0].body
        assert {one.page for one in Notification.objects.all()} == {"/tracks/track-1/"}

    def test_a_deadline_that_is_moved_is_another_one(self, member: User) -> None:
        remind_of_deadlines(before(days=3))
        Phase.objects.update(ends_at=DEADLINE + timedelta(days=2))
        assert remind_of_deadlines(before(days=3)) == 1

    def test_a_withdrawn_submission_is_no_part_in_a_track(self, member: User) -> None:
        member.membership.team.submissions.update(state=SubmissionState.WITHDRAWN)
        assert remind_of_deadlines(before(days=3)) == 0

    def test_the_clock_calls_it_every_hour(self) -> None:
        app.loader.import_default_modules()
        assert DEADLINES_TASK in app.tasks
        (schedule,) = [entry for entry in app.conf.beat_schedule.values() if entry["task"] == DEADLINES_TASK]
        assert schedule["schedule"] == 3600


class TestSecurity:
    def test_an_organizers_change_is_mailed_and_shown(self) -> None:
        person, organizer = make_user("ada@example.org"), make_organizer()
        note_password_set(person, actor=organizer)
        reset_second_factor(person, actor=organizer)
        assert [sent.to for sent in mail.outbox] == [["ada@example.org"]] * 2
        assert {one.kind for one in Notification.objects.filter(user=person)} == {Kind.SECURITY}

    def test_a_new_password_is_shown_and_mailed_once(self, client: Client) -> None:
        person = make_user("ada@example.org", PASSWORD)
        vouch_for_address(person)
        log_in(client, person, PASSWORD)
        form = {"oldpassword": PASSWORD, "password1": "new-hill-43-y", "password2": "new-hill-43-y"}
        client.post("/account/password/change/", form)
        assert [sent.subject for sent in mail.outbox if "Password" in sent.subject] == [
            "[PFL-DocVQA] Password Changed"
        ]
        assert "Your password was changed" in client.get("/account/notifications/").content.decode()
