"""Signing up, and resetting a forgotten password, through the real pages and mails."""

import re

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import owns_verified_address
from tests.docvqa_site.factories import make_user

pytestmark = pytest.mark.django_db

PASSWORD = "rose-hill-42-x"


@pytest.fixture(autouse=True)
def no_earlier_attempts() -> None:
    """The limits on attempts are counted in the cache, which outlives a test."""
    cache.clear()


def link_in_mail() -> str:
    found = re.search(r"http://127.0.0.1:8000(/\S+)", str(mail.outbox[-1].body))
    assert found is not None
    return found[1]


def sign_up(client: Client, email: str = "Ada@Example.org") -> str:
    form = {"email": email, "name": "Ada Lovelace", "password1": PASSWORD, "password2": PASSWORD}
    return client.post(reverse("account_signup"), form, follow=True).content.decode()


def log_in(client: Client, email: str, password: str = PASSWORD) -> bool:
    client.post(reverse("account_login"), {"login": email, "password": password})
    return "_auth_user_id" in client.session


@pytest.mark.parametrize("name", ["account_login", "account_signup", "account_reset_password"])
def test_fields_are_named_by_their_labels_alone(client: Client, name: str) -> None:
    assert "placeholder=" not in client.get(reverse(name)).text


def test_signing_up_ends_at_the_verification_page(client: Client) -> None:
    page = sign_up(client)
    assert "Check your email" in page
    user = User.objects.get()
    assert (user.email, user.name) == ("ada@example.org", "Ada Lovelace")
    assert mail.outbox[0].to == ["ada@example.org"]
    assert mail.outbox[0].subject == "[PFL-DocVQA] Confirm your email address"


def test_nobody_logs_in_with_an_unconfirmed_address(client: Client) -> None:
    sign_up(client)
    assert not log_in(client, "ada@example.org")


def test_the_link_in_the_mail_confirms_the_address(client: Client) -> None:
    sign_up(client)
    link = link_in_mail()
    assert "ada@example.org" in client.get(link).content.decode()
    client.post(link)
    assert owns_verified_address(User.objects.get(), "ada@example.org")
    client.logout()
    assert log_in(Client(), "ada@example.org")


def test_looking_at_the_link_confirms_nothing(client: Client) -> None:
    sign_up(client)
    client.get(link_in_mail())
    assert not owns_verified_address(User.objects.get(), "ada@example.org")


def test_signing_up_twice_notifies_the_owner_and_nobody_else(client: Client) -> None:
    first = sign_up(client)
    client.post(link_in_mail())
    cache.clear()
    second = sign_up(Client())
    assert User.objects.count() == 1
    assert "Check your email" in first
    assert "Check your email" in second
    assert mail.outbox[-1].subject == "[PFL-DocVQA] You already have an account"


def test_a_site_without_a_mail_server_says_where_its_mails_are(client: Client, settings: Settings) -> None:
    settings.MAIL_DELIVERY_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    folder = str(settings.EMAIL_FILE_PATH)
    path = reverse("account_email_verification_sent")
    assert folder in client.get(path).content.decode()
    settings.MAIL_DELIVERY_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    assert folder not in client.get(path).content.decode()


def test_signing_up_over_and_over_is_stopped(settings: Settings) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"signup": "2/m/ip"}
    for number in range(2):
        sign_up(Client(), f"person{number}@example.org")
    form = {"email": "late@example.org", "name": "Late", "password1": PASSWORD, "password2": PASSWORD}
    response = Client().post(reverse("account_signup"), form)
    assert response.status_code == 429
    assert b"Too many attempts" in response.content


def test_guessing_passwords_is_slowed_down(client: Client) -> None:
    sign_up(client)
    client.post(link_in_mail())
    for _ in range(5):
        log_in(Client(), "ada@example.org", "a wrong guess")
    assert not log_in(Client(), "ada@example.org")


@pytest.mark.parametrize("password", ["short", "password", "8213746150", "adalovelace"])
def test_weak_passwords_are_rejected(client: Client, password: str) -> None:
    form = {"email": "adalovelace@example.org", "name": "Ada", "password1": password, "password2": password}
    assert b"errorlist" in client.post(reverse("account_signup"), form).content
    assert not User.objects.exists()


def test_a_forgotten_password_is_replaced_by_the_link_in_the_mail(client: Client) -> None:
    sign_up(client)
    client.post(link_in_mail())
    client = Client()
    client.post(reverse("account_reset_password"), {"email": "ada@example.org"})
    assert mail.outbox[-1].subject == "[PFL-DocVQA] Reset your password"
    page = client.get(link_in_mail(), follow=True)
    done = client.post(
        page.redirect_chain[-1][0], {"password1": "new-hill-43-y", "password2": "new-hill-43-y"}, follow=True
    )
    assert "Your password has been changed" in done.content.decode()
    assert log_in(Client(), "ada@example.org", "new-hill-43-y")
    assert not log_in(Client(), "ada@example.org", PASSWORD)


def test_resetting_an_unknown_address_looks_the_same(client: Client) -> None:
    response = client.post(reverse("account_reset_password"), {"email": "nobody@example.org"}, follow=True)
    assert "Check your email" in response.content.decode()
    assert mail.outbox[-1].subject == "[PFL-DocVQA] No account with this address"


def test_an_address_changes_only_once_the_new_one_is_confirmed(client: Client) -> None:
    sign_up(client)
    client.post(link_in_mail())
    log_in(client, "ada@example.org")
    client.post(reverse("account_email"), {"email": "new@example.org", "action_add": ""})
    page = client.post(
        reverse("account_reauthenticate") + "?next=/account/email/", {"password": PASSWORD}, follow=True
    )
    assert "new@example.org" in page.content.decode()
    assert User.objects.get().email == "ada@example.org"
    client.post(link_in_mail())
    assert User.objects.get().email == "new@example.org"
    assert not owns_verified_address(User.objects.get(), "ada@example.org")


def test_the_profile_page_changes_the_name(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    response = client.post(reverse("accounts:profile"), {"name": "Countess"}, follow=True)
    assert "Your profile is saved." in response.content.decode()
    user.refresh_from_db()
    assert user.name == "Countess"


def test_the_profile_page_changes_nothing_else(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    client.post(reverse("accounts:profile"), {"name": "A", "email": "b@example.org", "is_staff": "on"})
    user.refresh_from_db()
    assert not user.is_staff
    assert user.email != "b@example.org"


@pytest.mark.parametrize("view", ["accounts:profile", "accounts:tokens"])
def test_account_pages_reject_other_methods(client: Client, view: str) -> None:
    client.force_login(make_user())
    assert client.delete(reverse(view)).status_code == 405


def test_all_that_is_wrong_with_two_passwords_is_reported_at_once(client, db):
    form = {"email": "ada@example.org", "name": "Ada", "password1": "12345", "password2": "54321"}
    page = client.post("/account/signup/", form).text
    assert "too short" in page
    assert "same password each time" in page


def test_an_address_without_its_scheme_is_not_rejected_by_the_browser(client, db):
    client.force_login(make_user())
    page = client.get("/team/create/").text
    assert 'type="url"' not in page
    assert 'type="text" inputmode="url"' in page
