"""The quota follows people through teams: whoever founds team after team has no more submissions than in one."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.submissions.selectors import quota_of
from docvqa_site.teams import services
from docvqa_site.teams.models import Membership, PastMembership, Team
from evaluator.errors import ProblemError
from tests.docvqa_site.factories import make_submission, make_team, make_track, make_user

pytestmark = pytest.mark.django_db

NOW = timezone.now()


@pytest.fixture
def track() -> Track:
    return make_track(submissions_per_day=5)


def submitted(team: Team, track: Track, hours_ago: float = 1, **fields: object) -> Submission:
    at = NOW - timedelta(hours=hours_ago)
    return make_submission(team, track, state=SubmissionState.SUBMITTED, submitted_at=at, **fields)


def was_member(user: User, team: Team, since: float, until: float) -> None:
    """In the team from `since` to `until` hours ago."""
    PastMembership.objects.create(
        user=user, team=team, role="member", joined_at=_ago(since), left_at=_ago(until)
    )


def join(user: User, team: Team, hours_ago: float = 0) -> None:
    Membership.objects.create(user=user, team=team, joined_at=_ago(hours_ago))


def _ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def test_three_teams_of_one_person_have_one_quota(track: Track) -> None:
    """Fifteen submissions in a day were possible so."""
    person, made = make_user(), 0
    for number in range(3):
        team = services.create_team(person, f"Team {'abc'[number]}")
        for _ in range(quota_of(team, track, timezone.now()).left):
            make_submission(team, track, state=SubmissionState.SUBMITTED, created_by=person)
            made += 1
        services.leave(person)
    assert made == 5


def test_what_a_member_used_in_an_earlier_team_counts(track: Track) -> None:
    person, former, team = make_user(), make_team(), make_team()
    submitted(former, track, 2)
    submitted(former, track, 3)
    was_member(person, former, since=4, until=1)
    assert quota_of(team, track, NOW).used == 0
    join(person, team)
    assert quota_of(team, track, NOW).used == 2


def test_what_the_earlier_team_did_before_and_after_them_does_not(track: Track) -> None:
    person, former, team = make_user(), make_team(), make_team()
    submitted(former, track, 9)
    submitted(former, track, 2)
    was_member(person, former, since=8, until=3)
    join(person, team)
    assert quota_of(team, track, NOW).used == 0


def test_a_submission_counts_once_however_many_saw_it(track: Track) -> None:
    former, team = make_team(), make_team()
    submitted(former, track, 2)
    for _ in range(3):
        person = make_user()
        was_member(person, former, since=4, until=1)
        join(person, team)
    submitted(team, track, 1)
    assert quota_of(team, track, NOW).used == 2


def test_refunds_other_tracks_and_yesterday_do_not_count(track: Track) -> None:
    person, former, team = make_user(), make_team(), make_team()
    submitted(former, track, 2, refunded_at=NOW)
    submitted(former, make_track(), 2)
    submitted(former, track, 25)
    was_member(person, former, since=48, until=1)
    join(person, team)
    assert quota_of(team, track, NOW).used == 0


def test_a_refusal_names_when_the_next_is_possible(track: Track) -> None:
    person, former, team = make_user(), make_team(), make_team()
    for hours in (20, 5, 4, 3, 2):
        submitted(former, track, hours)
    was_member(person, former, since=30, until=1)
    join(person, team)
    quota = quota_of(team, track, NOW)
    assert quota.left == 0
    assert quota.next_slot == NOW + timedelta(hours=4)


class TestFounding:
    def test_the_fourth_team_within_thirty_days_waits(self) -> None:
        person = make_user()
        for name in ("Red", "Green", "Blue"):
            services.create_team(person, name)
            services.leave(person)
        first = Team.objects.order_by("created_at").first()
        assert first is not None
        with pytest.raises(ProblemError, match="E_TEAM_FOUNDING") as error:
            services.create_team(person, "Yellow")
        possible = first.created_at + timedelta(days=30)
        assert f"{possible:%Y-%m-%d %H:%M}" in error.value.problem.next_step
        Team.objects.filter(pk=first.pk).update(created_at=timezone.now() - timedelta(days=31))
        services.create_team(person, "Yellow")

    def test_a_team_that_everybody_left_without_a_submission_frees_its_name(self) -> None:
        team = services.create_team(make_user(), "Engines")
        invitation = services.invite(team, "guest@example.org", by=team.memberships.get().user)
        services.leave(team.memberships.get().user)
        invitation.refresh_from_db()
        assert invitation.revoked_at is not None
        assert services.create_team(make_user(), "Engines").name == "Engines"

    def test_a_name_on_the_boards_stays_taken(self, track: Track) -> None:
        team = services.create_team(make_user(), "Engines")
        submitted(team, track, created_by=team.memberships.get().user)
        services.leave(team.memberships.get().user)
        with pytest.raises(ProblemError, match="E_TEAM_NAME"):
            services.create_team(make_user(), "Engines")
