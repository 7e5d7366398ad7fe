"""From a token to a queued run, over the API alone."""

import pytest
from django.utils.timezone import now

from docvqa_site.evaluation.models import Evaluation
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from evaluator.messages.file_api import UploadPart
from evaluator.messages.jobs import Step
from evaluator.messages.results import RunResults
from tests.docvqa_site.api.caller import Caller, announcement, codes
from tests.docvqa_site.factories import make_run, make_submission, make_team, make_token, make_track
from tests.docvqa_site.submissions.contents import LOG, checkpoint
from tests.docvqa_site.submissions.drafts import make_complete_draft, make_private_track
from tests.docvqa_site.submissions.records import annex_for, record_of
from tests.docvqa_site.uploads.sending import cut, sha

pytestmark = pytest.mark.django_db

CHECKPOINT = checkpoint(b"21 bytes of weights..")


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def api(client, team):
    return Caller(client, team.memberships.get().user)


def draft(api, track, **fields):
    return api.post("submissions", {"track": track.slug, "title": "FedAvg", **fields})


def test_a_submission_to_the_track_without_budgets(api):
    submission = draft(api, make_track(submissions_per_day=3), description="*Plain.*")
    run = api.post(f"submissions/{submission['id']}/runs", {"budget": None})
    assert [known["id"] for known in submission["runs"]] == [run["id"]]
    artifact = api.upload(submission["id"], "checkpoint", CHECKPOINT, run["id"])
    assert (artifact["kind"], artifact["size_bytes"], artifact["sha256"]) == (
        "checkpoint",
        len(CHECKPOINT),
        sha(CHECKPOINT),
    )
    api.upload(submission["id"], "communication_log", LOG, run["id"], "log.csv")
    submitted = api.post(f"submissions/{submission['id']}/submit")
    assert submitted["state"] == "submitted"
    assert submitted["quota"] == {"limit": 3, "used": 1, "left": 2, "next_slot": None}
    assert submitted == api.get(f"submissions/{submission['id']}")
    (status,) = submitted["runs"]
    assert (status["state"], status["step"], status["queue_position"]) == ("queued", "validate", 1)
    assert (status["attempt"], status["done"], status["total"], status["problems"]) == (1, 0, 0, [])
    assert status["remaining_s"] is None
    assert api.client.get(submitted["url"]).status_code == 404  # the token opens the API, no page


def test_a_submission_to_the_track_with_budgets(api, team, settings):
    settings.UPLOAD_PART_SIZE_BYTES = 10_000
    track = make_private_track()
    submission = draft(api, track)
    for budget in (1, 8):
        run = api.post(f"submissions/{submission['id']}/runs", {"budget": budget})
        assert api.post(f"submissions/{submission['id']}/runs", {"budget": budget}) == run
        files = {"model.safetensors": checkpoint(f"at {budget}".encode()), "log.csv": LOG}
        for kind, (filename, content) in zip(("checkpoint", "communication_log"), files.items(), strict=True):
            stored = api.upload(submission["id"], kind, content, run["id"], filename)
            assert (stored["challenge"], stored["not_displayed"]) == (None, "")
        record = record_of(make_token(team, track).token)
        stored = api.upload(submission["id"], "training_record", record, run["id"], "record.jsonl")
        annex = annex_for(stored["challenge"])
        api.upload(submission["id"], "training_annex", annex, run["id"], "annex.jsonl")
    proof = b"$$\\begin{tikzcd} a \\end{tikzcd}$$ and ![figure](figure.png)"
    stored = api.upload(submission["id"], "privacy_proof", proof, None, "proof.md")
    assert stored["not_displayed"] == "1 formula, 1 picture"
    api.post(f"submissions/{submission['id']}/submit")
    assert {run.budget for run in Run.objects.filter(state=RunState.QUEUED)} == {1, 8}


def test_an_upload_resumes_where_it_stopped(api, settings):
    settings.UPLOAD_PART_SIZE_BYTES = 40
    submission = draft(api, make_track())
    run = submission["runs"][0]["id"]
    upload = api.announce(submission["id"], "checkpoint", CHECKPOINT, run)
    parts = cut(CHECKPOINT, 40)
    assert (upload["parts_total"], upload["part_size_bytes"], upload["state"]) == (3, 40, "open")
    api.send(upload["id"], [parts[1]])
    response = api("POST", f"uploads/{upload['id']}/complete")
    assert (response.status_code, codes(response)) == (409, ["E_UPLOAD_INCOMPLETE"])

    again = api.announce(submission["id"], "checkpoint", CHECKPOINT, run)  # the laptop was closed in between
    assert again == upload
    assert api.stored(again["id"]) == [UploadPart.model_validate(parts[1][0])]
    api.send(again["id"], [parts[0], parts[2]])
    first = api.post(f"uploads/{again['id']}/complete")
    assert api.post(f"uploads/{again['id']}/complete") == first
    assert api.stored(again["id"]) == []


def test_a_file_that_is_in_its_place_is_not_sent_again(api, team, settings):
    settings.UPLOAD_PART_SIZE_BYTES = 10_000
    track = make_private_track()
    submission = draft(api, track)
    run = api.post(f"submissions/{submission['id']}/runs", {"budget": 1})["id"]
    record = record_of(make_token(team, track).token)
    stored = api.upload(submission["id"], "training_record", record, run, "record.jsonl")
    again = api.announce(submission["id"], "training_record", record, run, "record.jsonl")
    assert again["state"] == "completed"
    assert api.post(f"uploads/{again['id']}/complete") == stored


def test_an_upload_is_given_up(api):
    submission = draft(api, make_track())
    upload = api.announce(submission["id"], "checkpoint", CHECKPOINT, submission["runs"][0]["id"])
    for _ in range(2):
        assert api("DELETE", f"uploads/{upload['id']}").status_code == 204
    response = api("POST", f"uploads/{upload['id']}/complete")
    assert (response.status_code, codes(response)) == (409, ["E_UPLOAD_STATE"])


def test_results_and_problems_are_reported(api, team):
    submission = make_complete_draft(team)
    api.post(f"submissions/{submission.pk}/submit")
    Evaluation.objects.update(state="running", step=Step.SCORING, done=3, total=9, remaining_s=61.5)
    Run.objects.update(state=RunState.RUNNING, results=RunResults(bytes_total=12345))
    (run,) = api.get(f"submissions/{submission.pk}")["runs"]
    assert (run["step"], run["done"], run["total"], run["results"]["bytes_total"]) == ("scoring", 3, 9, 12345)
    assert (run["results"]["anls"], run["queue_position"], run["remaining_s"]) == (None, None, 61.5)


def test_the_list_has_only_submissions_of_the_team(api, team, django_assert_max_num_queries):
    for _ in range(5):
        make_run(make_submission(team))
    make_submission()
    with django_assert_max_num_queries(7):
        page = api.get("submissions")
    listed = page["items"]
    assert (len(listed), page["count"]) == (5, 5)
    assert {entry["state"] for entry in listed} == {"draft"}


def test_the_list_says_why_runs_have_no_rank_in_as_many_queries_for_any_number(
    api, team, django_assert_max_num_queries
):
    track = make_private_track(slug="track-2")
    for number in (1, 4):
        for _ in range(number):
            submission = make_submission(
                team, track=track, state=SubmissionState.SUBMITTED, submitted_at=now(), published_at=now()
            )
            results = {"anls": 0.5, "epsilon": 9.0, "bytes_total": 10}
            make_run(submission, state=RunState.SCORED, budget=1.0, scored_at=now(), **results)
        with django_assert_max_num_queries(9):
            listed = api.get("submissions")["items"]
    reasons = {run["unranked_because"] for submission in listed for run in submission["runs"]}
    assert len(listed) == 5
    assert "" not in reasons


def test_tracks_and_their_rules(api):
    make_track(slug="track-1", trainable="*.bias\nvisual.*")
    make_private_track(slug="track-2", paused=True)
    first, second = api.get("tracks")
    assert (first["budgets"], first["closed_because"]) == ([None], "")
    assert (first["reference"], first["trainable"], second["trainable"]) == (
        "vt5-tiny",
        ["*.bias", "visual.*"],
        [],
    )
    assert (second["budgets"], second["closed_because"]) == ([1, 4, 8], "Paused by the organizers.")
    assert second["run_artifacts"] == [
        "training_record",
        "training_annex",
        "checkpoint",
        "communication_log",
    ]
    assert (second["sampling_rule"], second["accountant"], second["adjacency"]) == (
        "two_stage",
        "pld",
        "add_remove",
    )
    assert second["submission_artifacts"] == ["privacy_proof"]
    assert first["optional_artifacts"] == ["settings", "method_file", "transcript", "messages", "codec_file"]
    assert second["optional_artifacts"] == ["settings", "method_file", "round_opening"]


def test_whose_token_it_is(api, team):
    user = team.memberships.get().user
    assert api.get("me") == {
        "email": user.email,
        "name": user.name,
        "orcid": "",
        "orcid_verified": False,
        "shows_orcid": False,
        "team": team.name,
    }


def test_everything_that_is_missing_is_reported_at_once(api):
    submission = draft(api, make_track())
    response = api("POST", f"submissions/{submission['id']}/submit")
    assert response.status_code == 422
    assert codes(response) == ["E_ARTIFACT_MISSING"] * 2
    assert {"code", "message", "where", "expected", "found", "next_step"} == set(
        response.json()["problems"][0]
    )


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"kind": "training_record"}, 422, "E_ARTIFACT_KIND"),
        ({"kind": "privacy_proof"}, 422, "E_ARTIFACT_KIND"),
        ({"kind": "pickle"}, 422, "E_ARTIFACT_KIND"),
        ({"filename": "model.pt"}, 422, "E_ARTIFACT_KIND"),
        ({"size_bytes": 0}, 413, "E_ARTIFACT_SIZE"),
        ({"size_bytes": -1}, 413, "E_ARTIFACT_SIZE"),
        ({"size_bytes": 2**70}, 413, "E_ARTIFACT_SIZE"),
        ({"sha256": "abc"}, 422, "E_ARTIFACT_HASH"),
        ({"run": None}, 422, "E_ARTIFACT_KIND"),
        ({"run": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, 404, "E_REQUEST_NOT_FOUND"),
        ({"run": "first"}, 422, "E_REQUEST_INVALID"),
        ({"size_bytes": "many"}, 422, "E_REQUEST_INVALID"),
        ({"size_bytes": True}, 422, "E_REQUEST_INVALID"),
        ({"filename": ""}, 422, "E_REQUEST_INVALID"),
        ({"path": "/etc/passwd"}, 422, "E_REQUEST_INVALID"),
    ],
)
def test_an_upload_that_cannot_be_is_rejected(api, change, status, code):
    submission = draft(api, make_track())
    body = announcement(submission["id"], "checkpoint", CHECKPOINT, submission["runs"][0]["id"])
    response = api("POST", "uploads", {**body, **change})
    assert (response.status_code, codes(response)) == (status, [code])


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"title": ""}, "title"),
        ({"title": "x" * 121}, "title"),
        ({"title": "a\0b"}, "title"),
        ({"code_url": "javascript:alert(1)"}, "code_url"),
        ({"paper_url": "ftp:/nowhere"}, "paper_url"),
        ({"description": "x" * 10_001}, "description"),
        ({"state": "submitted"}, "state"),
        ({"title": None}, "title"),
    ],
)
def test_a_submission_that_is_not_valid_is_rejected_with_the_field(api, change, where):
    response = api("POST", "submissions", {"track": make_track().slug, "title": "FedAvg", **change})
    assert (response.status_code, codes(response)) == (422, ["E_REQUEST_INVALID"])
    assert where in response.json()["problems"][0]["where"]


def test_an_unknown_track_is_not_found(api):
    response = api("POST", "submissions", {"track": "track-9", "title": "FedAvg"})
    assert (response.status_code, codes(response)) == (404, ["E_REQUEST_NOT_FOUND"])


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '"x"'])
def test_a_body_that_is_no_object_is_rejected(api, body):
    response = api("POST", "submissions", body)
    assert response.status_code in (400, 422)
    assert set(codes(response)) == {"E_REQUEST_INVALID"}


def test_a_budget_without_a_board_is_rejected(api):
    submission = draft(api, make_private_track())
    response = api("POST", f"submissions/{submission['id']}/runs", {"budget": 2})
    assert (response.status_code, codes(response)) == (422, ["E_SUBMISSION_BUDGET"])


def test_submitting_twice_is_a_conflict(api, team):
    submission = make_complete_draft(team)
    api.post(f"submissions/{submission.pk}/submit")
    response = api("POST", f"submissions/{submission.pk}/submit")
    assert (response.status_code, codes(response)) == (409, ["E_SUBMISSION_STATE"])


def test_the_quota_is_a_conflict(api, team):
    track = make_track(submissions_per_day=1)
    api.post(f"submissions/{make_complete_draft(team, track).pk}/submit")
    response = api("POST", f"submissions/{make_complete_draft(team, track).pk}/submit")
    assert (response.status_code, codes(response)) == (409, ["E_SUBMISSION_QUOTA"])
