"""What a team changes of its submissions over the API: text, files to try again with, cancel, withdraw."""

import pytest

from docvqa_site.audit.models import AuditEntry
from docvqa_site.evaluation.models import Evaluation
from docvqa_site.submissions.models import RunState, Submission
from docvqa_site.teams.models import Membership
from tests.docvqa_site.api.caller import Caller, codes
from tests.docvqa_site.factories import make_run, make_submission, make_team, make_user
from tests.docvqa_site.submissions.drafts import make_complete_draft, make_private_track

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def api(client, team):
    return Caller(client, team.memberships.get().user)


@pytest.fixture
def submitted(api, team):
    submission = make_complete_draft(team, title="FedAvg", description="Plain.")
    api.post(f"submissions/{submission.pk}/submit")
    return f"submissions/{submission.pk}"


def test_a_draft_changes_what_is_named_and_keeps_the_rest(api, team):
    draft = make_submission(team, title="FedAvg", description="Plain.")
    changed = api(
        "PATCH", f"submissions/{draft.pk}", {"title": "FedProx", "code_url": "github.com/x/y"}
    ).json()
    assert (changed["title"], changed["description"]) == ("FedProx", "Plain.")
    assert changed["code_url"] == "https://github.com/x/y"
    assert changed["edited_at"] is None


def test_text_and_links_change_after_submitting_and_the_title_does_not(api, submitted):
    changed = api("PATCH", submitted, {"paper_url": "https://arxiv.org/abs/1"}).json()
    assert changed["paper_url"] == "https://arxiv.org/abs/1"
    assert changed["edited_at"] is not None
    response = api("PATCH", submitted, {"title": "Else"})
    assert (response.status_code, codes(response)) == (409, ["E_SUBMISSION_STATE"])


def test_a_team_agrees_that_its_proof_is_public_and_takes_that_back(api, submitted):
    assert api.get(submitted)["publishes_proof"] is False
    for consents in (True, False):
        assert api("PATCH", submitted, {"publishes_proof": consents}).json()["publishes_proof"] is consents
        assert api("PATCH", submitted, {"paper_url": ""}).json()["publishes_proof"] is consents


def test_an_unknown_field_is_called_one(api, submitted):
    (problem,) = api("PATCH", submitted, {"colour": "red"}).json()["problems"]
    assert (problem["where"].rpartition(".")[2], problem["expected"]) == ("colour", "no such field")


def test_a_link_that_is_none_is_rejected(api, submitted):
    response = api("PATCH", submitted, {"code_url": "javascript:alert(1)"})
    assert (response.status_code, codes(response)) == (422, ["E_REQUEST_INVALID"])


def test_what_waits_is_canceled_and_what_has_begun_is_not(api, submitted):
    assert api.post(f"{submitted}/cancel")["state"] == "draft"
    api.post(f"{submitted}/submit")
    Evaluation.objects.filter(state="queued").update(state="running")
    Submission.objects.get().runs.update(state=RunState.RUNNING)
    response = api("POST", f"{submitted}/cancel")
    assert (response.status_code, codes(response)) == (409, ["E_SUBMISSION_STATE"])


def test_a_rejected_submission_is_tried_again_with_its_files(api, submitted):
    Submission.objects.get().runs.update(state=RunState.REJECTED)
    draft = api.post(f"{submitted}/copy")
    assert (draft["state"], draft["title"], draft["description"]) == ("draft", "FedAvg", "Plain.")
    assert api.post(f"submissions/{draft['id']}/submit")["state"] == "submitted"


def test_only_an_owner_withdraws_what_is_submitted(client, api, team, submitted):
    member = make_user()
    Membership.objects.create(team=team, user=member)
    response = Caller(client, member)("POST", f"{submitted}/withdraw")
    assert (response.status_code, codes(response)) == (403, ["E_TEAM_OWNER"])
    assert api.post(f"{submitted}/withdraw")["state"] == "withdrawn"


def test_a_reason_for_withdrawing_is_public(client, api, submitted):
    response = api("POST", f"{submitted}/withdraw", {"reason": "x" * 301})
    assert (response.status_code, codes(response)) == (422, ["E_REQUEST_INVALID"])
    api.post(f"{submitted}/withdraw", {"reason": "The log missed a round."})
    entry = AuditEntry.objects.get(action="submission.withdrawn")
    assert entry.details["reason"] == "The log missed a round."


def test_a_run_of_a_draft_is_removed(api, team):
    run = make_run(make_submission(team, make_private_track()), budget=1.0)
    address = f"submissions/{run.submission_id}/runs/{run.pk}"
    assert api("DELETE", address).status_code == 204
    assert api("DELETE", address).status_code == 404


def test_an_error_is_problem_details(api):
    response = api("GET", "submissions/00000000-0000-0000-0000-000000000000")
    assert response["Content-Type"] == "application/problem+json"
    body = response.json()
    assert (body["status"], body["title"], body["type"]) == (404, "Not Found", "about:blank")
    assert body["detail"] == body["problems"][0]["message"]
