"""The license of a track's submissions: accepted on submitting, and kept with them."""

import csv
import io

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from docvqa_site.accounts.services import create_token
from docvqa_site.boards.published import as_csv
from docvqa_site.challenge.models import Track
from docvqa_site.submissions import services
from docvqa_site.submissions.models import RunState, Submission, SubmissionState
from tests.docvqa_site.factories import make_run, make_submission, make_track
from tests.docvqa_site.submissions.drafts import make_complete_draft
from tests.docvqa_site.submissions.submitting import codes, submit

pytestmark = pytest.mark.django_db
LICENSE = "CC-BY-4.0"
NOT_ACCEPTED = "E_SUBMISSION_LICENSE"


@pytest.fixture
def track() -> Track:
    return make_track(submission_license=LICENSE)


@pytest.fixture
def draft(track: Track) -> Submission:
    return make_complete_draft(track=track)


def test_the_track_page_states_it(client: Client, track: Track) -> None:
    page = client.get(track.get_absolute_url()).text
    assert "License of submissions" in page
    assert LICENSE in page
    assert f"--license {LICENSE}" in page


def test_it_is_accepted_at_the_button_and_kept(client: Client, draft: Submission) -> None:
    client.force_login(draft.created_by)
    assert f'name="license" value="{LICENSE}"' in client.get(draft.get_absolute_url()).text
    address = f"/submissions/{draft.pk}/submit/"
    refused = client.post(address)
    assert "Not submitted." in str(next(iter(get_messages(refused.wsgi_request))))
    draft.refresh_from_db()
    assert (draft.state, draft.license) == (SubmissionState.DRAFT, "")
    client.post(address, {"license": LICENSE})
    draft.refresh_from_db()
    assert (draft.state, draft.license) == (SubmissionState.SUBMITTED, LICENSE)


def test_a_client_that_knows_no_license_learns_what_to_do(draft: Submission) -> None:
    _, secret = create_token(draft.created_by, "cluster")
    address = f"/api/v1/submissions/{draft.pk}/submit"
    client = Client(HTTP_AUTHORIZATION=f"Bearer {secret}")
    refused = client.generic("POST", address)
    (problem,) = refused.json()["problems"]
    assert (refused.status_code, problem["code"], problem["expected"]) == (422, NOT_ACCEPTED, LICENSE)
    assert f"pfl submit --license {LICENSE}" in problem["next_step"]
    body = {"license": LICENSE}
    accepted = client.post(address, body, content_type="application/json")
    assert (accepted.status_code, accepted.json()["license"]) == (200, LICENSE)


def test_another_license_is_not_accepted_and_is_named_with_all_else_that_is_wrong(track: Track) -> None:
    submission = make_submission(track=track)
    make_run(submission)
    assert codes(submission)[-1] == NOT_ACCEPTED
    assert len(codes(submission)) > 1


def test_practice_and_tracks_without_one_need_none(track: Track) -> None:
    for submission in (make_complete_draft(track=track, practice=True), make_complete_draft()):
        submit(submission)
        assert submission.license == ""


def test_a_change_leaves_what_was_accepted(draft: Submission, track: Track) -> None:
    services.submit(draft, draft.created_by, accepted_license=LICENSE)
    Track.objects.filter(pk=track.pk).update(submission_license="MIT")
    draft.refresh_from_db()
    assert draft.license == LICENSE


def test_exports_have_it(track: Track) -> None:
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED, license=LICENSE)
    make_run(submission, state=RunState.SCORED)
    (row,) = csv.DictReader(io.StringIO(as_csv(track)))
    assert row["license"] == LICENSE
