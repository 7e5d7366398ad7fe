import re

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import vouch_for_address
from docvqa_site.audit.models import AuditEntry
from docvqa_site.teams import services
from docvqa_site.teams.models import Invitation, Membership, Role, Team
from docvqa_site.teams.selectors import team_of
from tests.docvqa_site.factories import make_team, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client) -> User:
    user = make_user()
    client.force_login(user)
    return user


@pytest.fixture
def team(owner: User) -> Team:
    return make_team(owner)


def add_member(team: Team) -> Membership:
    return Membership.objects.create(team=team, user=make_user())


def text(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined]


def test_without_a_team_the_page_says_what_to_do(client: Client, owner: User) -> None:
    page = text(client.get(reverse("teams:mine")))
    assert reverse("teams:create") in page
    assert owner.email in page


def test_a_team_is_created_in_the_browser(client: Client, owner: User) -> None:
    assert "The name can&#x27;t be changed" in text(client.get(reverse("teams:create"))).replace(
        "'", "&#x27;"
    )
    form = {"name": "Engines", "affiliation": "London", "website": "engines.example"}
    page = text(client.post(reverse("teams:create"), form, follow=True))
    assert "Engines" in page
    assert Team.objects.get().website == "https://engines.example"


def test_a_second_team_is_rejected(client: Client, team: Team) -> None:
    page = text(client.post(reverse("teams:create"), {"name": "Second"}, follow=True))
    assert "You are already on a team." in page
    assert Team.objects.count() == 1


def test_a_name_that_differs_in_case_only_is_explained(client: Client, owner: User) -> None:
    make_team(name="Engines")
    assert "This name is taken or too similar to another team&#x27;s." in text(
        client.post(reverse("teams:create"), {"name": "engines"})
    )


def test_everyone_sees_names_and_nobody_sees_addresses(team: Team) -> None:
    member = add_member(team)
    page = text(Client().get(team.get_absolute_url()))
    assert team.name in page
    assert member.user.name in page
    assert member.user.email not in page


def test_a_missing_team_is_not_found(client: Client) -> None:
    assert client.get("/teams/nobody/").status_code == 404


def test_members_see_addresses_but_no_buttons_for_owners(client: Client, team: Team) -> None:
    member = add_member(team)
    services.invite(team, "guest@example.org", by=team.memberships.get(role=Role.OWNER).user)
    client.force_login(member.user)
    page = text(client.get(reverse("teams:mine")))
    assert member.user.email in page
    assert "guest@example.org" not in page
    assert "Make owner" not in page
    assert "Send an invitation" not in page


def test_the_whole_way_of_an_invitation(
    client: Client, team: Team, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        page = text(client.post(reverse("teams:invite"), {"email": "ada@example.org"}, follow=True))
    assert "We&#x27;ve sent an invitation to ada@example.org." in page
    found = re.search(r"/team/join/[\w-]+/", str(mail.outbox[0].body))
    assert found is not None

    guest = Client()
    assert guest.get(found[0]).status_code == 302
    ada = make_user("ada@example.org")
    vouch_for_address(ada)
    guest.force_login(ada)
    assert f"Join {team}?" in text(guest.get(found[0]))
    assert team_of(ada) is None
    assert f"Welcome to {team}." in text(guest.post(found[0], follow=True))
    assert team_of(ada) == team
    assert guest.get(found[0]).status_code == 404


def link_of(invitation: Invitation, secret: str = "a-secret") -> str:
    invitation.digest = Invitation.digest_of(secret)
    invitation.save()
    return reverse("teams:invitation", args=[secret])


def test_a_stolen_link_reveals_and_grants_nothing(client: Client, team: Team, owner: User) -> None:
    link = link_of(services.invite(team, "ada@example.org", by=owner))
    thief = Client()
    outsider = make_user()
    vouch_for_address(outsider)
    thief.force_login(outsider)
    response = thief.post(link)
    assert response.status_code == 403
    assert team.name not in text(response)
    assert "ada@example.org" not in text(response)
    assert team_of(outsider) is None


def test_a_member_of_another_team_must_leave_it_first(team: Team, owner: User) -> None:
    link = link_of(services.invite(team, "ada@example.org", by=owner))
    ada = make_user("ada@example.org")
    vouch_for_address(ada)
    present = make_team(ada)
    guest = Client()
    guest.force_login(ada)
    assert f"You're already on the team {present}." in text(guest.get(link))
    assert "already on a team" in text(guest.post(link, follow=True))


def test_a_wrong_address_is_explained(client: Client, team: Team) -> None:
    page = text(client.post(reverse("teams:invite"), {"email": "not an address"}))
    assert "Enter a valid email address." in page
    assert not Invitation.objects.exists()


def test_an_invitation_is_revoked_with_a_button(client: Client, team: Team, owner: User) -> None:
    invitation = services.invite(team, "ada@example.org", by=owner)
    page = text(client.post(reverse("teams:revoke", args=[invitation.pk]), follow=True))
    assert "The invitation to ada@example.org is revoked." in page


def test_a_member_is_removed_with_a_button(client: Client, team: Team) -> None:
    member = add_member(team)
    page = text(client.post(reverse("teams:remove", args=[member.pk]), follow=True))
    assert f"{member.user} is no longer on the team." in page


def test_the_team_is_handed_over_with_a_button(client: Client, team: Team, owner: User) -> None:
    member = add_member(team)
    client.post(reverse("teams:hand_over", args=[member.pk]))
    assert team.memberships.get(role=Role.OWNER).user == member.user


def test_the_only_owner_learns_why_leaving_is_not_possible(client: Client, team: Team) -> None:
    add_member(team)
    assert "Make another member the owner" in text(client.post(reverse("teams:leave"), follow=True))


def test_a_team_of_one_is_left(client: Client, team: Team, owner: User) -> None:
    assert "only the organizers can let you back in" in text(client.get(reverse("teams:mine")))
    assert f"You have left {team}." in text(client.post(reverse("teams:leave"), follow=True))
    assert team_of(owner) is None


def test_an_owner_changes_the_details_but_not_the_name(client: Client, team: Team) -> None:
    client.post(reverse("teams:edit"), {"affiliation": "Paris", "website": "", "name": "Other"})
    changed = Team.objects.get()
    assert (changed.affiliation, changed.name) == ("Paris", team.name)
    assert AuditEntry.objects.get(action="team.updated").details["affiliation"] == "Paris"


def test_attempts_of_a_member_are_answered_with_the_rule(client: Client, team: Team, owner: User) -> None:
    member, other = add_member(team), add_member(team)
    invitation = services.invite(team, "ada@example.org", by=owner)
    client.force_login(member.user)
    for view, arguments, form in [
        ("invite", [], {"email": "x@example.org"}),
        ("remove", [other.pk], {}),
        ("hand_over", [member.pk], {}),
        ("revoke", [invitation.pk], {}),
    ]:
        page = text(client.post(reverse(f"teams:{view}", args=arguments), form, follow=True))
        assert "Only an owner of the team can do this." in page
    assert client.get(reverse("teams:edit")).status_code == 404


def test_other_teams_people_and_invitations_are_out_of_reach(client: Client, team: Team) -> None:
    elsewhere = make_team()
    outsider = add_member(elsewhere)
    theirs = services.invite(elsewhere, "ada@example.org", by=elsewhere.memberships.get(role=Role.OWNER).user)
    client.post(reverse("teams:remove", args=[outsider.pk]))
    client.post(reverse("teams:hand_over", args=[outsider.pk]))
    assert client.post(reverse("teams:revoke", args=[theirs.pk])).status_code == 404
    assert elsewhere.memberships.count() == 2
    assert team.memberships.get().role == Role.OWNER
    theirs.refresh_from_db()
    assert theirs.revoked_at is None


CHANGES = ["invite", "leave", "remove", "hand_over", "revoke"]


def address(view: str) -> str:
    return reverse(f"teams:{view}", args=[] if view in {"invite", "leave"} else [1])


@pytest.mark.parametrize("view", CHANGES)
def test_changes_need_a_login(view: str) -> None:
    response = Client().post(address(view))
    assert response.status_code == 302
    assert response["Location"].startswith("/account/login/")


@pytest.mark.parametrize("view", CHANGES)
def test_changes_need_a_post(client: Client, team: Team, view: str) -> None:
    assert client.get(address(view)).status_code == 405


@pytest.mark.parametrize("view", ["invite", "remove", "hand_over", "revoke"])
def test_without_a_team_there_is_nothing_to_change(client: Client, owner: User, view: str) -> None:
    assert client.post(address(view)).status_code == 404


def test_the_page_costs_the_same_for_a_large_team(
    client: Client, team: Team, owner: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(10):
        add_member(team)
        services.invite(team, f"guest{number}@example.org", by=owner)
    with django_assert_max_num_queries(8):
        client.get(reverse("teams:mine"))
    with django_assert_max_num_queries(8):
        client.get(team.get_absolute_url())


def test_an_open_invitation_to_a_verified_address_is_shown_and_accepted_without_its_link(
    client: Client, owner: User
) -> None:
    inviting = make_team(name="Compilers")
    invitation = services.invite(inviting, owner.email, by=inviting.memberships.get().user)
    assert "Join Compilers?" not in text(client.get(reverse("teams:mine")))  # the address isn't verified yet
    assert client.post(reverse("teams:join", args=[invitation.pk])).status_code == 404
    vouch_for_address(owner)
    assert "Join Compilers?" in text(client.get(reverse("teams:mine")))
    page = text(client.post(reverse("teams:join", args=[invitation.pk]), follow=True))
    assert "Welcome to Compilers." in page
    assert team_of(owner) == inviting


def test_invitations_to_others_and_those_that_ended_are_not_shown(client: Client, owner: User) -> None:
    inviting = make_team(name="Compilers")
    by = inviting.memberships.get().user
    vouch_for_address(owner)
    other = services.invite(inviting, "somebody@else.example", by=by)
    revoked = services.invite(inviting, owner.email, by=by)
    services.revoke_invitation(revoked, by=by)
    assert "Join Compilers?" not in text(client.get(reverse("teams:mine")))
    for invitation in (other, revoked):
        assert client.post(reverse("teams:join", args=[invitation.pk])).status_code == 404


def test_what_cannot_be_taken_back_asks_first(client: Client, team: Team) -> None:
    add_member(team)
    page = text(client.get(reverse("teams:mine")))
    assert page.count("Yes, make owner") == page.count("Yes, remove") == page.count("Yes, leave") == 1
