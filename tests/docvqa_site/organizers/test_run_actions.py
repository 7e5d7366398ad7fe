import re
import uuid
from datetime import date

import pytest
from django.contrib.auth.models import Permission
from django.core import mail
from django.test import Client
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.boards.boards import boards_of, stored_boards
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.notifications.models import Notification
from docvqa_site.notifications.preferences import choose_mails
from docvqa_site.reviews.models import ProofReview
from docvqa_site.submissions.models import RunState, SubmissionState
from docvqa_site.submissions.services import mark_baseline
from docvqa_site.teams.models import PastMembership
from evaluator.messages.jobs import Check, CheckStatus
from tests.docvqa_site.factories import (
    change_results,
    make_organizer,
    make_reviewer,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_user,
    owner_of,
    scored_submission,
    sign_in_organizer,
)
from tests.docvqa_site.reviews.test_decisions import accept

pytestmark = pytest.mark.django_db

ACTIONS = ("evaluate", "disqualify", "requalify", "accept-log", "refund", "baseline", "examine")


@pytest.fixture
def organizer(client: Client):
    return sign_in_organizer(
        client, "organize", "view_submission", "change_submission", "change_evaluation", "add_examination"
    )


@pytest.fixture
def run():
    track = make_track(anls_threshold=0.5)
    return make_run(
        make_submission(track=track, state=SubmissionState.SUBMITTED), state=RunState.SCORED, anls=0.6
    )


def test_the_page_of_a_run_leads_to_its_track_and_its_place_on_the_board(client: Client, run) -> None:
    slug = run.submission.track.slug
    sign_in_organizer(client, "organize", "view_submission")
    page = client.get(f"/organize/runs/{run.pk}/").text
    assert f'<a href="/leaderboard/{slug}/">#1 of 1</a>' in page
    assert f'href="/organize/tracks/{slug}/"' not in page
    sign_in_organizer(client, "organize", "view_submission", "change_track")
    assert f'<a href="/organize/tracks/{slug}/">' in client.get(f"/organize/runs/{run.pk}/").text


def test_runs_are_listed_and_found_by_the_state_of_their_proof(client: Client, organizer) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET, required_reviews=1)
    waits, accepted = (
        make_run(
            make_submission(track=track, state=SubmissionState.SUBMITTED, published_at=timezone.now()),
            state=RunState.SCORED,
            budget=8,
            epsilon=7.9,
        )
        for _ in range(2)
    )
    accept(accepted.submission, make_reviewer())
    page = client.get("/organize/runs/").text
    assert "under review</div>" in page
    assert "proof accepted</div>" in page
    assert 'data-label="Rank">1 at ε\xa0=\xa08<div class="muted small">could be 1–2</div></td>' in page
    for proof, shown in (("reviewers", waits), ("verified", accepted), ("rejected", None)):
        page = client.get("/organize/runs/", {"proof": proof}).text
        found = [f"/organize/runs/{run.pk}/" in page for run in (waits, accepted)]
        assert found == [run == shown for run in (waits, accepted)], proof


def test_a_run_leads_to_its_evidence_and_to_its_review_with_who_is_to_decide_by_when(
    client: Client, organizer
) -> None:
    run = scored_submission().runs.get()
    submission = run.submission
    due, reviewer = date(2100, 1, 2), make_reviewer(name="Rita Reader")
    ProofReview.objects.create(submission=submission, reviewer=reviewer, assigned_at=timezone.now(), due=due)
    page = client.get(f"/organize/runs/{run.pk}/").text
    assert "under review; assigned to Rita Reader, due Jan 2, 2100." in page
    assert f'<a href="/reviews/{submission.pk}/assign/">Assign reviewers</a>' in page
    assert f'<a href="/reviews/{submission.pk}/">Review</a>' not in page
    organizer.user_permissions.add(Permission.objects.get(codename="review_proofs"))
    assert f'<a href="/reviews/{submission.pk}/">Review</a>' in client.get(f"/organize/runs/{run.pk}/").text


def test_without_proofs_there_is_no_filter_for_them(client: Client, organizer, run) -> None:
    assert 'name="proof"' not in client.get("/organize/runs/").text


@pytest.mark.parametrize(("ranking", "budget"), [(FEWEST_BYTES, None), (BEST_ANLS_AT_BUDGET, 1.0)])
def test_a_disqualified_run_is_listed_without_a_rank_and_with_the_reason(
    client: Client, organizer, ranking, budget
) -> None:
    track = make_track(ranking, anls_threshold=0.5)
    runs = [
        make_run(
            make_submission(track=track, state=SubmissionState.SUBMITTED),
            state=RunState.SCORED,
            budget=budget,
            epsilon=budget and 0.9,
        )
        for _ in range(2)
    ]
    choose_mails(owner_of(runs[0].submission.team), [])
    address = f"/organize/runs/{runs[0].pk}/"
    assert "It loses its rank, #" in client.get(address).text
    assert (
        client.post(
            f"{address}disqualify/", {"reason": "Trained on the test set.", "confirmed": "on"}
        ).status_code
        == 302
    )
    reason = "disqualified by the organizers: Trained on the test set."
    for board in (boards_of(track)[0].rows, stored_boards(track)[0][0:10]):
        assert [(row.entry.run, row.rank, row.reason) for row in board] == [
            (runs[1].pk, 1, ""),
            (runs[0].pk, None, reason),
        ]
    assert f"Not ranked: {reason}" in client.get(address).content.decode()
    assert reason in client.get(runs[0].submission.get_absolute_url()).content.decode()
    assert AuditEntry.objects.get(action="run.disqualified").actor == organizer
    assert "Rank</dt>" not in client.get(address).text
    for state, shown in (("disqualified", runs[0]), ("scored", runs[1])):
        page = client.get("/organize/runs/", {"state": state}).text
        assert [f"/organize/runs/{run.pk}/" in page for run in runs] == [run == shown for run in runs]
    again = client.post(f"{address}disqualify/", {"reason": "Another.", "confirmed": "on"}, follow=True).text
    assert "The run is already disqualified." in again
    assert client.post(f"{address}requalify/", {"confirmed": "on"}).status_code == 422
    assert boards_of(track)[0].rows[0].entry.run == runs[1].pk
    client.post(f"{address}requalify/", {"reason": "It was another file.", "confirmed": "yes"})
    evidence = Client().get(f"{runs[0].submission.get_absolute_url()}runs/{runs[0].pk}/").text
    assert "The organizers' reason: It was another file." in evidence
    assert "Reason: It was another file." in Notification.objects.latest("pk").text
    # Mailed although the team has turned such mails off.
    assert ["has been" in sent.subject for sent in mail.outbox] == [True, False]
    assert "run: requalified by" in (page := client.get(address).text)
    assert ">#1 of 2" in page
    assert ("Recomputed ε</dt>" in page) is (budget is not None)
    assert boards_of(track)[0].rows[0].entry.run == runs[0].pk


def test_public_pages_of_a_run_lead_its_organizers_to_the_desk(client: Client, organizer, run) -> None:
    method, desk = run.submission.get_absolute_url(), f'href="/organize/runs/{run.pk}/"'
    pages = [method, f"{method}runs/{run.pk}/"]
    for address in pages:
        assert desk in client.get(address).text
        assert desk not in Client().get(address).text
    run.submission.team.memberships.create(user=organizer)
    for address in pages:
        assert desk not in client.get(address).text


def test_the_list_has_ranks_bytes_and_epsilon_and_is_filtered_by_flags(
    client: Client, organizer, run
) -> None:
    flagged = make_run(
        make_submission(track=make_track(BEST_ANLS_AT_BUDGET, budgets=[1]), state=SubmissionState.SUBMITTED),
        state=RunState.SCORED,
        budget=1.0,
        epsilon=0.9,
        bytes_total=2_500_000,
        checks=[Check(id="log.directions", status=CheckStatus.FLAGGED, expected="both ways", found="one")],
    )
    page = client.get("/organize/runs/").text
    assert re.findall(r'data-label="Rank">(.*?)</td>', page) == ["1 at ε\xa0=\xa01", "1"]
    assert "2.50 MB" in page
    assert re.search(r'data-label="ε">.*0\.9', page)
    page = client.get("/organize/runs/", {"flagged": "yes"}).text
    assert [f"/organize/runs/{one.pk}/" in page for one in (run, flagged)] == [False, True]
    assert 'data-label="Rank">–</td>' not in page
    client.post(f"/organize/runs/{run.pk}/disqualify/", {"reason": "Forged.", "confirmed": "on"})
    assert 'data-label="Rank">–</td>' in client.get("/organize/runs/").text


def test_a_disqualification_needs_a_reason(client: Client, organizer, run) -> None:
    assert client.post(f"/organize/runs/{run.pk}/disqualify/", {"reason": " "}).status_code == 422
    run.refresh_from_db()
    assert run.disqualified_because == ""


def test_a_flagged_log_withholds_the_rank_until_an_organizer_accepts_it(
    client: Client, organizer, run
) -> None:
    check = Check(
        id="log.directions", status=CheckStatus.FLAGGED, expected="both ways", found="73728000 bytes"
    )
    run.submission.track.phases.update(requires_counted=False)
    change_results(run, counting="declared", log_flag="log.directions", checks=[check])
    (board,) = stored_boards(run.submission.track)
    reason = "check log.directions flagged the run, and no organizer has accepted its log yet"
    assert [(row.rank, row.reason) for row in board] == [(None, reason)]
    assert reason in client.get(run.submission.get_absolute_url()).text
    address = f"/organize/runs/{run.pk}/"
    assert "Flagged communication logs" in client.get("/organize/").text
    page = client.get(address).text
    assert "expected both ways, found 73,728,000 bytes" in page
    assert re.search(r"<dt>Checks</dt><dd>1 flagged: <a [^>]+>[^<]+</a></dd>", page)
    assert "1 flagged</span>" in client.get("/organize/runs/").text
    page = client.post(f"{address}accept-log/", {"reason": "Adaptive codec."}, follow=True).text
    assert "run: log accepted" in page
    assert "Adaptive codec." in page
    assert reason not in client.get(run.submission.get_absolute_url()).text
    assert "Flagged communication logs" not in client.get("/organize/").text
    assert [row.rank for row in board] == [1]
    assert AuditEntry.objects.get(action="run.log_accepted").actor == organizer


def test_a_log_without_a_flag_needs_nobody(client: Client, organizer, run) -> None:
    page = client.post(f"/organize/runs/{run.pk}/accept-log/", follow=True).text
    assert "No check of the log flagged the run." in page
    run.refresh_from_db()
    assert run.log_accepted_at is None


def test_a_run_is_evaluated_again(client: Client, organizer, run) -> None:
    client.post(f"/organize/runs/{run.pk}/evaluate/", {"confirmed": "yes"})
    run.refresh_from_db()
    assert run.state == RunState.QUEUED
    again = client.post(f"/organize/runs/{run.pk}/evaluate/", {"confirmed": "yes"}, follow=True)
    assert "The evaluation is still in progress." in again.content.decode()


def test_a_slot_is_given_back_once(client: Client, organizer, run) -> None:
    for _ in range(2):
        answer = {"confirmed": "yes", "reason": "The site was down."}
        client.post(f"/organize/runs/{run.pk}/refund/", answer)
    assert AuditEntry.objects.get(action="submission.refunded").actor == organizer
    assert "submission: refunded by" in (page := client.get(f"/organize/runs/{run.pk}/").text)
    assert "The site was down." in page


@pytest.mark.parametrize("action", ["evaluate", "refund"])
def test_what_cannot_be_undone_needs_a_confirmation(client: Client, organizer, run, action) -> None:
    page = client.post(f"/organize/runs/{run.pk}/{action}/", follow=True).content.decode()
    assert "Nothing was changed" in page
    run.refresh_from_db()
    assert (run.state, run.submission.refunded_at) == (RunState.SCORED, None)


def test_a_method_is_marked_as_baseline_once_confirmed_and_unmarked(client: Client, organizer, run) -> None:
    unconfirmed = {"is_baseline": "yes"}
    page = client.post(f"/organize/runs/{run.pk}/baseline/", unconfirmed, follow=True).text
    assert "Nothing was changed" in page
    assert 'name="confirmed" value="yes" required> The organizers made this method' in page
    assert "Baselines keep their ranks" in page
    run.submission.refresh_from_db()
    assert not run.submission.is_baseline
    for answer, expected in (({**unconfirmed, "confirmed": "yes"}, True), ({"is_baseline": "no"}, False)):
        client.post(f"/organize/runs/{run.pk}/baseline/", answer)
        run.submission.refresh_from_db()
        assert run.submission.is_baseline is expected
    assert "submission: marked baseline" in client.get(f"/organize/runs/{run.pk}/").text


def test_runs_are_found_by_track_state_and_text(client: Client, organizer, run) -> None:
    other = make_run(state=RunState.FAILED)
    page = client.get("/organize/runs/", {"track": run.submission.track.slug, "text": run.submission.title})
    assert [found.pk for found in page.context["page"]] == [run.pk]
    page = client.get("/organize/runs/", {"state": "failed"})
    assert [found.pk for found in page.context["page"]] == [other.pk]


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_needs_a_post_an_existing_run_and_its_permission(
    client: Client, organizer, run, action
) -> None:
    address = f"/organize/runs/{run.pk}/{action}/"
    data = {"reason": "None.", "is_baseline": "yes"}
    assert client.get(address).status_code == 405
    assert client.post(f"/organize/runs/{uuid.uuid4()}/{action}/", data).status_code == 404
    client.force_login(make_organizer("organize", "view_submission"))
    assert client.post(address, data).status_code == 403


@pytest.mark.parametrize("address", ["/organize/runs/", "/organize/runs/{}/"])
def test_a_page_of_runs_needs_a_get_and_its_permission(client: Client, organizer, run, address) -> None:
    address = address.format(run.pk)
    assert client.post(address).status_code == 405
    client.force_login(make_organizer("organize"))
    assert client.get(address).status_code == 403


@pytest.mark.parametrize("action", ACTIONS)
def test_nobody_decides_on_runs_of_a_track_in_which_they_compete(
    client: Client, organizer, run, action
) -> None:
    own = make_submission(make_team(organizer), run.submission.track, state=SubmissionState.SUBMITTED)
    own_run = make_run(own, state=RunState.SCORED)
    assert f"You compete in {run.submission.track}" in client.get("/organize/runs/").text
    for found in (run, own_run):
        assert client.post(f"/organize/runs/{found.pk}/{action}/", {"reason": "None."}).status_code == 404
        assert client.get(f"/organize/runs/{found.pk}/").status_code == 404


def test_nobody_decides_on_runs_of_a_team_that_they_were_in(client: Client, organizer, run) -> None:
    # Baselines don't make an organizer a competitor.
    mark_baseline(run.submission, True, make_user())
    assert client.get(f"/organize/runs/{run.pk}/").status_code == 200
    PastMembership.objects.create(team=run.submission.team, user=organizer, joined_at=timezone.now())
    assert client.get(f"/organize/runs/{run.pk}/").status_code == 404
