import re
import threading
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import vouch_for_address
from docvqa_site.audit.models import AuditEntry
from docvqa_site.teams import services
from docvqa_site.teams.models import Invitation, Membership, Role, Team
from docvqa_site.teams.selectors import invitation_by_secret, membership_of, open_invitations, team_of
from evaluator.errors import ProblemError
from tests.docvqa_site.factories import make_team, make_user

pytestmark = pytest.mark.django_db


def make_member(team: Team, role: str = Role.MEMBER) -> Membership:
    return Membership.objects.create(team=team, user=make_user(), role=role)


def make_invited(team: Team, email: str = "ada@example.org") -> tuple[Invitation, User]:
    """An invitation and the person it is meant for, with a verified address."""
    invitation = services.invite(team, email, by=owner_of(team))
    person = make_user(email)
    vouch_for_address(person)
    return invitation, person


def owner_of(team: Team) -> User:
    return team.memberships.get(role=Role.OWNER).user


def test_who_creates_a_team_owns_it() -> None:
    user = make_user()
    team = services.create_team(user, "Analytical Engines", affiliation="London")
    assert team_of(user) == team
    assert (team.slug, team.affiliation) == ("analytical-engines", "London")
    membership = membership_of(user)
    assert membership is not None
    assert membership.is_owner
    assert AuditEntry.objects.get().action == "team.created"


def test_nobody_is_in_two_teams() -> None:
    user = make_user()
    make_team(user)
    with pytest.raises(ProblemError, match="already on a team"):
        services.create_team(user, "Second")


def test_names_are_taken_whatever_their_case() -> None:
    services.create_team(make_user(), "Engines")
    with pytest.raises(ProblemError, match="is taken"):
        services.create_team(make_user(), "ENGINES")


@pytest.mark.parametrize(
    ("names", "slugs"),
    [
        (["Ä b", "A b 👍 c", "A b c d"], ["a-b", "a-b-c", "a-b-c-d"]),
        (["队", "團"], ["team", "team-2"]),
        (["x" * 80, "x" * 79], ["x" * 70, "x" * 70 + "-2"]),
    ],
)
def test_every_team_has_an_address_of_its_own(names: list[str], slugs: list[str]) -> None:
    assert [services.create_team(make_user(), name).slug for name in names] == slugs


def test_an_invitation_is_mailed_with_a_link_that_works(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    team = make_team()
    with django_capture_on_commit_callbacks(execute=True):
        invitation = services.invite(team, "Ada@Example.org", by=owner_of(team))
    assert mail.outbox[0].to == ["ada@example.org"]
    assert str(mail.outbox[0].body).endswith("\n-- \nPFL-DocVQA benchmark\nhttp://127.0.0.1:8000\n")
    found = re.search(r"http://127\.0\.0\.1:8000/team/join/([\w-]+)/", str(mail.outbox[0].body))
    assert found is not None
    assert invitation_by_secret(found[1]) == invitation
    assert found[1] not in str(vars(invitation))


def test_the_invited_person_joins_as_a_member() -> None:
    team = make_team()
    invitation, ada = make_invited(team)
    membership = services.accept_invitation(invitation, ada)
    assert (membership.team, membership.role) == (team, Role.MEMBER)
    assert not open_invitations(team).exists()
    assert AuditEntry.objects.filter(action="team.joined", actor=ada).exists()


def test_an_invitation_is_for_its_address_only() -> None:
    invitation, _ = make_invited(make_team())
    other = make_user()
    vouch_for_address(other)
    with pytest.raises(ProblemError, match="a different address"):
        services.accept_invitation(invitation, other)


def test_an_address_must_be_verified_before_an_invitation_to_it_is_accepted() -> None:
    invitation = services.invite(team := make_team(), "ada@example.org", by=owner_of(team))
    with pytest.raises(ProblemError, match="a different address"):
        services.accept_invitation(invitation, make_user("ada@example.org"))


def test_an_invitation_works_once() -> None:
    invitation, ada = make_invited(make_team())
    services.accept_invitation(invitation, ada)
    services.leave(ada)
    with pytest.raises(ProblemError, match="can no longer be accepted"):
        services.accept_invitation(invitation, ada)


def test_a_revoked_invitation_is_void() -> None:
    team = make_team()
    invitation, ada = make_invited(team)
    services.revoke_invitation(invitation, by=owner_of(team))
    with pytest.raises(ProblemError, match="can no longer be accepted"):
        services.accept_invitation(invitation, ada)


def test_an_invitation_expires() -> None:
    invitation, ada = make_invited(make_team())
    Invitation.objects.update(expires_at=timezone.now())
    with pytest.raises(ProblemError, match="can no longer be accepted"):
        services.accept_invitation(invitation, ada)


def test_a_member_of_a_team_cannot_join_another() -> None:
    invitation, ada = make_invited(make_team())
    make_team(ada)
    with pytest.raises(ProblemError, match="already on a team"):
        services.accept_invitation(invitation, ada)


def test_inviting_again_voids_the_first_link() -> None:
    team = make_team()
    first, ada = make_invited(team)
    second = services.invite(team, "ada@example.org", by=owner_of(team))
    with pytest.raises(ProblemError, match="can no longer be accepted"):
        services.accept_invitation(first, ada)
    services.accept_invitation(second, ada)


def test_a_member_is_not_invited_again() -> None:
    team = make_team()
    member = make_member(team)
    with pytest.raises(ProblemError, match="already on the team"):
        services.invite(team, member.user.email, by=owner_of(team))


def test_invitations_are_limited_even_if_revoked() -> None:
    team = make_team()
    owner = owner_of(team)
    for number in range(services.INVITATIONS_PER_DAY):
        services.revoke_invitation(services.invite(team, f"p{number}@example.org", by=owner), by=owner)
    with pytest.raises(ProblemError, match="more tomorrow"):
        services.invite(team, "one-more@example.org", by=owner)
    Invitation.objects.update(created_at=timezone.now() - timedelta(days=1, seconds=1))
    services.invite(team, "one-more@example.org", by=owner)


def test_only_owners_invite_revoke_remove_hand_over_and_edit() -> None:
    team = make_team()
    invitation, _ = make_invited(team)
    member, other = make_member(team), make_member(team)
    with pytest.raises(ProblemError, match="Only an owner"):
        services.invite(team, "x@example.org", by=member.user)
    with pytest.raises(ProblemError, match="Only an owner"):
        services.revoke_invitation(invitation, by=member.user)
    with pytest.raises(ProblemError, match="Only an owner"):
        services.remove_member(team, other.pk, by=member.user)
    with pytest.raises(ProblemError, match="Only an owner"):
        services.hand_over(team, member.pk, by=member.user)
    with pytest.raises(ProblemError, match="Only an owner"):
        services.update_team(team, by=member.user, affiliation="x", website="", country="")
    assert team.memberships.count() == 3


def test_an_owner_of_another_team_can_do_nothing_here() -> None:
    team, elsewhere = make_team(), make_team()
    member = make_member(team)
    with pytest.raises(ProblemError, match="Only an owner"):
        services.remove_member(team, member.pk, by=owner_of(elsewhere))
    with pytest.raises(ProblemError, match="not on the team"):
        services.remove_member(elsewhere, member.pk, by=owner_of(elsewhere))


def test_the_last_owner_stays_while_others_are_there() -> None:
    team = make_team()
    make_member(team)
    with pytest.raises(ProblemError, match="only owner"):
        services.leave(owner_of(team))


def test_an_owner_leaves_after_handing_over() -> None:
    team = make_team()
    owner, member = owner_of(team), make_member(team)
    services.hand_over(team, member.pk, by=owner)
    assert owner_of(team) == member.user
    services.leave(owner)
    assert team_of(owner) is None


def test_the_last_person_leaves_and_the_team_stays() -> None:
    team = make_team()
    services.leave(owner_of(team))
    assert Team.objects.get() == team
    assert not Membership.objects.exists()


def test_one_of_two_owners_leaves() -> None:
    team = make_team()
    second = make_member(team, Role.OWNER)
    services.leave(second.user)
    assert team.memberships.count() == 1


def test_a_person_without_a_team_cannot_leave() -> None:
    with pytest.raises(ProblemError, match="not on a team"):
        services.leave(make_user())


def test_an_owner_removes_a_member_but_not_themselves() -> None:
    team = make_team()
    owner, member = owner_of(team), make_member(team)
    services.remove_member(team, member.pk, by=owner)
    assert team_of(member.user) is None
    with pytest.raises(ProblemError, match="Leave the team instead"):
        services.remove_member(team, team.memberships.get().pk, by=owner)


@pytest.mark.django_db(transaction=True)
def test_two_requests_at_once_put_a_person_into_one_team_only() -> None:
    user = make_user()
    start, rejections = threading.Barrier(2), []

    def create(name: str) -> None:
        start.wait()
        try:
            services.create_team(user, name)
        except ProblemError as error:
            rejections.append(str(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=create, args=[name]) for name in ("One", "Two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Team.objects.count() == 1
    assert len(rejections) == 1


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_leave_at_once_never_leave_a_member_without_an_owner() -> None:
    team = make_team()
    first = owner_of(team)
    second = make_member(team, Role.OWNER).user
    make_member(team)
    start, rejections = threading.Barrier(2), []

    def leave(user: User) -> None:
        start.wait()
        try:
            services.leave(user)
        except ProblemError as error:
            rejections.append(str(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=leave, args=[user]) for user in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert team.memberships.filter(role=Role.OWNER).count() == 1
    assert len(rejections) == 1
