"""The keys that sign a team's training records: on the team's page, in the services, in the administration."""

import re

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.test import Client
from django.urls import reverse

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import AuditEntry
from docvqa_site.teams import keys
from docvqa_site.teams.models import Membership, Team, TeamKey
from docvqa_site.teams.selectors import current_keys
from evaluator.errors import ProblemError
from tests.docvqa_site.factories import make_key, make_team, make_user
from tests.docvqa_site.submissions.test_submission_races import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team()


@pytest.fixture
def member(client: Client, team: Team) -> User:
    """No owner: everyone who trains registers their own key."""
    user = make_user()
    Membership.objects.create(team=team, user=user)
    client.force_login(user)
    return user


@pytest.fixture
def owner(client: Client, team: Team) -> User:
    owner = team.memberships.get().user
    client.force_login(owner)
    return owner


def new_key() -> str:
    return Ed25519PrivateKey.generate().public_key().public_bytes_raw().hex()


def add(client: Client, public_key: str, name: str = "") -> str:
    form = {"public_key": public_key, "name": name}
    return client.post(reverse("teams:add_key"), form, follow=True).content.decode()


def revoke(client: Client, key: TeamKey) -> int:
    return client.post(reverse("teams:revoke_key", args=[key.pk])).status_code


class TestAdding:
    def test_a_pasted_key_is_listed_by_its_fingerprint(
        self, client: Client, team: Team, member: User
    ) -> None:
        public_key = new_key()
        page = add(client, f"  {public_key.upper()}\n", "gpu-1")
        key = team.keys.get()
        assert (key.public_key, key.name, key.added_by) == (public_key, "gpu-1", member)
        assert key.fingerprint == " ".join(re.findall("....", public_key[:16]))
        assert key.fingerprint in page
        assert "gpu-1" in page
        assert f'<a href="{reverse("submissions:list")}">your submissions and drafts</a>' in page
        entry = AuditEntry.objects.get(action="team_key.added")
        assert (entry.actor, entry.details["public_key"]) == (member, public_key)

    def test_the_same_key_is_registered_once(self, client: Client, team: Team, member: User) -> None:
        public_key = new_key()
        add(client, public_key, "first")
        add(client, public_key, "second")
        assert team.keys.get().name == "first"
        assert AuditEntry.objects.filter(action="team_key.added").count() == 1

    @pytest.mark.parametrize("text", ["abc", "0" * 63, "0" * 66, "x" * 64, "-----BEGIN PUBLIC KEY-----"])
    def test_what_is_no_key_is_rejected(self, client: Client, team: Team, member: User, text: str) -> None:
        assert "A public key has 64 hexadecimal digits." in add(client, text)
        assert not team.keys.exists()

    def test_a_key_of_another_team_is_rejected(self, client: Client, team: Team, member: User) -> None:
        other = make_key(make_team())
        assert "This key belongs to another team." in add(client, other.public_key)
        assert not team.keys.exists()

    def test_a_revoked_key_never_comes_back_to_its_team(
        self, client: Client, team: Team, member: User
    ) -> None:
        key = make_key(team)
        keys.revoke_key(key, by=key.added_by)
        assert "Your team revoked this key." in add(client, key.public_key)
        assert not current_keys(team).exists()

    def test_another_team_may_have_it_then(self, client: Client, team: Team, member: User) -> None:
        former = make_key(make_team())
        keys.revoke_key(former, by=former.added_by)
        add(client, former.public_key)
        assert current_keys(team).get().public_key == former.public_key

    def test_a_team_has_so_many_keys_at_most(
        self, team: Team, member: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(keys, "MAX_KEYS", 2)
        for _ in range(2):
            keys.register_key(team, new_key(), name="", by=member)
        with pytest.raises(ProblemError) as error:
            keys.register_key(team, new_key(), name="", by=member)
        assert error.value.problem.code == "E_TEAM_KEY"


class TestRevoking:
    def test_an_owner_revokes_a_key_and_the_row_stays(self, client: Client, team: Team, owner: User) -> None:
        key = make_key(team)
        assert revoke(client, key) == 302
        key.refresh_from_db()
        assert key.revoked_at is not None
        assert "revoked" in client.get(reverse("teams:mine")).content.decode()
        assert AuditEntry.objects.get(action="team_key.revoked").actor == owner

    def test_it_is_revoked_once(self, client: Client, team: Team, owner: User) -> None:
        key = make_key(team)
        revoke(client, key)
        assert revoke(client, key) == 404
        keys.revoke_key(key, by=owner)
        assert AuditEntry.objects.filter(action="team_key.revoked").count() == 1

    def test_a_member_who_is_no_owner_revokes_nothing(self, client: Client, team: Team, member: User) -> None:
        key = make_key(team)
        assert ">Revoke<" not in client.get(reverse("teams:mine")).content.decode()
        page = client.post(reverse("teams:revoke_key", args=[key.pk]), follow=True)
        assert "Only an owner of the team can do this." in page.content.decode()
        key.refresh_from_db()
        assert key.revoked_at is None


class TestAccess:
    def test_keys_of_other_teams_are_not_found(self, client: Client, member: User) -> None:
        key = make_key(make_team())
        assert revoke(client, key) == 404
        key.refresh_from_db()
        assert key.revoked_at is None
        assert key.fingerprint not in client.get(reverse("teams:mine")).content.decode()

    def test_the_public_page_of_a_team_shows_no_keys(self, team: Team) -> None:
        key = make_key(team)
        assert key.fingerprint not in Client().get(team.get_absolute_url()).content.decode()

    def test_without_a_team_there_are_no_keys(self, client: Client, team: Team) -> None:
        client.force_login(make_user())
        assert client.post(reverse("teams:add_key"), {"public_key": new_key()}).status_code == 404
        assert revoke(client, make_key(team)) == 404

    def test_nobody_anonymous_and_nothing_but_posts(self, client: Client, team: Team, member: User) -> None:
        addresses = [reverse("teams:add_key"), reverse("teams:revoke_key", args=[make_key(team).pk])]
        for address in addresses:
            assert client.get(address).status_code == 405
            assert "/login/" in Client().post(address)["Location"]

    def test_the_number_of_queries_does_not_grow_with_the_keys(
        self, client: Client, team: Team, member: User, django_assert_max_num_queries: object
    ) -> None:
        for _ in range(20):
            make_key(team)
        with django_assert_max_num_queries(7):  # type: ignore[operator]
            client.get(reverse("teams:mine"))

    def test_organizers_read_and_never_edit(self, client: Client, team: Team) -> None:
        key = make_key(team)
        client.force_login(make_user(is_staff=True, is_superuser=True))
        assert key.public_key in client.get("/admin/teams/teamkey/").content.decode()
        assert client.get("/admin/teams/teamkey/add/").status_code == 403
        assert client.post(f"/admin/teams/teamkey/{key.pk}/change/", {"name": "x"}).status_code == 403
        assert client.post(f"/admin/teams/teamkey/{key.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_one_of_two_teams_gets_a_key(self) -> None:
        public_key = new_key()

        def registering(team: Team) -> object:
            owner = team.memberships.get().user
            return lambda: keys.register_key(team, public_key, name="", by=owner)

        teams = [make_team() for _ in range(4)]
        assert at_once(*map(registering, teams)) == ["E_TEAM_KEY"] * 3
        assert TeamKey.objects.count() == 1

    def test_a_key_is_registered_once_however_often_it_is_sent(self) -> None:
        team, public_key = make_team(), new_key()
        owner = team.memberships.get().user
        assert at_once(*[lambda: keys.register_key(team, public_key, name="", by=owner)] * 4) == []
        assert TeamKey.objects.count() == 1
