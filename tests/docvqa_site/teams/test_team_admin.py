import io

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from docvqa_site.audit.models import AuditEntry
from docvqa_site.teams import services
from docvqa_site.teams.models import Invitation, Membership, Role, Team
from docvqa_site.teams.selectors import current_keys, open_invitations, team_of
from tests.docvqa_site.admin_actions import run as run_action
from tests.docvqa_site.factories import (
    make_key,
    make_organizer,
    make_team,
    make_user,
    owner_of,
    sign_in_organizer,
)

pytestmark = pytest.mark.django_db

MEMBERS = "/admin/teams/membership/"


class TestMembers:
    """Organizers change teams under the rules of the teams, and the teams are notified."""

    @pytest.fixture
    def team(self, client: Client) -> Team:
        """A team with an inactive owner and a member; an organizer is signed in."""
        team = make_team(make_user("owner@example.org", is_active=False))
        Membership.objects.create(team=team, user=make_user("member@example.org"))
        sign_in_organizer(client, "view_membership", "change_membership", "view_team", "change_team")
        return team

    def test_an_organizer_gives_a_stuck_team_another_owner(self, client: Client, team: Team) -> None:
        page = run_action(client, MEMBERS, "make_owner", team.memberships.get(role=Role.MEMBER).pk)
        assert "done" in page.text
        assert owner_of(team).email == "member@example.org"
        assert AuditEntry.objects.get(action="team.handed_over").actor == page.wsgi_request.user
        assert [one.to for one in mail.outbox] == [["member@example.org"]]
        assert "An organizer made you the owner" in mail.outbox[0].body

    def test_an_inactive_account_is_made_no_owner(self, client: Client, team: Team) -> None:
        page = run_action(client, MEMBERS, "make_owner", team.memberships.get(role=Role.OWNER).pk)
        assert "is inactive. Choose another member." in page.text

    def test_the_only_owner_is_removed_last_and_with_what_belongs_to_the_team(
        self, client: Client, team: Team
    ) -> None:
        key, (owner, member) = make_key(team), team.memberships.all()
        services.invite(team, "new@example.org", by=owner.user)
        page = run_action(client, MEMBERS, "remove", owner.pk)
        assert "is the team&#x27;s only owner. Make another member the owner first." in page.text
        for membership in (member, owner):
            run_action(client, MEMBERS, "remove", membership.pk)
        assert not team.memberships.exists()
        assert not current_keys(team).filter(pk=key.pk).exists()
        assert not open_invitations(team).exists()
        assert AuditEntry.objects.filter(action="team.member_removed").count() == 2

    def test_the_page_of_a_team_changes_no_members(self, client: Client, team: Team) -> None:
        owner = team.memberships.get(role=Role.OWNER)
        form = {
            "name": "Renamed",
            "memberships-TOTAL_FORMS": "1",
            "memberships-INITIAL_FORMS": "1",
            "memberships-0-id": str(owner.pk),
            "memberships-0-DELETE": "on",
        }
        assert client.post(reverse("admin:teams_team_change", args=[team.pk]), form).status_code == 302
        team.refresh_from_db()
        assert (team.name, team.memberships.count()) == ("Renamed", 2)

    def test_an_organizer_invites_in_place_of_the_owner(self, client: Client, team: Team) -> None:
        address = reverse("admin:team_invite", args=[team.pk])
        assert client.get(address).status_code == 403
        sign_in_organizer(client, "view_team", "add_invitation")
        assert client.get(address).status_code == 200
        page = client.post(address, {"email": "member@example.org"})
        assert "is already on the team" in page.text
        client.post(address, {"email": "new@example.org"})
        assert Invitation.objects.get().email == "new@example.org"
        assert mail.outbox[-1].to == ["new@example.org"]

    @pytest.mark.parametrize("action", ["make_owner", "remove"])
    def test_nothing_changes_without_the_permission(self, client: Client, team: Team, action: str) -> None:
        client.force_login(make_organizer("view_membership"))
        run_action(client, MEMBERS, action, *team.memberships.values_list("pk", flat=True))
        assert sorted(team.memberships.values_list("role", flat=True)) == ["member", "owner"]


def test_an_organizer_revokes_a_leaked_key_and_an_invitation(client: Client) -> None:
    team = make_team()
    key, invitation = make_key(team), services.invite(team, "new@example.org", by=owner_of(team))
    sign_in_organizer(client, "view_teamkey", "change_teamkey", "view_invitation", "change_invitation")
    run_action(client, "/admin/teams/teamkey/", "revoke", key.pk)
    run_action(client, "/admin/teams/invitation/", "revoke", invitation.pk)
    assert not current_keys(team).exists()
    assert not open_invitations(team).exists()
    assert "An organizer revoked the key" in mail.outbox[-1].body


def test_teams_are_neither_added_nor_deleted(client: Client) -> None:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    team = make_team()
    assert client.get(reverse("admin:teams_team_add")).status_code == 403
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
    with pytest.raises(CommandError, match="already on a team"):
        run("create_team", "Second", "--owner", "ada@example.org")
