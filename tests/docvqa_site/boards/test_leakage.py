"""Leakage where people read it: a column that ranks nothing, its explanation, and a plot against ε."""

import csv
import re

import pytest

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from evaluator.accounting.bounds import MembershipBounds, TruePositiveRate
from evaluator.messages.leakage import Leakage
from tests.docvqa_site.factories import change_results, make_run, make_submission, make_track

pytestmark = pytest.mark.django_db

FOUND = Leakage(providers=40, auc=0.65, balanced_accuracy=0.6, tpr_at_1_percent=0.05, tpr_at_10_percent=0.2)
NOTHING = Leakage(providers=40)
BELOW = Leakage(providers=120, least_auc=0.67)


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


def track_runs(track):
    return Run.objects.filter(submission__track=track).order_by("bytes_total")


def cells(html):
    return re.findall(r'data-label="Leakage">([^<]*)<', html)


def test_the_board_shows_it_and_ranks_nothing_by_it(client, track):
    html = client.get("/leaderboard/bytes/").content.decode()
    assert cells(html) == ["0.65", "n.s.", "–"]
    assert re.findall(r"board-top\">(\d)", html) == ["1", "2", "3"]
    assert "only ε limits them all" in html


def test_wherever_nothing_significant_is_shown_so_is_the_auc_below_which_it_lies(client, track):
    first, second, _ = track_runs(track)
    for run in (first, second):
        change_results(run, leakage=BELOW.model_dump())
    compare = f"/leaderboard/bytes/compare/?method={first.submission_id}&method={second.submission_id}"
    for address in ["/leaderboard/bytes/", first.submission.get_absolute_url(), compare]:
        assert 'n.s. <div class="muted small">AUC&nbsp;below&nbsp;0.67</div>' in client.get(address).text, (
            address
        )
    assert (
        'n.s. <div class="muted small">AUC below 0.67</div></td><td class="num" data-label="Providers tested">120</td>'
        in client.get(first.submission.get_absolute_url()).text
    )


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
    assert (
        html.count(
            "The attack was run on 120 providers; with that many, an AUC below 0.67 is not significant."
        )
        == 1
    )
    assert "Leakage vs. ε" in html
    assert 'aria-label="60% measured at ε\xa0=\xa07.9000"' in html
    # Large and of a color of its own, both in the plot and in its key.
    assert re.findall(r'<circle class="plot-mark plot-measured"[^>]* r="(\d)"[^>]*/>', html) == [
        "6",
        "6",
        "4",
    ]
    rows = plotted(html)
    assert [
        "0.9000",
        "n.s. AUC&nbsp;below&nbsp;0.67",
        "n.s. at most 60%",
        "n.s. at most 3%",
        "n.s. at most 12%",
    ] in rows
    assert ["7.9000", "0.65", "60% at most 95%", "5% at most 24%", "20% at most 96%"] in rows


def plotted(html):
    """The rows of the plot's table."""
    plot = html[html.index("Leakage vs. ε") :]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", plot)]
    return [[" ".join(re.sub(r"<[^>]*>", " ", cell).split()) for cell in row] for row in rows]


def measured_page(client, bound, **leakage):
    """The page of a method at ε = 1 whose bound on balanced accuracy is `bound`, and 1.91% on the TPR at 1% FPR."""
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", leakage_set="red-team")
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    rates = [TruePositiveRate(false_positive_rate=0.01, at_most=0.0191)]
    bounds = MembershipBounds(balanced_accuracy=bound, true_positive_rates=rates, gaussian_mu=None)
    found = Leakage(**{"providers": 120, "least_auc": 0.67, "auc": 0.7, "balanced_accuracy": 0.6, **leakage})
    make_run(submission, state=RunState.SCORED, budget=1, epsilon=0.9991, membership=bounds, leakage=found)
    return client.get(submission.get_absolute_url()).text


def test_the_maximum_of_a_single_epsilon_is_a_line_as_wide_as_the_plot(client):
    html = measured_page(client, 0.9)
    assert re.search(r'<polyline class="plot-line plot-front" points="58\.0,([\d.]+) 524\.0,\1"/>', html)
    assert "The plot shows the same attack's balanced accuracy" in html


INTERVALS = {"auc_interval": (0.6, 0.8), "balanced_accuracy_interval": (0.5, 0.7)}


def test_a_value_above_its_maximum_is_no_contradiction_if_its_interval_includes_it(client):
    html = measured_page(
        client, 0.5461, tpr_at_1_percent=0.1, tpr_at_1_percent_interval=(0, 0.2), **INTERVALS
    )
    assert "No measured value contradicts its ε" in html
    assert (
        "Above the maximum: Balanced accuracy at ε\xa0=\xa00.9991 (60%, at most 54.7%), "
        "TPR at 1% FPR at ε\xa0=\xa00.9991 (10%, at most 2%). "
        "Significant only means better than guessing. "
        "That a value is above the maximum as well can be due to the variation between providers."
    ) in html
    row = ["0.9991", "0.70 0.60–0.80", "60% 50%–70% at most 54.7%", "10% 0%–20% at most 2%", "n.s."]
    assert row in plotted(html)
    assert 'class="plot-line plot-interval"' in html
    assert "badge-flagged" not in html
    assert "above maximum" not in client.get("/leaderboard/private/?epsilon=1").text


def test_an_interval_above_the_maximum_is_flagged_and_stated(client):
    html = measured_page(
        client, 0.5461, tpr_at_1_percent=0.1, tpr_at_1_percent_interval=(0.05, 0.2), **INTERVALS
    )
    assert "No measured value contradicts" not in html
    assert (
        "At ε\xa0=\xa00.9991, the whole 95% interval of “TPR at 1% FPR” (5%–20%) is above the 2% that ε allows."
        in html
    )
    assert html.count(">above maximum<") == 3, "beside the results, in the table, and in the data of the plot"
    # Who reads a board alone learns of it too.
    for address in ("?epsilon=1", "?epsilon=all&more=1"):
        board = client.get(f"/leaderboard/private/{address}").text
        assert (
            len(re.findall(r'<a class="badge badge-flagged" href="[^"]+#leakage">above maximum', board)) == 1
        )


def test_a_value_above_its_maximum_without_an_interval_decides_nothing(client):
    html = measured_page(client, 0.5461)
    assert "It was measured before intervals were recorded" in html
    assert "contradicts its ε" not in html


def test_rounding_never_shows_an_auc_below_the_least_significant_one(client):
    html = measured_page(client, 0.9, auc=0.65)
    assert cells(html) == ["0.67"]
    assert "an AUC below 0.67 is not significant" in html


def test_a_method_without_significant_leakage_says_so_beside_the_most_that_epsilon_allows(client):
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", leakage_set="red-team")
    rates = [TruePositiveRate(false_positive_rate=0.01, at_most=0.02)]
    bounds = MembershipBounds(balanced_accuracy=0.6, true_positive_rates=rates, gaussian_mu=None)
    run = add(track, "Tight", budget=1, epsilon=0.9, anls=0.5, leakage=NOTHING, membership=bounds)
    html = client.get(run.submission.get_absolute_url()).text
    assert (
        '<th scope="row">ε\xa0=\xa01</th><td class="num" data-label="AUC of the attack">n.s.</td>'
        '<td class="num" data-label="Providers tested">40</td>'
        '<td class="num" data-label="Balanced accuracy">n.s. <div class="muted small">at most 60%</div></td>'
        '<td class="num" data-label="TPR at 1% FPR">n.s. <div class="muted small">at most 2%</div></td></tr>'
    ) in html
    assert "“At most” is this limit for any attack" in html


def test_a_method_without_epsilon_shows_what_was_measured(client, track):
    pages = [client.get(run.submission.get_absolute_url()).text for run in track_runs(track)]
    for page, found in zip(pages, ("0.65", "n.s."), strict=False):
        assert (
            f'<th scope="row">Run</th><td class="num" data-label="AUC of the attack">{found}</td>'
            '<td class="num" data-label="Providers tested">40</td></tr>'
        ) in page
        assert "“At most”" not in page


def test_the_page_of_a_method_says_how_sure_an_auc_is_beside_a_plot_and_without_one(client, track):
    sure = {"providers": 120, "least_auc": 0.67, "auc": 0.75, "auc_interval": (0.65, 0.85)}
    stated = (
        '"AUC of the attack">0.75 <div class="muted small">95% interval 0.65–0.85</div> '
        '<div class="muted small">significant from 0.67</div></td>'
        '<td class="num" data-label="Providers tested">120</td>'
    )
    without_epsilon = track_runs(track)[0]
    change_results(without_epsilon, leakage=sure)
    page = client.get(without_epsilon.submission.get_absolute_url()).text
    assert stated in page
    assert "Leakage vs. ε" not in page
    private = measured_page(client, 0.9, **sure)
    assert f'{stated}<td class="num" data-label="Balanced accuracy">60% <div' in private
    assert "Leakage vs. ε" in private


def test_a_method_that_was_not_measured_has_no_section(client):
    run = add(make_track(FEWEST_BYTES, leakage_set="red-team"), "New", anls=0.9, bytes_total=1)
    assert 'id="leakage"' not in client.get(run.submission.get_absolute_url()).content.decode()
