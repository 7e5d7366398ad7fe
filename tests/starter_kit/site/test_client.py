"""`SiteClient` against the real site, and what it makes of a site in trouble."""

from uuid import uuid4

import pytest

from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import RunToken
from docvqa_site.teams.models import Team
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.states import RunState, SubmissionState
from starter_kit.site.client import TRIES, SiteClient
from tests.docvqa_site.submissions.drafts import make_complete_draft
from tests.services.live_site import Fault, LiveSite
from tests.services.ports import free_port

TRACKS = "GET /api/v1/tracks"


def response(content: bytes, status: str = "200 OK", size: int | None = None) -> bytes:
    """The bytes of an HTTP response that announces `size` bytes of content."""
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content) if size is None else size}\r\n\r\n"
    return head.encode() + content


def code_of(caught: pytest.ExceptionInfo[ProblemError]) -> ErrorCode:
    return caught.value.problem.code


def test_the_tracks_come_with_their_rules(site_client: SiteClient) -> None:
    first, second = site_client.tracks()
    assert (first.slug, first.budgets, first.submission_artifacts) == ("track-1", [None], [])
    assert (second.slug, second.budgets) == ("track-2", [1, 4, 8])


def test_a_draft_is_filled_submitted_and_listed(site_client: SiteClient) -> None:
    draft = site_client.create_submission("track-2", "Mine", "*Ours.*")
    run = site_client.add_run(draft.id, 4)
    assert site_client.add_run(draft.id, 4) == run
    found = site_client.submission(draft.id)
    assert [(run.id, run.budget, run.state) for run in found.runs] == [(run.id, 4, RunState.DRAFT)]
    assert [(listed.id, listed.state) for listed in site_client.submissions()] == [
        (draft.id, SubmissionState.DRAFT)
    ]


def test_each_training_gets_a_run_token_of_its_own(site_client: SiteClient, team: Team) -> None:
    tokens = [site_client.issue_run_token("track-2") for _ in range(2)]
    assert {issued.token for issued in tokens} == {issued.token for issued in RunToken.objects.all()}
    assert len({issued.token for issued in tokens}) == 2


def test_a_key_is_registered_once(site_client: SiteClient) -> None:
    public_key = "ab" * 32
    registered = site_client.register_key(public_key, "laptop")
    assert site_client.register_key(public_key, "again") == registered
    assert site_client.signing_keys() == [registered]


def test_a_request_is_sent_again_while_the_site_is_in_trouble(
    site: LiveSite, site_client: SiteClient
) -> None:
    faults: list[Fault | bytes] = [Fault.UNAVAILABLE, Fault.DISCONNECTED, response(b"[", size=1000)]
    for fault in faults:
        site.break_down(TRACKS, fault, times=1)
    assert len(site_client.tracks()) == 2
    assert site.calls[TRACKS] == len(faults) + 1


def test_a_site_that_gets_too_many_requests_is_asked_again_when_it_says(
    site: LiveSite, site_client: SiteClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("starter_kit.site.client.time.sleep", pauses.append)
    busy = (
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    site.break_down(TRACKS, busy, times=2)
    assert len(site_client.tracks()) == 2
    assert pauses == [7.0, 7.0]


def test_a_site_that_stays_in_trouble_is_reported_as_unreachable(
    site: LiveSite, site_client: SiteClient
) -> None:
    site.break_down(TRACKS)
    with pytest.raises(ProblemError) as caught:
        site_client.tracks()
    assert (code_of(caught), caught.value.problem.found) == (ErrorCode.SITE_UNREACHABLE, "status 503")
    assert site.calls[TRACKS] == TRIES


def test_what_the_site_rejects_is_reported_with_its_code_and_not_tried_again(site: LiveSite) -> None:
    with pytest.raises(ProblemError) as caught:
        SiteClient(site.url, "another").tracks()
    assert code_of(caught) is ErrorCode.REQUEST_SIGN_IN
    assert (
        caught.value.problem.next_step
        == f"Create a token at {site.url}/account/tokens/ and set PFL_TOKEN to it."
    )
    assert site.calls[TRACKS] == 1


def test_a_submission_whose_response_was_lost_is_not_rejected_as_a_second_one(
    site: LiveSite, site_client: SiteClient, team: Team
) -> None:
    draft = make_complete_draft(team)
    call = f"POST /api/v1/submissions/{draft.pk}/submit"
    Track.objects.filter(pk=draft.track_id).update(submission_license="CC-BY-4.0")
    site.break_down(call, Fault.ANSWER_LOST, times=1)
    assert site_client.submit(draft.pk, "CC-BY-4.0").state is SubmissionState.SUBMITTED
    assert site.calls[call] == 2


def test_a_rejected_submission_stays_rejected(site_client: SiteClient) -> None:
    draft = site_client.create_submission("track-1", "Mine")
    with pytest.raises(ProblemError) as caught:
        site_client.submit(draft.id)
    assert [problem.code for problem in caught.value.problems] == [ErrorCode.ARTIFACT_MISSING] * 2
    with pytest.raises(ProblemError) as caught:
        site_client.submit(uuid4())
    assert code_of(caught) is ErrorCode.REQUEST_NOT_FOUND


def test_an_address_where_nobody_answers_is_reported_as_unreachable() -> None:
    with pytest.raises(ProblemError) as caught:
        SiteClient(f"http://127.0.0.1:{free_port()}", "token", first_pause_s=0.001).tracks()
    assert code_of(caught) is ErrorCode.SITE_UNREACHABLE
    assert caught.value.problem.found == "Connection refused"


@pytest.mark.parametrize("address", ["benchmark.example", "http://", "ftp://benchmark.example"])
def test_an_address_that_is_none_is_rejected_at_once(address: str) -> None:
    with pytest.raises(ProblemError) as caught:
        SiteClient(address, "token", first_pause_s=1000).tracks()
    assert code_of(caught) is ErrorCode.SITE_UNREACHABLE


def test_another_site_is_recognized(site: LiveSite, token: str) -> None:
    with pytest.raises(ProblemError) as caught:
        SiteClient(f"{site.url}/elsewhere", token).tracks()
    assert (code_of(caught), caught.value.problem.next_step) == (
        ErrorCode.SITE_UNREACHABLE,
        "Check the site's address.",
    )


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(response(b"<html>Welcome to another site</html>"), id="a page"),
        pytest.param(response(b""), id="nothing"),
        pytest.param(response(b'[{"slug": "track-1"}]'), id="a track without its rules"),
        pytest.param(response(b'{"problems": []}', "400 Bad Request"), id="an error without a problem"),
        pytest.param(
            response(b'{"problems": [{"code": "E_OTHER", "message": ""}]}', "400 Bad Request"),
            id="an unknown code",
        ),
        pytest.param(response(b"\xff", "404 Not Found"), id="an error that is not text"),
    ],
)
def test_a_response_of_another_kind_is_not_understood(
    site: LiveSite, site_client: SiteClient, answer: bytes
) -> None:
    site.break_down(TRACKS, answer)
    with pytest.raises(ProblemError) as caught:
        site_client.tracks()
    assert code_of(caught) is ErrorCode.SITE_UNREACHABLE
    assert site.calls[TRACKS] == 1
