"""Leakage where people read it: a column that ranks nothing, its explanation, and a plot against ε."""

import csv
import re

import pytest

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.submissions.models import RunState, SubmissionState
from evaluator.accounting.bounds import MembershipBounds, TruePositiveRate
from evaluator.messages.leakage import Leakage
from tests.docvqa_site.factories import make_run, make_submission, make_track

pytestmark = pytest.mark.django_db

FOUND = Leakage(providers=40, auc=0.65, balanced_accuracy=0.6, tpr_at_1_percent=0.05, tpr_at_10_percent=0.2)
NOTHING = Leakage(providers=40)


def add(track, title, **fields):
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED, title=title)
    return make_run(submission, state=RunState.SCORED, **fields)


@pytest.fixture
def track():
    track = make_track(FEWEST_BYTES, slug="bytes", anls_threshold=0.5, leakage_set="red-team")
    add(track, "Leaky", bytes_total=1000, anls=0.9, leakage=FOUND)
    add(track, "Tight", bytes_total=2000, anls=0.9, leakage=NOTHING)
    add(track, "New", bytes_total=3000, anls=0.9)
    return track


def cells(html):
    return re.findall(r'data-label="Leakage">([^<]*)<', html)


def test_the_board_shows_it_and_ranks_nothing_by_it(client, track):
    html = client.get("/leaderboard/bytes/").content.decode()
    assert cells(html) == ["0.65", "n.s.", "–"]
    assert re.findall(r"board-top\">(\d)", html) == ["1", "2", "3"]
    assert "only ε bounds every attack" in html


def test_a_track_that_names_no_data_has_no_column(client, track):
    track.leakage_set = ""
    track.save()
    html = client.get("/leaderboard/bytes/").content.decode()
    assert "Leakage" not in html


def test_files_carry_it(client, track):
    lines = csv.DictReader(client.get("/leaderboard/bytes.csv").text.splitlines())
    assert [line["leakage"] for line in lines] == ["0.65", "n.s.", ""]
    rows = client.get("/leaderboard/bytes.json").json()["boards"][0]["rows"]
    assert [row["results"]["leakage"] and row["results"]["leakage"]["auc"] for row in rows] == [
        0.65,
        None,
        None,
    ]


def test_a_private_method_shows_what_was_measured_below_what_its_epsilon_allows(client):
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", leakage_set="red-team")
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    nothing = Leakage(providers=120, least_auc=0.67)
    for budget, epsilon, most, leakage in ((1, 0.9, 0.6, nothing), (8, 7.9, 0.95, FOUND)):
        bounds = MembershipBounds(
            balanced_accuracy=most,
            true_positive_rates=[
                TruePositiveRate(false_positive_rate=0.01, at_most=0.03 * budget),
                TruePositiveRate(false_positive_rate=0.1, at_most=0.12 * budget),
            ],
            gaussian_mu=None,
        )
        make_run(
            submission,
            state=RunState.SCORED,
            budget=budget,
            epsilon=epsilon,
            membership=bounds,
            leakage=leakage,
        )
    html = client.get(submission.get_absolute_url()).content.decode()
    # The other run was measured before the least AUC was stated.
    assert html.count("Measured on 120 providers, where an AUC below 0.67 is not significant.") == 1
    assert "Leakage vs. ε" in html
    assert 'aria-label="0.60 measured at ε\xa0=\xa07.9000"' in html
    # Large and of a color of its own, both in the plot and in its key.
    assert re.findall(r'<circle class="plot-mark plot-measured"[^>]* r="(\d)"[^>]*/>', html) == [
        "6",
        "6",
        "4",
    ]
    plot = html[html.index("Leakage vs. ε") :]
    rows = [re.findall(r"<t[hd][^>]*>([^<]*)<", row) for row in re.findall(r"<tr>(.*?)</tr>", plot)]
    assert ["0.9000", "n.s.", "n.s. (at most 0.600)", "n.s. (at most 0.030)", "n.s. (at most 0.120)"] in rows
    assert ["7.9000", "0.65", "0.60 (at most 0.950)", "0.05 (at most 0.240)", "0.20 (at most 0.960)"] in rows


def test_a_method_that_was_not_measured_has_no_section(client):
    run = add(make_track(FEWEST_BYTES, leakage_set="red-team"), "New", anls=0.9, bytes_total=1)
    assert 'id="leakage"' not in client.get(run.submission.get_absolute_url()).content.decode()
