"""What a thief of a session or of a password can't do, and what the owner of the account learns."""

import re

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags
from pytest_django import Settings

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import authenticate_token, create_token, vouch_for_address
from docvqa_site.audit.models import AuditEntry
from docvqa_site.notifications.models import Notification
from tests.docvqa_site.accounts.codes import code_of, log_in
from tests.docvqa_site.factories import make_team, make_user

pytestmark = pytest.mark.django_db

PASSWORD = "rose-hill-42-x"


@pytest.fixture(autouse=True)
def no_earlier_attempts() -> None:
    """The limits on attempts are counted in the cache, which outlives a test."""
    cache.clear()


@pytest.fixture
def ada() -> User:
    user = make_user("ada@example.org", PASSWORD)
    vouch_for_address(user)
    return user


@pytest.fixture
def session(ada: User) -> Client:
    """A session of hers: all that a thief of the cookie has."""
    client = Client()
    assert log_in(client, ada, PASSWORD) == "/"
    return client


def link_in_mail() -> str:
    found = re.search(r"http://127.0.0.1:8000(/\S+)", str(mail.outbox[-1].body))
    assert found is not None
    return found[1]


def confirm(client: Client, next_page: str) -> str:
    address = reverse("account_reauthenticate")
    response = client.post(f"{address}?next={next_page}", {"password": PASSWORD}, follow=True)
    return response.content.decode()


def change_address(client: Client) -> None:
    client.post(reverse("account_email"), {"email": "new@example.org", "action_add": ""})
    confirm(client, reverse("account_email"))
    client.post(link_in_mail())


class TestSessionAlone:
    def test_it_changes_no_address(self, session: Client) -> None:
        response = session.post(reverse("account_email"), {"email": "thief@example.org", "action_add": ""})
        assert response["Location"].startswith(reverse("account_reauthenticate"))
        assert not mail.outbox

    def test_it_makes_no_token(self, session: Client, ada: User) -> None:
        form = {"label": "mine", "scope": "submit", "days": "90"}
        response = session.post(reverse("accounts:tokens"), form)
        assert response["Location"].startswith(reverse("account_reauthenticate"))
        assert not ada.api_tokens.exists()
        assert "export PFL_TOKEN=pfl_" in strip_tags(confirm(session, reverse("accounts:tokens")))
        assert Notification.objects.get(user=ada).page == reverse("accounts:tokens")

    def test_it_adds_and_revokes_no_key(self, session: Client, ada: User) -> None:
        team = make_team(ada)
        response = session.post(reverse("teams:add_key"), {"public_key": "ab" * 32})
        assert response["Location"].startswith(reverse("account_reauthenticate"))
        assert not team.keys.exists()
        confirm(session, reverse("teams:add_key"))
        key = team.keys.get()
        session.post(reverse("teams:revoke_key", args=[key.pk]))
        key.refresh_from_db()
        assert key.revoked_at is not None

    def test_what_is_no_key_is_rejected_before_a_password_is_asked_for(
        self, session: Client, ada: User
    ) -> None:
        make_team(ada)
        response = session.post(reverse("teams:add_key"), {"public_key": "abc"})
        assert response.status_code == 200
        assert "64 hexadecimal digits" in response.content.decode()

    def test_it_ends_within_a_day(self, session: Client) -> None:
        assert session.session.get_expiry_age() <= 24 * 3600


class TestNewAddress:
    def test_the_old_address_is_notified(self, session: Client) -> None:
        change_address(session)
        received = [message for message in mail.outbox if message.to == ["ada@example.org"]]
        assert "new@example.org" in str(received[-1].body)
        assert "Email changed" in received[-1].subject

    def test_tokens_and_other_sessions_end(self, session: Client, ada: User) -> None:
        _, secret = create_token(ada, "cluster")
        elsewhere = Client()
        log_in(elsewhere, ada, PASSWORD)
        change_address(session)
        assert authenticate_token(secret) is None
        assert session.get("/account/").status_code == 200
        assert elsewhere.get("/account/").status_code == 302
        entry = AuditEntry.objects.get(action="user.email_changed")
        assert entry.readable == {"before": "ada@example.org", "after": "new@example.org"}

    def test_the_first_address_is_no_change(self) -> None:
        client = Client()
        form = {"email": "b@example.org", "name": "B", "password1": PASSWORD, "password2": PASSWORD}
        client.post(reverse("account_signup"), form)
        client.post(link_in_mail())
        assert not AuditEntry.objects.filter(action="user.email_changed").exists()


class TestNewPassword:
    def test_a_change_ends_the_other_sessions_and_is_reported(self, session: Client, ada: User) -> None:
        elsewhere = Client()
        log_in(elsewhere, ada, PASSWORD)
        # Without tokens and linked accounts, nothing is left to end.
        page = session.get(reverse("account_change_password"))
        assert "end_access" not in page.text
        assert "Current password" in page.text
        assert page.text.count("At least 8 characters.") == 1
        form = {"oldpassword": PASSWORD, "password1": "new-hill-43-y", "password2": "new-hill-43-y"}
        session.post(reverse("account_change_password"), form)
        assert session.get("/account/").status_code == 200
        assert elsewhere.get("/account/").status_code == 302
        assert mail.outbox[-1].to == ["ada@example.org"]
        assert "Password changed" in mail.outbox[-1].subject
        assert "If this wasn't you, reset your password" in mail.outbox[-1].body

    @pytest.mark.parametrize("ends", [True, False], ids=["ended", "kept"])
    def test_a_change_offers_to_end_tokens_and_linked_accounts(
        self, session: Client, ada: User, ends: bool
    ) -> None:
        _, secret = create_token(ada, "cluster")
        SocialAccount.objects.create(user=ada, provider="github", uid="7")
        page = session.get(reverse("account_change_password"))
        assert "You have 1 API token and 1 linked account." in page.text
        assert page.context["form"]["end_access"].initial
        form = {"oldpassword": PASSWORD, "password1": "new-hill-43-y", "password2": "new-hill-43-y"}
        session.post(reverse("account_change_password"), {**form, **({"end_access": "on"} if ends else {})})
        assert (authenticate_token(secret) is None) == ends
        assert SocialAccount.objects.exists() == (not ends)

    def test_a_reset_ends_every_session_and_token(self, session: Client, ada: User) -> None:
        _, secret = create_token(ada, "cluster")
        visitor = Client()
        visitor.post(reverse("account_reset_password"), {"email": ada.email})
        page = visitor.get(link_in_mail(), follow=True)
        form = {"password1": "new-hill-43-y", "password2": "new-hill-43-y"}
        visitor.post(page.redirect_chain[-1][0], form)
        assert authenticate_token(secret) is None
        assert session.get("/account/").status_code == 302
        assert "Password reset" in mail.outbox[-1].subject
        assert AuditEntry.objects.get(action="user.tokens_revoked").details == {"because": "password reset"}


@pytest.mark.parametrize("name", ["account_reset_password", "account_signup"])
def test_links_in_mails_lead_to_the_site_whatever_the_host_is_said_to_be(
    ada: User, name: str, settings: Settings
) -> None:
    form = {"email": ada.email}
    if name == "account_signup":
        form = {"email": "new@example.org", "name": "New", "password1": PASSWORD, "password2": PASSWORD}
    Client().post(reverse(name), form, headers={"Host": "testserver:6666"})
    (link,) = re.findall(r"https?://\S+", str(mail.outbox[-1].body))
    assert link.startswith(f"{settings.SITE_URL}/account/")


class TestGuessing:
    def test_who_guesses_locks_out_themselves_and_not_the_owner(self, ada: User) -> None:
        thief, owner = Client(REMOTE_ADDR="192.0.2.1"), Client(REMOTE_ADDR="198.51.100.7")
        for _ in range(5):
            thief.post(reverse("account_login"), {"login": ada.email, "password": "wrong"})
        log_in(thief, ada, PASSWORD)
        assert "_auth_user_id" not in thief.session
        log_in(owner, ada, PASSWORD)
        assert "_auth_user_id" in owner.session

    def test_a_known_browser_gets_in_whatever_others_try(self, ada: User, settings: Settings) -> None:
        settings.ACCOUNT_RATE_LIMITS = {**settings.ACCOUNT_RATE_LIMITS, "attempt_account": "3/h/key"}
        known, new = Client(REMOTE_ADDR="192.0.2.1"), Client(REMOTE_ADDR="198.51.100.7")
        log_in(known, ada, PASSWORD)
        known.post(reverse("account_logout"))
        # One is a neighbor; the others have a network each.
        for host in (1, 5, 6):
            thief = Client(REMOTE_ADDR=f"192.0.2.{host}")
            thief.post(reverse("account_login"), {"login": ada.email, "password": "wrong"})
        log_in(new, ada, PASSWORD)
        assert "_auth_user_id" not in new.session
        log_in(known, ada, PASSWORD)
        assert "_auth_user_id" in known.session

    def test_a_known_browser_is_limited_too_and_knows_no_other_account(self, ada: User) -> None:
        known, other = Client(), make_user("b@example.org", PASSWORD)
        log_in(known, ada, PASSWORD)
        known.post(reverse("account_logout"))
        for user in (ada, other):
            for _ in range(5):
                known.post(reverse("account_login"), {"login": user.email, "password": "wrong"})
            log_in(known, user, PASSWORD)
            assert "_auth_user_id" not in known.session

    def test_who_resets_the_password_gets_in(self, ada: User) -> None:
        owner, thief = Client(), Client()
        for _ in range(5):
            thief.post(reverse("account_login"), {"login": ada.email, "password": "wrong"})
        owner.post(reverse("account_reset_password"), {"email": ada.email})
        page = owner.get(link_in_mail(), follow=True)
        form = {"password1": "new-hill-43-y", "password2": "new-hill-43-y"}
        owner.post(page.redirect_chain[-1][0], form)
        for _ in range(5):
            thief.post(reverse("account_login"), {"login": ada.email, "password": "wrong"})
        log_in(owner, ada, "new-hill-43-y")
        assert "_auth_user_id" in owner.session

    def test_wrong_codes_lock_out_who_tries_them_and_not_the_owner(self) -> None:
        olga = make_user("olga@example.org", PASSWORD, is_staff=True)
        vouch_for_address(olga)
        thief, owner = Client(REMOTE_ADDR="192.0.2.1"), Client(REMOTE_ADDR="198.51.100.7")
        thief.post(reverse("account_login"), {"login": olga.email, "password": PASSWORD})
        for _ in range(5):
            thief.post(reverse("mfa_authenticate"), {"code": "000000"})
        page = thief.post(reverse("mfa_authenticate"), {"code": code_of()})
        assert "Too many failed login attempts" in page.text
        log_in(owner, olga, PASSWORD)
        assert "_auth_user_id" in owner.session

    def test_another_port_in_the_host_is_no_other_visitor(self, ada: User) -> None:
        thief = Client()
        for port in range(1, 6):
            form = {"login": ada.email, "password": "wrong"}
            thief.post(reverse("account_login"), form, headers={"Host": f"testserver:{port}"})
        log_in(thief, ada, PASSWORD)
        assert "_auth_user_id" not in thief.session

    def test_one_network_is_one_visitor(self, ada: User) -> None:
        for number in range(5):
            thief = Client(REMOTE_ADDR=f"2001:db8::{number}")
            thief.post(reverse("account_login"), {"login": ada.email, "password": "wrong"})
        neighbor = Client(REMOTE_ADDR="2001:db8::99")
        log_in(neighbor, ada, PASSWORD)
        assert "_auth_user_id" not in neighbor.session


class CountingHasher(PBKDF2PasswordHasher):
    """Counts how often a password is hashed, which is what takes the time."""

    iterations = 1
    hashed = 0

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        CountingHasher.hashed += 1
        return super().encode(password, salt, iterations)


def test_signing_up_hashes_as_often_for_a_known_address(ada: User, settings: Settings) -> None:
    settings.PASSWORD_HASHERS = [f"{__name__}.CountingHasher"]
    counts: list[int] = []
    for email in (ada.email, "new@example.org"):
        CountingHasher.hashed = 0
        form = {"email": email, "name": "X", "password1": PASSWORD, "password2": PASSWORD}
        Client().post(reverse("account_signup"), form)
        counts.append(CountingHasher.hashed)
    assert counts[0] == counts[1] > 0
