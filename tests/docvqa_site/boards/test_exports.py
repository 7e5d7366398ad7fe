"""What others build on: JSON with its schema, a feed, and results for the Hub."""

import xml.etree.ElementTree as ElementTree
from datetime import date

import pytest
import yaml
from django.conf import settings
from django.urls import reverse
from huggingface_hub import parse_eval_result_entries
from jsonschema_rs import Draft202012Validator

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.submissions.models import RunState, SubmissionState
from tests.docvqa_site.factories import (
    change_results,
    make_run,
    make_submission,
    make_team,
    make_track,
)

pytestmark = pytest.mark.django_db
ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def track():
    return make_track(BEST_ANLS_AT_BUDGET, slug="privacy", name="Privacy", budgets=[1, 4], required_reviews=1)


@pytest.fixture
def run(track):
    team = make_team(name="<Engines>")
    submission = make_submission(team, track, state=SubmissionState.SUBMITTED, title="A & B")
    return make_run(submission, state=RunState.SCORED, budget=4.0, epsilon=3.9, anls=0.123456)


def test_the_json_file_has_every_row_and_follows_its_schema(client, run):
    body = client.get("/leaderboard/privacy.json").json()
    schema_address = body.pop("$schema")
    assert schema_address == settings.SITE_URL + "/leaderboard/privacy.schema.json"
    schema = client.get(schema_address.removeprefix(settings.SITE_URL)).json()
    Draft202012Validator(schema).validate(body)
    assert [board["count"] for board in body["boards"]] == [0, 1]
    (row,) = body["boards"][1]["rows"]
    assert (row["method"], row["rank"], row["results"]["anls"]) == ("A & B", 1, 0.1234)


def test_the_feed_has_the_newest_results(client, run):
    response = client.get("/leaderboard/privacy/feed/")
    assert response["Content-Type"].startswith("application/atom+xml")
    (entry,) = ElementTree.fromstring(response.text).findall(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}title") == "A & B by <Engines>"
    assert entry.findtext(f"{ATOM}id") == f"urn:uuid:{run.pk}"
    assert "ANLS 0.1234, ε = 3.9000" in (entry.findtext(f"{ATOM}summary") or "")
    assert "0.12345" not in response.text
    again = client.get("/leaderboard/privacy/feed/", headers={"If-None-Match": response["ETag"]})
    assert again.status_code == 304


def test_the_feed_rounds_epsilon_up(client, run):
    change_results(run, epsilon=4.00001)
    assert "ε = 4.0001" in client.get("/leaderboard/privacy/feed/").text


def test_results_for_the_hub_name_its_data_set_and_the_page(client, run, settings):
    address = reverse("submissions:eval_results", args=[run.submission.pk])
    assert client.get(address).status_code == 404
    settings.HUB_DATASET = "organization/pfl-docvqa"
    # The reader of the Hub's own client.
    (entry,) = parse_eval_result_entries(yaml.safe_load(client.get(address).text))
    assert (entry.dataset_id, entry.task_id) == ("organization/pfl-docvqa", "privacy-epsilon-4")
    assert entry.value == 0.1234
    assert date.fromisoformat(str(entry.date)) == run.scored_at.date()
    assert entry.source_url == settings.SITE_URL + run.submission.get_absolute_url()
    assert "under review" in str(entry.notes)
    assert "bytes of communication (counted)" in str(entry.notes)
    type(run).objects.update(disqualified_because="Forged.")
    (entry,) = parse_eval_result_entries(yaml.safe_load(client.get(address).text))
    assert "ANLS, disqualified" in str(entry.notes)


def test_a_team_page_lists_its_results_with_their_ranks(client, run):
    better = make_submission(track=run.submission.track, state=SubmissionState.SUBMITTED)
    make_run(better, state=RunState.SCORED, budget=4.0, epsilon=3.9, anls=0.5)
    html = client.get(run.submission.team.get_absolute_url()).text
    assert "A &amp; B" in html
    assert 'board-top">2<' in html
    assert better.title not in html
    assert "No scored runs yet" in client.get(make_team().get_absolute_url()).text


def test_a_team_page_shows_the_name_of_each_board_once(client, run):
    html = client.get(run.submission.team.get_absolute_url()).content.decode()
    assert html.count("<caption") == html.count('<caption class="visually-hidden">') == 1


def test_the_queries_of_a_team_page_do_not_grow_with_its_runs(client, run, django_assert_max_num_queries):
    team = run.submission.team
    for _ in range(5):
        submission = make_submission(team, run.submission.track, state=SubmissionState.SUBMITTED)
        make_run(submission, state=RunState.SCORED, budget=4.0, epsilon=3.9)
    with django_assert_max_num_queries(12):
        client.get(team.get_absolute_url())
