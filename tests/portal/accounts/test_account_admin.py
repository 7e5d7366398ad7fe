import pytest
from django.contrib.auth.models import Permission
from django.core import mail
from django.test import Client
from django.urls import reverse

from portal.accounts.models import ApiToken, User
from portal.accounts.selectors import owns_verified_address
from portal.accounts.services import authenticate_token, create_token
from portal.audit.models import AuditEntry
from tests.portal.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def organizer(client: Client) -> User:
    user = make_user(is_staff=True, is_superuser=True)
    client.force_login(user)
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
    client.post(
        reverse("admin:accounts_user_change", args=[ada.pk]),
        {"name": ada.name, "is_staff": "on", "is_active": "on"},
    )
    assert AuditEntry.objects.get(action="user.changed").details == {"changes": {"is_staff": [False, True]}}


class TestPassword:
    def test_who_may_only_look_is_offered_no_page_that_is_forbidden(self, client: Client) -> None:
        viewer = make_user(is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_user"))
        client.force_login(viewer)
        shown = client.get(reverse("admin:accounts_user_change", args=[viewer.pk])).content.decode()
        assert viewer.email in shown
        assert "../password/" not in shown

    NEW = {"usable_password": "true", "password1": "new-hill-43-y", "password2": "new-hill-43-y"}

    def address(self, user: User) -> str:
        return reverse("admin:auth_user_password_change", args=[user.pk])

    def test_one_that_an_organizer_sets_ends_tokens_and_is_known_to_its_owner(
        self, client: Client, organizer: User
    ) -> None:
        ada = make_user()
        _, secret = create_token(ada, "cluster")
        client.post(self.address(ada), self.NEW)
        ada.refresh_from_db()
        assert ada.check_password("new-hill-43-y")
        assert authenticate_token(secret) is None
        assert AuditEntry.objects.get(action="user.password_set").actor == organizer
        (message,) = mail.outbox
        assert message.to == [ada.email]
        assert "An organizer has set a new password" in message.body

    def test_none_is_set_without_what_follows_from_it(
        self, client: Client, organizer: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise RuntimeError

        monkeypatch.setattr("portal.accounts.services.revoke_all_tokens", fail)
        ada = make_user()
        with pytest.raises(RuntimeError):
            client.post(self.address(ada), self.NEW)
        ada.refresh_from_db()
        assert not ada.check_password("new-hill-43-y")

    def test_one_that_is_rejected_changes_nothing(self, client: Client, organizer: User) -> None:
        ada = make_user()
        _, secret = create_token(ada, "cluster")
        client.post(self.address(ada), self.NEW | {"password2": "another"})
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
    client.post(
        reverse("admin:accounts_apitoken_changelist"),
        {"action": "revoke", "_selected_action": [str(token.pk)]},
    )
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
