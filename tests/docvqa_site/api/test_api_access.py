"""The permission of every endpoint, for everyone who isn't the owner."""

import re
from html import unescape

import pytest
from django.test import Client

from docvqa_site.accounts.models import ApiToken
from docvqa_site.submissions import services
from docvqa_site.submissions.models import SubmissionState
from docvqa_site.uploads.models import Upload, UploadState
from tests.docvqa_site.api.caller import Caller, announcement, codes
from tests.docvqa_site.factories import make_run, make_team, make_user
from tests.docvqa_site.uploads.sending import cut, sha

pytestmark = pytest.mark.django_db

CONTENT = b"0123456789abc"
PART = {"number": 1, "size_bytes": 10, "sha256": cut(CONTENT)[0][0].sha256}


@pytest.fixture
def run():
    return make_run()


@pytest.fixture
def upload(run):
    return services.start_upload(
        run.submission,
        run,
        "checkpoint",
        run.submission.created_by,
        filename="model.safetensors",
        size_bytes=len(CONTENT),
        sha256=sha(CONTENT),
    )


def owned(run, upload):
    """Every endpoint that is about one team's things."""
    submission = run.submission
    return [
        ("GET", f"submissions/{submission.pk}", None),
        ("POST", f"submissions/{submission.pk}/runs", {"budget": None}),
        ("POST", f"submissions/{submission.pk}/submit", None),
        ("PATCH", f"submissions/{submission.pk}", {"title": "Mine now"}),
        ("POST", f"submissions/{submission.pk}/copy", None),
        ("POST", f"submissions/{submission.pk}/cancel", None),
        ("POST", f"submissions/{submission.pk}/withdraw", None),
        ("DELETE", f"submissions/{submission.pk}/runs/{run.pk}", None),
        ("POST", "uploads", announcement(submission.pk, "checkpoint", CONTENT, run.pk)),
        ("GET", f"uploads/{upload.pk}/parts", None),
        ("POST", f"uploads/{upload.pk}/part-urls", {"parts": [PART]}),
        ("POST", f"uploads/{upload.pk}/complete", None),
        ("DELETE", f"uploads/{upload.pk}", None),
    ]


def every(run, upload):
    general = [
        ("GET", "submissions", None),
        ("POST", "submissions", {"track": run.submission.track.slug, "title": "FedAvg"}),
        ("GET", "tracks", None),
        ("GET", "me", None),
    ]
    return owned(run, upload) + general


def test_other_teams_things_are_not_found(client, run, upload):
    for user in (
        make_team().memberships.get().user,
        make_team(make_user(is_staff=True)).memberships.get().user,
    ):
        outsider = Caller(client, user)
        for call in owned(run, upload):
            response = outsider(*call)
            assert (response.status_code, codes(response)) == (404, ["E_REQUEST_NOT_FOUND"]), call
    upload.refresh_from_db()
    run.submission.refresh_from_db()
    assert (upload.state, run.submission.state) == (UploadState.OPEN, SubmissionState.DRAFT)
    assert Upload.objects.count() == 1


def test_a_run_of_another_team_is_no_place_for_a_file(client, run):
    own = make_run()
    api = Caller(client, own.submission.created_by)
    response = api("POST", "uploads", announcement(own.submission.pk, "checkpoint", CONTENT, run.pk))
    assert response.status_code == 404


@pytest.mark.parametrize("secret", ["", "pfl_wrong", "x" * 5000])
def test_a_wrong_token_opens_nothing(client, run, upload, secret):
    client.force_login(run.submission.created_by)  # nor does a session beside it
    caller = Caller(client)
    caller.headers = {"Authorization": f"Bearer {secret}"}
    for call in every(run, upload):
        response = caller(*call)
        assert (response.status_code, codes(response)) == (401, ["E_REQUEST_SIGN_IN"]), call
        assert "The API token is unknown or was revoked." in response.content.decode(), call


def test_a_revoked_token_opens_nothing(client, run):
    caller = Caller(client, run.submission.created_by)
    caller.get("me")
    ApiToken.objects.update(revoked_at="2026-01-01T00:00Z")
    assert caller("GET", "me").status_code == 401


def test_a_session_changes_things_only_with_its_csrf_token(run):
    client = Client(enforce_csrf_checks=True)
    client.force_login(run.submission.created_by)
    path = f"/api/v1/submissions/{run.submission.pk}/runs"
    body = {"budget": None}
    response = client.post(path, body, content_type="application/json")
    assert (response.status_code, codes(response)) == (401, ["E_REQUEST_SIGN_IN"])
    client.get(run.submission.get_absolute_url())
    token = client.cookies["csrftoken"].value
    response = client.post(path, body, content_type="application/json", headers={"X-CSRFToken": token})
    assert response.status_code == 200


def test_a_token_needs_no_csrf_token(run):
    caller = Caller(Client(enforce_csrf_checks=True), run.submission.created_by)
    caller.post(f"submissions/{run.submission.pk}/runs", {"budget": None})


@pytest.mark.parametrize(
    ("method", "path"), [("DELETE", "submissions"), ("PUT", "uploads"), ("POST", "me"), ("GET", "uploads")]
)
def test_another_method_is_not_allowed(client, run, method, path):
    assert Caller(client, run.submission.created_by)(method, path).status_code == 405


@pytest.mark.parametrize("path", ["submissions/7", "submissions/../me", "uploads/x/parts"])
def test_an_id_that_is_none_is_no_server_error(client, run, path):
    assert Caller(client, run.submission.created_by)("GET", path).status_code in (404, 422)


def test_the_description_of_the_api_is_public(client):
    schema = client.get("/api/v1/openapi.json").json()
    assert set(schema["paths"]["/api/v1/uploads/{upload_id}"]) == {"delete"}
    html = client.get("/api/v1/docs").content.decode()
    assert "POST /api/v1/uploads/{upload_id}/part-urls" in html
    assert "size_bytes" in html
    assert '<a href="#uploads">' in html
    assert '<h3 id="uploads">' in html
    assert 'aria-label="Response of GET /api/v1/me"' in html


def test_the_page_of_the_api_groups_all_of_it_by_subject(client):
    schema = client.get("/api/v1/openapi.json").json()
    subjects = {tag["name"]: tag["description"] for tag in schema["tags"]}
    operations = [operation for path in schema["paths"].values() for operation in path.values()]
    assert {tag for operation in operations for tag in operation["tags"]} == set(subjects)
    html = client.get("/api/v1/docs").content.decode()
    groups = re.findall(r'<h3 id="([^"]*)">([^<]*)</h3>\s*<p>([^<]*)</p>', html)
    groups = [(key, name, unescape(about)) for key, name, about in groups]
    assert [name.lower() for _, name, _ in groups] == list(subjects)
    assert [about for _, _, about in groups] == list(subjects.values())
    # A subject's endpoints are together, whatever their addresses begin with.
    for key, name, _ in groups:
        assert f'<a href="#{key}">{name}</a>' in html
        part = html.partition(f'<h3 id="{key}">')[2].partition("<h3")[0]
        shown = set(re.findall(r'<h4 id="([^"]*)">', part))
        expected = {one["operationId"] for one in operations if one["tags"] == [name.lower()]}
        assert shown == expected != set()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_address_answers_with_problem_details(client, method):
    response = client.generic(method, "/api/v1/nothing/here")
    assert (response.status_code, codes(response)) == (404, ["E_REQUEST_NOT_FOUND"])
    assert response["Content-Type"] == "application/problem+json"


def test_a_method_that_an_address_does_not_accept_is_named_in_problem_details(client, run):
    response = Caller(client, run.submission.created_by)("DELETE", "tracks")
    assert (response.status_code, codes(response)) == (405, ["E_REQUEST_INVALID"])
    assert response["Allow"] == "GET"
    assert response.json()["problems"][0]["found"] == "DELETE"
