import re
from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags
from pytest_django import DjangoAssertNumQueries

from docvqa_site.accounts.models import ApiToken, User
from docvqa_site.accounts.services import authenticate_token, create_token, revoke_token
from docvqa_site.audit.models import AuditEntry
from evaluator.errors import ProblemError
from tests.docvqa_site.factories import make_team, make_user

pytestmark = pytest.mark.django_db

FORM = {"label": "cluster", "scope": "submit", "days": "90"}


def user_of(secret: str) -> User | None:
    token = authenticate_token(secret)
    return token.user if token else None


def test_the_secret_of_a_token_identifies_its_user() -> None:
    user = make_user()
    _, secret = create_token(user, "cluster")
    assert user_of(secret) == user


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
    made = client.post(reverse("accounts:tokens"), FORM)
    found = re.search(r"export PFL_TOKEN=(pfl_[\w-]+)", strip_tags(made.text))
    assert found is not None
    assert user_of(found[1]) == user
    assert '<p class="notice notice-success" role="status" tabindex="-1" autofocus>Copy it now.' in made.text
    assert mail.outbox[-1].to == [user.email]
    assert "The API token “cluster” was created for your account." in mail.outbox[-1].body
    assert found[1] not in mail.outbox[-1].body
    assert "no-store" in made["Cache-Control"]
    # What follows depends on the tracks of the site, whose pages have the commands.
    assert "pfl submit save" not in made.content.decode()
    assert f'href="{reverse("challenge:list")}">track\'s page' in made.content.decode()
    assert found[1] not in client.get(reverse("accounts:tokens")).content.decode()


def test_a_reload_creates_no_second_token(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    found = re.search(r'name="page" value="([\w-]+)"', client.get(reverse("accounts:tokens")).text)
    assert found is not None
    for _ in range(2):
        page = client.post(reverse("accounts:tokens"), {**FORM, "page": found[1]}, follow=True)
    assert "Your new token was already shown." in page.text
    assert user.api_tokens.count() == 1


def test_a_token_needs_a_label(client: Client) -> None:
    client.force_login(make_user())
    response = client.post(reverse("accounts:tokens"), {**FORM, "label": ""})
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
    assert user_of(secret) == user


def test_the_page_costs_the_same_for_many_tokens(
    client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    user = make_user()
    for number in range(12):
        create_token(user, f"cluster {number}")
    client.force_login(user)
    with django_assert_max_num_queries(5):
        client.get(reverse("accounts:tokens"))


def test_a_token_is_valid_for_ninety_days_unless_another_time_is_chosen(client: Client) -> None:
    user = make_user()
    token, _ = create_token(user, "cluster")
    assert token.expires_at - token.created_at == timedelta(days=90)
    client.force_login(user)
    client.post(reverse("accounts:tokens"), {**FORM, "days": "7"})
    latest = ApiToken.objects.first()
    assert latest is not None
    assert latest.expires_at - latest.created_at == timedelta(days=7)
    page = client.get(reverse("accounts:tokens")).content.decode()
    assert "Expires" in page
    client.post(reverse("accounts:tokens"), {**FORM, "days": "10000"})
    assert ApiToken.objects.count() == 2


def test_an_expired_token_is_named_as_such(client: Client) -> None:
    user = make_user()
    _, secret = create_token(user, "cluster", days=0)
    with pytest.raises(ProblemError, match="E_REQUEST_TOKEN_EXPIRED"):
        authenticate_token(secret)
    response = client.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"})
    assert response.status_code == 401
    assert response.json()["problems"][0]["code"] == "E_REQUEST_TOKEN_EXPIRED"
    client.force_login(user)
    assert "expired" in client.get(reverse("accounts:tokens")).content.decode()


def test_a_session_registers_no_key_over_the_api(client: Client) -> None:
    user = make_user()
    team = make_team(user)
    client.force_login(user)
    response = client.post("/api/v1/keys", {"public_key": "ab" * 32}, "application/json")
    assert response.status_code == 403
    assert response.json()["problems"][0]["code"] == "E_REQUEST_REAUTHENTICATE"
    assert not team.keys.exists()


def test_one_person_has_no_more_than_twenty_valid_ones() -> None:
    user = make_user()
    tokens = [create_token(user, "cluster")[0] for _ in range(20)]
    with pytest.raises(ProblemError, match="E_TOKEN_LIMIT"):
        create_token(user, "one more")
    revoke_token(tokens[0], actor=user)
    create_token(user, "in its place")
    assert user.api_tokens.filter(revoked_at=None).count() == 20
