import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from portal.accounts.models import ApiToken
from portal.accounts.services import authenticate_token, create_token, revoke_token
from portal.audit.models import AuditEntry
from tests.portal.factories import make_user

pytestmark = pytest.mark.django_db


def test_the_secret_of_a_token_identifies_its_user() -> None:
    user = make_user()
    _, secret = create_token(user, "cluster")
    assert authenticate_token(secret) == user


def test_the_secret_is_stored_nowhere() -> None:
    token, secret = create_token(make_user(), "cluster")
    assert secret.startswith("pfl_")
    assert secret not in [str(value) for value in vars(token).values()]
    assert secret not in str(AuditEntry.objects.get(action="token.created").details)


@pytest.mark.parametrize("secret", ["", "pfl_", "pfl_unknown", "\x00", "ü" * 1000])
def test_an_unknown_secret_identifies_nobody(secret: str) -> None:
    create_token(make_user(), "cluster")
    assert authenticate_token(secret) is None


def test_a_revoked_token_is_rejected() -> None:
    user = make_user()
    token, secret = create_token(user, "cluster")
    revoke_token(token, actor=user)
    assert authenticate_token(secret) is None


def test_the_token_of_a_deactivated_person_is_rejected() -> None:
    _, secret = create_token(make_user(is_active=False), "cluster")
    assert authenticate_token(secret) is None


def test_the_last_use_is_noted_at_most_once_a_minute() -> None:
    token, secret = create_token(make_user(), "cluster")
    authenticate_token(secret)
    first = ApiToken.objects.get().last_used_at
    assert first is not None
    authenticate_token(secret)
    assert ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=timezone.now() - timedelta(seconds=61))
    authenticate_token(secret)
    latest = ApiToken.objects.get(pk=token.pk).last_used_at
    assert latest is not None
    assert latest >= first


def test_a_token_that_is_in_use_costs_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    _, secret = create_token(make_user(), "cluster")
    authenticate_token(secret)
    with django_assert_num_queries(1):
        authenticate_token(secret)


def test_revoking_twice_is_recorded_once() -> None:
    user = make_user()
    token, _ = create_token(user, "cluster")
    revoke_token(token, actor=user)
    revoke_token(token, actor=user)
    assert AuditEntry.objects.filter(action="token.revoked").count() == 1


def test_the_page_shows_a_new_secret_once(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    made = client.post(reverse("accounts:tokens"), {"label": "cluster"})
    found = re.search(r"export PFL_TOKEN=(pfl_[\w-]+)", made.content.decode())
    assert found is not None
    assert authenticate_token(found[1]) == user
    assert "no-store" in made["Cache-Control"]
    assert found[1] not in client.get(reverse("accounts:tokens")).content.decode()


def test_a_token_needs_a_label(client: Client) -> None:
    client.force_login(make_user())
    response = client.post(reverse("accounts:tokens"), {"label": ""})
    assert b"This field is required." in response.content
    assert not ApiToken.objects.exists()


def test_a_token_is_revoked_with_a_button(client: Client) -> None:
    user = make_user()
    token, secret = create_token(user, "cluster")
    client.force_login(user)
    response = client.post(reverse("accounts:revoke", args=[token.pk]), follow=True)
    assert "“cluster” is revoked" in response.content.decode()
    assert authenticate_token(secret) is None


def test_tokens_of_others_are_neither_seen_nor_revoked(client: Client) -> None:
    token, secret = create_token(make_user(), "their cluster")
    client.force_login(make_user())
    assert b"their cluster" not in client.get(reverse("accounts:tokens")).content
    assert client.post(reverse("accounts:revoke", args=[token.pk])).status_code == 404
    assert authenticate_token(secret) is not None


def test_a_missing_token_is_not_revoked(client: Client) -> None:
    client.force_login(make_user())
    assert client.post(reverse("accounts:revoke", args=[1])).status_code == 404


def test_revoking_needs_a_post_and_a_login(client: Client) -> None:
    user = make_user()
    token, secret = create_token(user, "cluster")
    assert client.post(reverse("accounts:revoke", args=[token.pk])).status_code == 302
    client.force_login(user)
    assert client.get(reverse("accounts:revoke", args=[token.pk])).status_code == 405
    assert authenticate_token(secret) == user


def test_the_page_costs_the_same_for_many_tokens(
    client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    user = make_user()
    for number in range(12):
        create_token(user, f"cluster {number}")
    client.force_login(user)
    with django_assert_max_num_queries(4):
        client.get(reverse("accounts:tokens"))
