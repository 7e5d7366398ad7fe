"""Signing in by GitHub and ORCID, against a server that speaks as they do: linking, signing up, and attacks."""

import re

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.github.views import GitHubOAuth2Adapter
from allauth.socialaccount.providers.orcid.views import OrcidOAuth2Adapter
from django.core import mail
from django.test import Client

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import vouch_for_address
from docvqa_site.audit.models import AuditEntry
from docvqa_site.notifications.models import Notification
from tests.docvqa_site.accounts.codes import log_in
from tests.docvqa_site.factories import make_user
from tests.services.oauth import CLIENT, SECRET, OAuthServer

pytestmark = pytest.mark.django_db

PASSWORD = "rose-hill-42-x"
LINKED = "/account/linked/"


@pytest.fixture(scope="module")
def server():
    with OAuthServer() as server:
        yield server


@pytest.fixture(autouse=True)
def provider(server: OAuthServer, settings, monkeypatch):
    """The site is configured for both, whose addresses lead to the server of the test."""
    keys = {"APPS": [{"client_id": CLIENT, "secret": SECRET}]}
    settings.SOCIALACCOUNT_PROVIDERS = {"github": keys, "orcid": keys}
    addresses = {"access_token_url": "/token", "profile_url": "/user", "emails_url": "/user/emails"}
    for name, path in addresses.items():
        monkeypatch.setattr(GitHubOAuth2Adapter, name, server.url + path)
    monkeypatch.setattr(OrcidOAuth2Adapter, "access_token_url", f"{server.url}/token")
    monkeypatch.setattr(OrcidOAuth2Adapter, "profile_url", f"{server.url}/v3.0/%s/record")
    server.emails = [{"email": "ada@example.org", "primary": True, "verified": True}]
    server.orcid = "0000-0002-1825-0097"
    return server


@pytest.fixture
def ada() -> User:
    user = make_user("ada@example.org", PASSWORD, name="Ada")
    vouch_for_address(user)
    return user


def sign_in(client: Client, server: OAuthServer, name: str = "github", process: str = "", **changes: str):
    """The way of a browser to the provider and back; the response is the page at its end."""
    query = f"?process={process}" if process else ""
    away = client.post(f"/account/{name}/login/{query}")
    assert away.status_code == 302
    return client.get(server.authorize(away["Location"], **changes), follow=True)


def link(client: Client, server: OAuthServer, user: User, name: str = "github") -> None:
    log_in(client, user, PASSWORD)
    client.post(f"/account/reauthenticate/?next={LINKED}", {"password": PASSWORD})
    sign_in(client, server, name, "connect")


def is_logged_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


class TestLinking:
    def test_a_linked_account_logs_in(self, client: Client, ada: User, server: OAuthServer) -> None:
        link(client, server, ada)
        account = SocialAccount.objects.get()
        assert (account.user, account.uid, account.extra_data) == (ada, "583231", {"login": "ada"})
        visitor = Client()
        sign_in(visitor, server)
        assert visitor.session["_auth_user_id"] == str(ada.pk)

    def test_it_is_audited_shown_and_mailed(self, client: Client, ada: User, server: OAuthServer) -> None:
        link(client, server, ada)
        entry = AuditEntry.objects.get(action="user.sign_in_linked")
        assert entry.readable == {"provider": "github", "uid": "583231"}
        assert Notification.objects.get().kind == "security"
        assert mail.outbox[-1].to == ["ada@example.org"]
        assert mail.outbox[-1].subject == "[PFL-DocVQA] Account linked"
        assert "Your account at GitHub was linked." in mail.outbox[-1].body

    def test_a_session_alone_links_nothing(self, client: Client, ada: User, server: OAuthServer) -> None:
        client.force_login(ada)
        page = sign_in(client, server, process="connect")
        assert page.request["PATH_INFO"] == "/account/reauthenticate/"
        assert not SocialAccount.objects.exists()

    def test_an_account_that_opens_another_one_is_not_linked_again(
        self, client: Client, ada: User, server: OAuthServer
    ) -> None:
        link(client, server, ada)
        thief = make_user("eve@example.org", PASSWORD)
        vouch_for_address(thief)
        link(Client(), server, thief)
        assert SocialAccount.objects.get().user == ada

    def test_it_is_unlinked_with_the_password(self, client: Client, ada: User, server: OAuthServer) -> None:
        link(client, server, ada)
        account = SocialAccount.objects.get()
        stranger = Client()
        stranger.force_login(make_user())
        stranger.post(LINKED, {"account": account.pk})
        assert SocialAccount.objects.exists()
        client.post(LINKED, {"account": account.pk})
        assert not SocialAccount.objects.exists()
        assert AuditEntry.objects.filter(action="user.sign_in_unlinked", actor=ada).exists()

    def test_a_reset_of_the_password_unlinks_it(self, client: Client, ada: User, server: OAuthServer) -> None:
        link(client, server, ada, "orcid")
        visitor = Client()
        visitor.post("/account/password/reset/", {"email": ada.email})
        (address,) = re.findall(r"http://127.0.0.1:8000(/\S+)", str(mail.outbox[-1].body))
        page = visitor.get(address, follow=True)
        form = {"password1": "new-hill-43-y", "password2": "new-hill-43-y"}
        visitor.post(page.redirect_chain[-1][0], form)
        assert not SocialAccount.objects.exists()
        assert not User.objects.get().orcid_verified
        entry = AuditEntry.objects.get(action="user.sign_in_unlinked")
        assert entry.details["because"] == "password reset"


class TestSigningUp:
    FORM = {"name": "Ada Lovelace", "email": "ada@example.org", "password1": PASSWORD}

    def test_the_form_begins_with_what_the_provider_says(self, client: Client, server: OAuthServer) -> None:
        page = sign_in(client, server).content.decode()
        assert 'value="Ada Lovelace"' in page
        assert 'value="ada@example.org"' in page
        assert not User.objects.exists()

    def test_an_address_that_the_provider_confirms_needs_no_mail(
        self, client: Client, server: OAuthServer
    ) -> None:
        sign_in(client, server)
        client.post(f"{LINKED}signup/", self.FORM)
        assert is_logged_in(client)
        user = User.objects.get()
        assert (user.name, user.check_password(PASSWORD)) == ("Ada Lovelace", True)
        assert EmailAddress.objects.get().verified

    @pytest.mark.parametrize("is_verified", [True, False])
    def test_any_other_address_is_confirmed_first(
        self, client: Client, server: OAuthServer, is_verified: bool
    ) -> None:
        server.emails = [{"email": "ada@example.org", "primary": True, "verified": is_verified}]
        sign_in(client, server)
        email = "else@example.org" if is_verified else "ada@example.org"
        client.post(f"{LINKED}signup/", {**self.FORM, "email": email})
        assert not is_logged_in(client)
        assert mail.outbox[-1].subject == "[PFL-DocVQA] Confirm your email address"
        assert not EmailAddress.objects.filter(email=email, verified=True).exists()

    @pytest.mark.parametrize("is_verified", [True, False])
    def test_an_address_that_has_an_account_opens_nothing(
        self, client: Client, ada: User, server: OAuthServer, is_verified: bool
    ) -> None:
        server.emails = [{"email": "ada@example.org", "primary": True, "verified": is_verified}]
        sign_in(client, server)
        page = client.post(f"{LINKED}signup/", self.FORM, follow=True).content.decode()
        assert "Check your email" in page, "as for a new address"
        assert not is_logged_in(client)
        assert not SocialAccount.objects.exists()
        assert mail.outbox[-1].subject == "[PFL-DocVQA] You already have an account"
        assert User.objects.get().check_password(PASSWORD)

    def test_a_weak_password_is_rejected(self, client: Client, server: OAuthServer) -> None:
        sign_in(client, server)
        assert b"errorlist" in client.post(f"{LINKED}signup/", {**self.FORM, "password1": "12345"}).content
        assert not User.objects.exists()


class TestAttacks:
    def test_staff_still_needs_the_second_factor(
        self, client: Client, ada: User, server: OAuthServer
    ) -> None:
        link(client, server, ada)
        User.objects.update(is_staff=True)
        visitor = Client()
        sign_in(visitor, server)
        assert "/account/2fa/" in visitor.get("/admin/", follow=True).request["PATH_INFO"]

    def test_a_second_factor_is_asked_for(self, client: Client, server: OAuthServer) -> None:
        boss = make_user("boss@example.org", PASSWORD, second_factor=True)
        vouch_for_address(boss)
        link(client, server, boss)
        visitor = Client()
        page = sign_in(visitor, server)
        assert page.request["PATH_INFO"] == "/account/2fa/authenticate/"
        assert not is_logged_in(visitor)

    @pytest.mark.parametrize("change", [{"state": "forged"}, {"code": "forged"}, {"error": "access_denied"}])
    def test_an_answer_that_nobody_asked_for_logs_nobody_in(
        self, client: Client, ada: User, server: OAuthServer, change: dict[str, str]
    ) -> None:
        link(client, server, ada)
        visitor = Client()
        page = sign_in(visitor, server, **change)
        assert "Not signed in" in page.content.decode() or "The sign-in failed" in page.content.decode()
        assert not is_logged_in(visitor)

    def test_a_get_begins_nothing(self, client: Client) -> None:
        assert client.get("/account/github/login/").status_code == 200
        assert re.search(r"<form method=.post.", client.get("/account/github/login/").content.decode())

    def test_an_address_of_another_site_is_not_returned_to(
        self, client: Client, ada: User, server: OAuthServer
    ) -> None:
        link(client, server, ada)
        visitor = Client()
        away = visitor.post("/account/github/login/?next=https://evil.example/")
        back = visitor.get(server.authorize(away["Location"]))
        assert not back["Location"].startswith("https://evil")

    def test_a_site_without_keys_offers_nothing(self, client: Client, settings) -> None:
        settings.SOCIALACCOUNT_PROVIDERS = {}
        for name in ("github", "orcid"):
            for way in ("login/", "login/callback/"):
                assert client.post(f"/account/{name}/{way}").status_code == 404
        assert "GitHub" not in client.get("/account/login/").content.decode()


def test_the_log_in_page_offers_both(client: Client) -> None:
    page = client.get("/account/login/").content.decode()
    assert "Continue with GitHub" in page
    assert "Continue with ORCID" in page


class TestOrcid:
    def test_a_linked_account_verifies_the_id(self, client: Client, ada: User, server: OAuthServer) -> None:
        link(client, server, ada, "orcid")
        ada.refresh_from_db()
        assert (ada.orcid, ada.orcid_verified, ada.shows_orcid) == ("0000-0002-1825-0097", True, False)
        client.post(LINKED, {"account": SocialAccount.objects.get().pk})
        ada.refresh_from_db()
        assert (ada.orcid, ada.orcid_verified) == ("0000-0002-1825-0097", False)

    def test_a_new_account_has_it_too(self, client: Client, server: OAuthServer) -> None:
        page = sign_in(client, server, "orcid").content.decode()
        assert 'value="Ada Lovelace"' in page
        client.post(f"{LINKED}signup/", TestSigningUp.FORM)
        assert not is_logged_in(client), "ORCID says nothing of an address"
        assert User.objects.get().orcid_verified
