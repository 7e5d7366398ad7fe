"""The response to too many requests says when to send the next one, in the form of every other problem."""

import pytest

from docvqa_site.api import throttling
from docvqa_site.limits import Limit
from tests.docvqa_site.api.caller import Caller, codes
from tests.docvqa_site.factories import make_team, make_track

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def moment(monkeypatch):
    monkeypatch.setattr("docvqa_site.limits.time.time", lambda: 1e9)


def limited(monkeypatch, throttles, count):
    for throttle in throttles:
        monkeypatch.setattr(throttle, "limit", Limit(throttle.limit.name, count))


@pytest.fixture
def user():
    return make_team().memberships.get().user


def assert_too_many(response):
    assert (response.status_code, codes(response)) == (429, ["E_REQUEST_LIMIT"])
    assert 0 < int(response["Retry-After"]) <= 60


def test_an_account_is_limited_and_others_are_not(client, user, monkeypatch):
    limited(monkeypatch, throttling.API_LIMITS[:1], 2)
    api = Caller(client, user)
    assert [api("GET", "me").status_code for _ in range(2)] == [200, 200]
    assert_too_many(api("GET", "me"))
    assert Caller(client, make_team().memberships.get().user)("GET", "me").status_code == 200


def test_all_accounts_of_one_address_are_limited_together(client, monkeypatch):
    limited(monkeypatch, throttling.API_LIMITS[1:], 2)
    users = [make_team().memberships.get().user for _ in range(3)]
    *first, last = [Caller(client, user)("GET", "me") for user in users]
    assert [response.status_code for response in first] == [200, 200]
    assert_too_many(last)


def test_a_burst_of_run_tokens_ends(client, user):
    make_track("anls", slug="track-2")
    api = Caller(client, user)
    statuses = [api("POST", "run-tokens", {"track": "track-2"}).status_code for _ in range(31)]
    assert statuses == [201] * 30 + [429]
    assert api("GET", "run-tokens").status_code == 200, "what exists may still be read"


def test_addresses_of_parts_have_a_limit_that_a_large_file_does_not_reach():
    (throttle,) = throttling.UPLOAD_LIMITS
    assert isinstance(throttle, throttling.PerAccount)
    assert throttle.limit.count >= 10 * 256


def test_the_public_boards_are_limited_by_address(client, monkeypatch):
    make_track(slug="track-1")
    limited(monkeypatch, throttling.PUBLIC_LIMITS, 1)
    assert client.get("/api/v1/leaderboards/track-1").status_code == 200
    assert_too_many(client.get("/api/v1/leaderboards/track-1"))
    assert client.get("/api/v1/leaderboards/track-1", REMOTE_ADDR="192.0.2.7").status_code == 200


def test_guessing_tokens_is_limited_by_address(client, monkeypatch):
    monkeypatch.setattr(throttling, "_UNKNOWN", Limit("api-unknown", 2))
    headers = {"Authorization": "Bearer unknown"}
    responses = [client.get("/api/v1/me", headers=headers) for _ in range(3)]
    assert [response.status_code for response in responses[:2]] == [401, 401]
    assert_too_many(responses[2])
