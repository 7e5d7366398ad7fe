"""Limits hold whatever else is cached, and count each account and network by itself."""

import pytest
from allauth.account.models import EmailAddress
from django.core.cache import cache, caches
from django.test import RequestFactory
from django.urls import reverse

from docvqa_site.limits import Limit, network_of
from tests.docvqa_site.factories import make_user

TWICE = Limit("test", 2, window_s=60)


@pytest.fixture(autouse=True)
def moment(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still and may be set."""
    now = [1e9 - 1e9 % 60 + 50]
    monkeypatch.setattr("docvqa_site.limits.time.time", lambda: now[0])
    return now


def test_what_is_beyond_the_limit_waits_for_the_next_window(moment: list[float]) -> None:
    assert [TWICE.wait_s("a") for _ in range(3)] == [0, 0, 10]
    assert TWICE.wait_s("b") == 0
    moment[0] += 10
    assert TWICE.wait_s("a") == 0


def test_a_counter_that_was_removed_meanwhile_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def removed(_key: str) -> int:
        raise ValueError

    monkeypatch.setattr(cache, "incr", removed)
    assert TWICE.wait_s("c") == 0


@pytest.mark.parametrize(
    ("addresses", "networks"), [(["2001:db8::1", "2001:db8::2"], 1), (["192.0.2.1", "192.0.2.2"], 2)]
)
def test_a_network_is_an_address_or_half_of_an_ipv6_address(addresses: list[str], networks: int) -> None:
    requests = [RequestFactory(REMOTE_ADDR=address).get("/") for address in addresses]
    assert len({network_of(request) for request in requests}) == networks


@pytest.mark.django_db
def test_failed_logins_are_not_forgotten_while_pages_and_answers_are_cached(client) -> None:
    user = make_user(password="the right password")
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)

    def log_in(password: str) -> bool:
        client.post(reverse("account_login"), {"login": user.email, "password": password})
        return "_auth_user_id" in client.session

    for _ in range(6):
        assert not log_in("a wrong one")
    for number in range(700):
        for name in ("pages", "answers"):
            caches[name].set(f"entry-{number}", "x", 3600)
        Limit("others", 30).wait_s(str(number))
    assert not log_in("the right password"), "the failed attempts are still counted"
