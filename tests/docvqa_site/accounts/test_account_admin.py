import pytest
from django.contrib.auth.models import Group, Permission
from django.core import mail
from django.test import Client
from django.urls import reverse, reverse_lazy

from docvqa_site.accounts.models import ApiToken, User
from docvqa_site.accounts.selectors import owns_verified_address
from docvqa_site.accounts.services import authenticate_token, create_token, vouch_for_address
from docvqa_site.audit.models import AuditEntry
from tests.docvqa_site.accounts.codes import code_of, confirm_again
from tests.docvqa_site.admin_actions import choose, confirm, run
from tests.docvqa_site.factories import make_organizer, make_user

pytestmark = pytest.mark.django_db


OWN = "rose-hill-42-x"
NEW = {"usable_password": "true", "password1": "new-hill-43-y", "password2": "new-hill-43-y"}
PEOPLE = reverse_lazy("admin:accounts_user_changelist")


def page_of(user: User) -> str:
    return reverse("admin:accounts_user_change", args=[user.pk])


def password_page_of(user: User) -> str:
    return reverse("admin:auth_user_password_change", args=[user.pk])


@pytest.fixture
def organizer(client: Client) -> User:
    """A superuser who has just confirmed who they are."""
    user = make_user("root@example.org", OWN, is_staff=True, is_superuser=True)
    vouch_for_address(user)
    client.force_login(user)
    confirm_again(client, OWN)
    return user


@pytest.fixture
def helpdesk(client: Client) -> User:
    """Staff who may change people, and nothing else; they have just confirmed who they are."""
    user = make_organizer("view_user", "change_user", email="help@example.org", password=OWN)
    vouch_for_address(user)
    client.force_login(user)
    confirm_again(client, OWN)
    return user


def test_an_organizer_adds_a_person_by_e_mail(client: Client, organizer: User) -> None:
    form = {
        "email": "Ada@Example.org",
        "name": "Ada",
        "usable_password": "true",
        "password1": "rose-hill-42-x",
        "password2": "rose-hill-42-x",
    }
    response = client.post(reverse("admin:accounts_user_add"), form)
    assert response.status_code == 302
    ada = User.objects.get(email="ada@example.org")
    assert owns_verified_address(ada, "ada@example.org")
    entry = AuditEntry.objects.get(action="user.added")
    assert entry.actor == organizer
    assert "rose-hill" not in str(entry.details)


def test_a_change_of_rights_is_recorded_with_old_and_new(client: Client, organizer: User) -> None:
    ada = make_user()
    client.post(page_of(ada), {"name": ada.name, "is_staff": "on", "is_active": "on"})
    assert AuditEntry.objects.get(action="user.changed").details == {"changes": {"is_staff": [False, True]}}


class TestCeiling:
    """Nobody changes an account with more rights than their own; only superusers change rights."""

    @pytest.mark.parametrize("rights", [{"is_superuser": True}, {}], ids=["superuser", "more permissions"])
    def test_an_account_with_more_rights_is_only_looked_at(
        self, client: Client, helpdesk: User, rights: dict[str, bool]
    ) -> None:
        # An inactive account keeps its rights, for whoever activates it.
        other = make_organizer("change_track", is_active=bool(rights), **rights)
        assert client.get(page_of(other)).status_code == 200
        assert client.post(page_of(other), {"name": "Mine", "is_active": "on"}).status_code == 403
        assert client.post(password_page_of(other), NEW).status_code == 403
        page = run(client, str(PEOPLE), "reset_second_factors", other.pk)
        assert "has more rights than you" in page.text
        before, after = (other.name, other.password), User.objects.get(pk=other.pk)
        assert (after.name, after.password) == before
        assert after.has_second_factor

    def test_an_organizer_resets_a_second_factor_that_was_lost(self, client: Client, helpdesk: User) -> None:
        ada = make_user(second_factor=True)
        page = run(client, str(PEOPLE), "reset_second_factors", ada.pk)
        assert "are removed" in page.text
        assert not User.objects.get(pk=ada.pk).has_second_factor
        assert AuditEntry.objects.get(action="user.second_factor_reset").object_id == str(ada.pk)

    def test_rights_are_read_only_for_who_is_no_superuser(self, client: Client, helpdesk: User) -> None:
        for user in (helpdesk, make_user()):
            form = {
                "name": "Renamed",
                "is_active": "on",
                "is_staff": "on",
                "is_superuser": "on",
                "groups": "1",
            }
            assert client.post(page_of(user), form).status_code == 302
            user = User.objects.get(pk=user.pk)
            assert (user.name, user.is_superuser, user.groups.count()) == ("Renamed", False, 0)
        assert not User.objects.exclude(pk=helpdesk.pk).get(name="Renamed").is_staff

    def test_groups_are_changed_by_superusers_only(self, client: Client) -> None:
        group = Group.objects.create(name="Helpers")
        staff = make_organizer("view_group", "change_group", "delete_group", "add_group")
        staff.groups.add(group)
        client.force_login(staff)
        change = reverse("admin:auth_group_change", args=[group.pk])
        assert client.get(change).status_code == 200
        right = Permission.objects.get(codename="change_track")
        assert client.post(change, {"permissions": [right.pk]}).status_code == 403
        assert client.post(reverse("admin:auth_group_add"), {"name": "Mine"}).status_code == 403
        delete = reverse("admin:auth_group_delete", args=[group.pk])
        assert client.post(delete, {"post": "yes"}).status_code == 403
        assert not group.permissions.exists()

    def test_what_a_superuser_changes_of_a_group_is_in_the_trail(
        self, client: Client, organizer: User
    ) -> None:
        group, right = Group.objects.create(name="Helpers"), Permission.objects.get(codename="change_track")
        client.post(reverse("admin:auth_group_change", args=[group.pk]), {"permissions": [right.pk]})
        entry = AuditEntry.objects.get(action="group.changed")
        assert entry.details == {"changes": {"permissions": [[], [right.pk]]}}
        make_user().groups.add(group)
        delete = reverse("admin:auth_group_delete", args=[group.pk])
        assert client.post(delete, {"post": "yes"}).status_code == 403
        group.user_set.clear()
        assert client.post(delete, {"post": "yes"}).status_code == 302
        assert AuditEntry.objects.get(action="group.deleted").details == {"was": "Helpers"}


@pytest.mark.parametrize("kept", [["is_active"], ["is_superuser"]], ids=["demoted", "deactivated"])
def test_the_last_superuser_stays_one(client: Client, organizer: User, kept: list[str]) -> None:
    make_user(is_superuser=True, is_active=False)
    form = {"name": organizer.name, "is_staff": "on", **dict.fromkeys(kept, "on")}
    page = client.post(page_of(organizer), form)
    assert "This is the last active superuser" in page.text
    make_user(is_superuser=True)
    assert client.post(page_of(organizer), form).status_code == 302


class TestAskedAgain:
    @pytest.fixture
    def late(self, client: Client) -> User:
        """A superuser who has confirmed nothing since the login."""
        user = make_user("root@example.org", OWN, is_staff=True, is_superuser=True)
        vouch_for_address(user)
        client.force_login(user)
        return user

    def test_a_change_of_rights_waits_for_the_password_and_a_code(self, client: Client, late: User) -> None:
        ada = make_user()
        form = {"name": ada.name, "is_staff": "on", "is_active": "on"}
        asked = client.post(page_of(ada), form)
        assert asked["Location"].startswith(reverse("account_reauthenticate"))
        asked = client.post(asked["Location"], {"password": OWN, "next": page_of(ada)})
        assert asked["Location"].startswith(reverse("mfa_reauthenticate"))
        assert not User.objects.get(pk=ada.pk).is_staff
        client.post(asked["Location"], {"code": code_of(), "next": page_of(ada)})
        assert User.objects.get(pk=ada.pk).is_staff

    def test_so_do_a_password_a_reset_and_a_group(self, client: Client, late: User) -> None:
        ada, group = make_user(is_staff=True), Group.objects.create(name="Helpers")
        for attempt in (
            lambda: client.get(password_page_of(ada)),
            lambda: client.post(password_page_of(ada), NEW),
            lambda: confirm(client, str(PEOPLE), choose(client, str(PEOPLE), "reset_second_factors", ada.pk)),
            lambda: client.post(reverse("admin:auth_group_add"), {"name": "Mine"}),
            lambda: client.post(reverse("admin:auth_group_delete", args=[group.pk]), {"post": "yes"}),
        ):
            response = attempt()
            path = response.request["PATH_INFO"] if response.status_code == 200 else response["Location"]
            assert path.startswith(reverse("account_reauthenticate"))
        # A password that was typed is stored nowhere.
        assert NEW["password1"] not in str(dict(client.session))
        assert User.objects.get(pk=ada.pk).has_second_factor
        assert Group.objects.filter(name="Helpers").exists()


def test_a_deactivated_account_loses_its_sessions_and_tokens_for_good(
    client: Client, organizer: User
) -> None:
    ada = make_user()
    _, secret = create_token(ada, "cluster")
    hers = Client()
    hers.force_login(ada)
    for is_active in ({}, {"is_active": "on"}):
        assert client.post(page_of(ada), {"name": ada.name, **is_active}).status_code == 302
    assert User.objects.get(pk=ada.pk).is_active
    assert hers.get("/account/").status_code == 302
    assert authenticate_token(secret) is None


class TestPassword:
    def test_who_may_only_look_is_offered_no_page_that_is_forbidden(self, client: Client) -> None:
        viewer = make_user(is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_user"))
        client.force_login(viewer)
        shown = client.get(reverse("admin:accounts_user_change", args=[viewer.pk])).content.decode()
        assert viewer.email in shown
        assert "../password/" not in shown

    def test_one_that_an_organizer_sets_ends_tokens_and_is_known_to_its_owner(
        self, client: Client, organizer: User
    ) -> None:
        ada = make_user()
        _, secret = create_token(ada, "cluster")
        client.post(password_page_of(ada), NEW)
        ada.refresh_from_db()
        assert ada.check_password("new-hill-43-y")
        assert authenticate_token(secret) is None
        assert AuditEntry.objects.get(action="user.password_set").actor == organizer
        message = mail.outbox[-1]
        assert message.to == [ada.email]
        assert "An organizer has set a new password" in message.body

    def test_none_is_set_without_what_follows_from_it(
        self, client: Client, organizer: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise RuntimeError

        monkeypatch.setattr("docvqa_site.accounts.services.revoke_all_tokens", fail)
        ada = make_user()
        with pytest.raises(RuntimeError):
            client.post(password_page_of(ada), NEW)
        ada.refresh_from_db()
        assert not ada.check_password("new-hill-43-y")

    def test_one_that_is_rejected_changes_nothing(self, client: Client, organizer: User) -> None:
        ada = make_user()
        _, secret = create_token(ada, "cluster")
        client.post(password_page_of(ada), NEW | {"password2": "another"})
        assert authenticate_token(secret) is not None
        assert not mail.outbox

    def test_organizers_change_their_own_where_everyone_does(self, client: Client, organizer: User) -> None:
        response = client.get(reverse("admin:password_change"))
        assert response["Location"] == reverse("account_change_password")


def test_people_are_never_deleted(client: Client, organizer: User) -> None:
    ada = make_user()
    assert (
        client.post(reverse("admin:accounts_user_delete", args=[ada.pk]), {"post": "yes"}).status_code == 403
    )
    assert User.objects.filter(pk=ada.pk).exists()


def test_an_organizer_revokes_a_leaked_token(client: Client, organizer: User) -> None:
    token, secret = create_token(make_user(), "cluster")
    page = run(client, reverse("admin:accounts_apitoken_changelist"), "revoke", token.pk)
    assert "The tokens are revoked." in page.text
    assert authenticate_token(secret) is None
    assert AuditEntry.objects.get(action="token.revoked").actor == organizer


def test_the_digest_of_a_token_is_not_shown(client: Client, organizer: User) -> None:
    token, _ = create_token(make_user(), "cluster")
    page = client.get(reverse("admin:accounts_apitoken_change", args=[token.pk])).content.decode()
    assert ApiToken.objects.get().digest not in page


def test_the_administration_sends_everyone_to_the_login_page_of_the_site(client: Client) -> None:
    response = client.get("/admin/", follow=True)
    assert response.redirect_chain[-1][0].startswith("/account/login/")


def test_who_is_no_organizer_is_rejected(client: Client) -> None:
    client.force_login(make_user())
    assert client.get("/admin/", follow=True).status_code == 403
