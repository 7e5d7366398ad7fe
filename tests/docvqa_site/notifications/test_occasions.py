"""What people are notified of: deadlines, their team, and changes to the security of their account."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from django.test import Client

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import note_password_set, reset_second_factor, vouch_for_address
from docvqa_site.celery import DEADLINES_TASK, app
from docvqa_site.challenge.models import Phase
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.models import Notification
from docvqa_site.submissions.deadline_reminders import remind_of_deadlines
from docvqa_site.submissions.models import SubmissionState
from docvqa_site.teams import services
from docvqa_site.teams.keys import register_key, revoke_key
from docvqa_site.teams.models import Membership, Team
from tests.docvqa_site.accounts.codes import log_in
from tests.docvqa_site.factories import (
    make_organizer,
    make_submission,
    make_team,
    make_track,
    make_user,
    owner_of,
)

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

    def test_a_registered_team_is_reminded_before_its_first_draft(self) -> None:
        track = make_track(closes_at=DEADLINE)
        for state in ("waiting", "admitted", "declined"):
            member = make_user()
            make_team(member).registrations.create(track=track, created_by=member, state=state)
        assert remind_of_deadlines(before(days=5)) == 2

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
        assert "until Dec 1, 2026, 23:59 UTC" in mail.outbox[0].body
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
            "[PFL-DocVQA] Password changed"
        ]
        assert "Your password was changed" in client.get("/account/notifications/").content.decode()


class TestTeam:
    @pytest.fixture
    def team(self) -> Team:
        team = make_team(make_user("owner@example.org", name="Ada"), name="Engines")
        Membership.objects.create(team=team, user=make_user("ben@example.org", name="Ben"))
        return team

    def sent(self) -> list[tuple[str, str]]:
        return [(message.to[0], message.subject.removeprefix("[PFL-DocVQA] ")) for message in mail.outbox]

    def test_who_is_removed_learns_it_and_so_do_the_others(self, team: Team) -> None:
        guest = make_user("guest@example.org", name="Cleo")
        membership = Membership.objects.create(team=team, user=guest)
        services.remove_member(team, membership.pk, by=owner_of(team))
        assert self.sent() == [
            ("guest@example.org", "You were removed from Engines"),
            ("ben@example.org", "Cleo was removed from Engines"),
        ]

    def test_an_owner_learns_who_leaves_and_a_new_owner_that_they_are(self, team: Team) -> None:
        ben = team.memberships.get(user__name="Ben")
        services.hand_over(team, ben.pk, by=owner_of(team))
        services.leave(team.memberships.get(user__name="Ada").user)
        assert self.sent() == [
            ("ben@example.org", "You are now the owner of Engines"),
            ("ben@example.org", "Ada left Engines"),
        ]

    def test_members_learn_who_joined(self, team: Team) -> None:
        guest = make_user("guest@example.org", name="Cleo")
        vouch_for_address(guest)
        invitation = services.invite(team, "guest@example.org", by=owner_of(team))
        mail.outbox.clear()
        services.accept_invitation(invitation, guest)
        assert sorted(self.sent()) == [
            ("ben@example.org", "Cleo joined Engines"),
            ("owner@example.org", "Cleo joined Engines"),
        ]

    def test_all_learn_of_new_keys_and_the_others_of_revoked_ones_once(self, team: Team) -> None:
        public_key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
        for _ in range(2):
            key = register_key(team, public_key, name="", by=owner_of(team))
        for _ in range(2):
            revoke_key(key, by=owner_of(team))
        assert sorted(self.sent()) == [
            ("ben@example.org", "A signing key of Engines was revoked"),
            ("ben@example.org", "A signing key was added to your team, Engines"),
            ("owner@example.org", "A signing key was added to your team, Engines"),
        ]
