"""The page of a method: where its description stands, and ANLS by question type there, in the API, and on no board."""

import pytest

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.submissions.models import RunState, SubmissionState
from tests.docvqa_site.factories import change_results, make_run, make_submission, make_track

pytestmark = pytest.mark.django_db

TYPES = [
    {"name": "total_amount", "anls": 0.876, "anls_low": 0.81, "anls_high": 0.915},
    {"name": "date & <b>", "anls": 0.5, "anls_low": 0.4, "anls_high": 0.6},
]


@pytest.fixture
def submission():
    track = make_track(BEST_ANLS_AT_BUDGET, slug="privacy", budgets=[1, 4])
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    make_run(submission, state=RunState.SCORED, budget=1.0, epsilon=0.9, question_types=TYPES[:1])
    make_run(submission, state=RunState.SCORED, budget=4.0, epsilon=3.9, question_types=TYPES)
    return submission


def test_a_method_has_a_table_of_its_types_at_every_budget(client, submission):
    text = " ".join(client.get(submission.get_absolute_url()).text.split())
    assert '<h2 id="by-type">ANLS by question type</h2>' in text
    assert '<th scope="col" class="num">ε = 1</th><th scope="col" class="num">ε = 4</th>' in text
    assert text.count('<strong>0.87</strong> <span class="muted small">0.81–0.92</span>') == 2
    # The run at ε = 1 has no score on the second type.
    assert '<th scope="row">date &amp; &lt;b&gt;</th> <td class="num">–</td>' in text


def test_without_types_there_is_no_such_table(client, submission):
    for run in submission.runs.all():
        change_results(run, question_types=[])
    assert "question type" not in client.get(submission.get_absolute_url()).text


def test_the_api_has_them_and_the_tables_of_many_runs_leave_them_out(client, submission):
    board = client.get("/api/v1/leaderboards/privacy").json()["boards"][1]
    assert board["rows"][0]["results"]["question_types"] == [
        {"name": "total_amount", "anls": 0.87, "anls_low": 0.81, "anls_high": 0.92},
        {"name": "date & <b>", "anls": 0.5, "anls_low": 0.4, "anls_high": 0.6},
    ]
    for address in (
        "/leaderboard/privacy.json",
        "/leaderboard/privacy.csv",
        "/leaderboard/privacy/?epsilon=4",
    ):
        assert "total_amount" not in client.get(address).text


@pytest.mark.parametrize(("text", "is_first"), [("What it is.", True), ("What it is. " * 100, False)])
def test_a_short_description_stands_above_the_results_and_a_long_one_below(
    client, submission, text, is_first
):
    submission.description = text
    submission.save()
    page = client.get(submission.get_absolute_url()).text
    assert page.count('<h2 id="description">') == 1
    assert (page.index('id="description"') < page.index('id="results"')) == is_first
