"""What is shown of a run whose privacy budget is no longer one of its track: no rank, and why, wherever it is shown."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from docvqa_site.audit.versions import boards_changed
from docvqa_site.boards.models import RankRecord
from docvqa_site.boards.ordering import kept_orders, rank_if_published, ranks_of
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.submissions.models import RunState, SubmissionState
from tests.docvqa_site.api.caller import Caller
from tests.docvqa_site.factories import make_run, make_submission, make_track, owner_of, sign_in_organizer

pytestmark = pytest.mark.django_db

REASON = "ε = 8 is no longer a budget of this track"
SHORT = "budget removed"


@pytest.fixture
def runs():
    """Runs at budgets 4 and 8, of which 8 was removed after both had a rank."""
    track = make_track(BEST_ANLS_AT_BUDGET, slug="privacy", budgets=[1, 4, 8])
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    runs = [
        make_run(submission, state=RunState.SCORED, budget=budget, epsilon=budget - 0.1)
        for budget in (4.0, 8.0)
    ]
    track.budgets = [1, 4]
    track.save()
    boards_changed(track.pk)
    return runs


def text_of(response) -> str:
    return response.text.replace("\xa0", " ")


def test_it_has_no_rank_in_any_order(runs) -> None:
    kept, removed = runs
    track = removed.submission.track
    orders = kept_orders(track, [4.0, 8.0], "version")
    assert orders[4.0].rank(kept.pk) == 1
    assert len(orders[8.0]) == 0
    assert ranks_of(track, 8.0, [removed.pk]) == {}
    assert rank_if_published(removed) is None


def test_its_method_page_says_why_and_links_to_no_board(client, runs) -> None:
    page = text_of(client.get(runs[1].submission.get_absolute_url()))
    assert f"At ε = 8: not ranked ({REASON})" in page
    assert f'<span class="badge badge-unranked">{SHORT}</span>' in page
    assert "/leaderboard/privacy/?epsilon=4" in page
    assert "?epsilon=8" not in page


def test_the_history_of_its_ranks_links_to_no_board(client, runs) -> None:
    for run in runs:
        for days, rank in ((40, 2), (20, 1)):
            RankRecord.objects.create(run=run, day=timezone.localdate() - timedelta(days=days), rank=rank)
    page = text_of(client.get(runs[1].submission.get_absolute_url()))
    assert "Rank at ε = 8" in page
    assert "?epsilon=4" in page
    assert "?epsilon=8" not in page


def test_its_team_reads_that_it_is_not_ranked(client, runs) -> None:
    client.force_login(owner_of(runs[1].submission.team))
    for address in (reverse("submissions:list"), "/"):
        page = text_of(client.get(address))
        assert page.count("<strong>#1</strong>") == 1
        assert page.count("not ranked") == 1


def test_the_api_says_why(client, runs) -> None:
    (listed,) = Caller(client, owner_of(runs[1].submission.team)).get("submissions")["items"]
    assert {run["budget"]: (run["rank"], run["unranked_because"]) for run in listed["runs"]} == {
        4.0: (1, ""),
        8.0: (None, REASON),
    }


def test_a_comparison_has_no_board_for_it(client, runs) -> None:
    other = make_submission(track=runs[0].submission.track, state=SubmissionState.SUBMITTED)
    make_run(other, state=RunState.SCORED, budget=8.0, epsilon=7.9)
    chosen = {"method": [runs[1].submission_id, other.pk]}
    assert "?epsilon=8" not in client.get("/leaderboard/privacy/compare/", chosen).text


def test_a_method_that_is_on_no_board_any_more_is_not_offered_for_comparison(client, runs) -> None:
    other = make_submission(track=runs[0].submission.track, state=SubmissionState.SUBMITTED)
    make_run(other, state=RunState.SCORED, budget=8.0, epsilon=7.9)
    assert "Compare with another method" in client.get(runs[0].submission.get_absolute_url()).text
    assert "Compare with another method" not in client.get(other.get_absolute_url()).text


def test_organizers_read_why(client, runs) -> None:
    sign_in_organizer(client, "organize", "view_submission")
    page = text_of(client.get(f"/organize/runs/{runs[1].pk}/"))
    assert f"Not ranked: {REASON}" in page
    assert "<dt>Rank</dt>" not in page
