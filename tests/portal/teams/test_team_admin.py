import io

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from portal.audit.models import AuditEntry
from portal.teams.models import Membership, Team
from portal.teams.selectors import team_of
from tests.portal.factories import make_team, make_user

pytestmark = pytest.mark.django_db


def test_an_organizer_adds_and_removes_members_and_the_trail_says_so(client: Client) -> None:
    organizer = make_user(is_staff=True, is_superuser=True)
    client.force_login(organizer)
    team, newcomer = make_team(), make_user()
    owner = team.memberships.get()
    form = {
        "name": team.name,
        "memberships-TOTAL_FORMS": "2",
        "memberships-INITIAL_FORMS": "1",
        "memberships-0-id": str(owner.pk),
        "memberships-0-team": str(team.pk),
        "memberships-0-user": str(owner.user.pk),
        "memberships-0-role": "owner",
        "memberships-0-DELETE": "on",
        "memberships-1-team": str(team.pk),
        "memberships-1-user": str(newcomer.pk),
        "memberships-1-role": "owner",
    }
    assert client.post(reverse("admin:teams_team_change", args=[team.pk]), form).status_code == 302
    assert Membership.objects.get().user == newcomer
    added, deleted = (
        AuditEntry.objects.get(action="membership.added"),
        AuditEntry.objects.get(action="membership.deleted"),
    )
    assert added.details["changes"]["user"] == [None, newcomer.pk]
    assert deleted.object_id == str(owner.pk)
    assert added.actor == deleted.actor == organizer


def test_teams_are_not_deleted(client: Client) -> None:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    team = make_team()
    assert client.post(reverse("admin:teams_team_delete", args=[team.pk]), {"post": "yes"}).status_code == 403


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command(*arguments, stdout=output)
    return output.getvalue().strip()


def test_the_command_makes_a_team_once() -> None:
    ada = make_user("ada@example.org")
    assert (
        run("create_team", "Engines", "--owner", "Ada@example.org")
        == "Made the team Engines, owned by ada@example.org."
    )
    assert run("create_team", "Engines", "--owner", "ada@example.org") == "The team Engines exists already."
    assert team_of(ada) == Team.objects.get()


def test_the_command_names_what_is_in_the_way() -> None:
    make_user("ada@example.org")
    with pytest.raises(CommandError, match=r"nobody@example\.org"):
        run("create_team", "Engines", "--owner", "nobody@example.org")
    run("create_team", "Engines", "--owner", "ada@example.org")
    with pytest.raises(CommandError, match="already in a team"):
        run("create_team", "Second", "--owner", "ada@example.org")
