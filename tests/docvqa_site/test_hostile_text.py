"""Text that the database can't store is rejected with a coded problem or status 400, never with a fault of ours."""

import json

import pytest
from django.urls import reverse

from tests.docvqa_site.api.caller import Caller, codes
from tests.docvqa_site.factories import make_team, make_track, make_user

pytestmark = pytest.mark.django_db

NULL, SURROGATE = "a\0b", "\ud800"

BODIES: dict[str, dict[str, object]] = {
    "submissions": {"track": "track-1", "title": "FedAvg"},
    "run-tokens": {"track": "track-1"},
    "keys": {"public_key": "0" * 64},
    "uploads": {
        "submission": "00000000-0000-4000-8000-000000000000",
        "kind": "checkpoint",
        "filename": "model.safetensors",
        "size_bytes": 1,
        "sha256": "0" * 64,
    },
}


@pytest.fixture
def api(client):
    make_track(slug="track-1")
    return Caller(client, make_team().memberships.get().user)


@pytest.mark.parametrize("text", [NULL, SURROGATE])
@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("submissions", "track"),
        ("submissions", "title"),
        ("submissions", "description"),
        ("run-tokens", "track"),
        ("keys", "name"),
        ("uploads", "filename"),
    ],
)
def test_text_in_a_message_that_cannot_be_stored_is_a_problem_at_its_field(api, path, field, text):
    response = api("POST", path, json.dumps({**BODIES[path], field: text}))
    assert (response.status_code, codes(response)) == (422, ["E_REQUEST_INVALID"])
    assert field in response.json()["problems"][0]["where"]


@pytest.mark.parametrize("path", ["leaderboards/a%00b", "tracks?a=%00", "submissions?limit=%00"])
def test_an_address_of_the_api_with_a_null_character_is_a_problem(api, path):
    response = api("GET", path)
    assert (response.status_code, codes(response)) == (400, ["E_REQUEST_INVALID"])


@pytest.mark.parametrize(
    "address",
    [
        "/submissions/create/?track=%00",
        "/admin/autocomplete/?app_label=teams&model_name=membership&field_name=user&term=%00",
        "/admin/teams/team/?q=a%00b",
        "/?page=%00",
        "/%00",
    ],
)
def test_an_address_of_a_page_with_a_null_character_is_a_bad_request(client, address):
    user = make_user(is_staff=True, is_superuser=True)
    make_team(user)
    client.force_login(user)
    assert client.get(address).status_code == 400


def test_a_cookie_with_a_null_character_is_a_bad_request(client):
    # A quoted cookie may have the character as an octal escape.
    response = client.get(reverse("teams:mine"), headers={"cookie": 'sessionid="\\000abcdefghij"'})
    assert response.status_code == 400
