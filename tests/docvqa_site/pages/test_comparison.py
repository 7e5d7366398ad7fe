"""Two methods side by side: what their stored results say of the difference, and no more."""

from uuid import uuid4

import numpy as np
import pytest
from django.conf import settings
from django.urls import reverse
from django.utils.html import escape, strip_tags

from docvqa_site.audit.versions import boards_changed
from docvqa_site.boards.comparing import accuracy_in_words, bytes_in_words, leakage_in_words, score_difference
from docvqa_site.boards.uncertainty import difference
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.evaluation.test_sets import drawn_means
from docvqa_site.submissions.models import RunState, SubmissionState
from evaluator.messages.leakage import Leakage
from evaluator.messages.results import RunResults
from evaluator.scoring.paired_draws import means_over_draws
from tests.docvqa_site.factories import make_run, make_submission, make_track

ADDRESS = "/leaderboard/privacy/compare/"


@pytest.mark.parametrize(
    ("first", "second", "interval"),
    [
        ((0.8, 0.84), (0.7, 0.75), (0.05, 0.14)),
        ((0.8, 0.84), (0.82, 0.86), (-0.06, 0.02)),
        ((None, None), (0.5, 0.6), (-0.6, 0.5)),
    ],
)
def test_the_interval_of_a_difference_assumes_nothing_of_two_scores_together(first, second, interval):
    assert difference(first, second) == interval


def test_runs_with_the_same_draws_have_a_paired_interval_and_others_one_that_is_said_to_be_none(
    client, track
):
    rng = np.random.default_rng(5)
    hard, names = rng.uniform(0.4, 0.8, 30), [("provider", str(number)) for number in range(30)]
    ends = {"anls_low": 0.55, "anls_high": 0.7}
    elsewhere = [("provider", f"other {name}") for _, name in names]
    added = {
        title: add(track, title, 1.0, anls=anls, **ends)
        for title, anls in (("A", 0.64), ("B", 0.6), ("Elsewhere", 0.6), ("Old", 0.6))
    }
    for title, gain, clusters in (("A", 0.04, names), ("B", 0, names), ("Elsewhere", 0, elsewhere)):
        means = means_over_draws(clusters, hard + gain + rng.uniform(-0.02, 0.02, 30))
        assert means is not None
        drawn_means.store(added[title].runs.get(), [means])

    def compared(one, other):
        page = client.get(ADDRESS, {"method": [added[one].pk, added[other].pk]})
        return " ".join(page.text.split())

    paired = '</div><div class="muted small">95%, paired</div>'
    decided = '<td class="num" data-label="A vs. B">paired, {} is higher</td>'
    assert decided.format("A") in compared("A", "B")
    assert decided.format("B") in compared("B", "A")
    assert "paired, " not in compared("A", "Old")
    assert f"+0.031 to +0.044: A is higher{paired}" in compared("A", "B")
    assert f"−0.044 to −0.031: B is higher{paired}" in compared("B", "A")
    for other in ("Elsewhere", "Old"):
        text = compared("A", other)
        assert "−0.150 to +0.150: difference may be 0" in text
        assert "at least 90%, not paired" in text


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (3_000, 1_000, "A needs 3× as many bytes"),
        (1_000, 4_000, "B needs 4× as many bytes"),
        (1, 1_234_567, "B needs 1,234,567× as many bytes"),
        (7, 7, "the same"),
        (0, 7, ""),
        (None, 7, ""),
    ],
)
def test_bytes_are_compared_by_their_ratio(first, second, words):
    assert bytes_in_words(first, second) == words


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (0.7, 0.65, "+0.05"),
        (0.6, 0.65, "−0.05"),
        (0.65, 0.65, "the same"),
        (None, 0.65, "only B's is significant"),
        (0.65, None, "only A's is significant"),
        (None, None, "neither is significant"),
    ],
)
def test_leakage_is_compared_as_far_as_it_was_found(first, second, words):
    one, other = (Leakage(providers=120, auc=auc) for auc in (first, second))
    assert leakage_in_words(one, other) == words
    assert leakage_in_words(one, None) == ""


def test_no_end_of_an_interval_that_excludes_0_is_shown_as_0():
    one, other = (RunResults(anls=anls, decimals=2) for anls in (0.87, 0.89))
    assert "−0.036 to −0.004: B is higher" in score_difference(one, other, (-0.036, -0.004))
    assert "+0.004 to +0.036: A is higher" in score_difference(other, one, (0.004, 0.036))
    assert "−0.04 to −0.01: B is higher" in score_difference(one, other, (-0.036, -0.014))
    assert "−0.04 to +0.01: difference may be 0" in score_difference(one, other, (-0.036, 0.002))


def test_a_difference_that_is_not_that_of_the_shown_scores_says_so():
    one, other = (RunResults(accuracy=accuracy, decimals=2) for accuracy in (0.3899, 0.3201))
    assert accuracy_in_words(one, other) == "+0.07, computed before truncation"


@pytest.fixture
def track(db):
    return make_track(BEST_ANLS_AT_BUDGET, slug="privacy", budgets=[1, 4])


def add(track, title, budget, submission=None, **results):
    if submission is None:
        submission = make_submission(track=track, state=SubmissionState.SUBMITTED, title=title)
    make_run(submission, state=RunState.SCORED, budget=budget, epsilon=budget, **results)
    return submission


def test_scores_bytes_and_ranks_stand_side_by_side(client, track, django_assert_max_num_queries):
    track.leakage_set, quiet = "red", Leakage(providers=120, least_auc=0.6)
    track.save()
    good = add(
        track,
        "Good",
        1.0,
        anls=0.81239,
        anls_low=0.8,
        anls_high=0.83,
        accuracy=0.51239,
        bytes_total=3_000,
        leakage=quiet,
    )
    add(track, "", 4.0, submission=good, anls=0.9)
    poor = add(
        track,
        "Poor <b>",
        1.0,
        anls=0.7,
        anls_low=0.69,
        anls_high=0.72,
        bytes_total=1_000,
        accuracy=0.71239,
        leakage=quiet,
    )
    add(track, "Another", 1.0, anls=0.75)
    with django_assert_max_num_queries(13):
        page = client.get(ADDRESS, {"method": [good.pk, poor.pk]})
    text = " ".join(page.text.split())
    assert page.status_code == 200
    assert "+0.1123" in text
    assert "+0.080 to +0.140: A is higher" in text
    assert "A needs 3× as many bytes" in text
    assert "−0.2000</td>" in text
    assert "neither is significant" in text
    assert f"<title>{escape('Compare Good and Poor <b>')}: {track} · " in page.text
    for submission in (good, poor):
        run = submission.runs.get(budget=1.0)
        assert f'<a href="{reverse("submissions:run", args=[submission.pk, run.pk])}">Evidence' in page.text
    assert 'board-top">1<' in text
    assert 'board-top">3<' in text
    assert "At ε = 4, only Good has a run." in text
    assert "Poor &lt;b&gt;" in text
    assert '<th scope="row"><a class="term" href="/docs/glossary/#row-joint-ε">Joint ε</a></th>' in text
    assert "0.81239" not in text
    assert "0.51239" not in text
    poor.runs.update(disqualified_because="Forged.")
    boards_changed(track.pk)
    page = client.get(ADDRESS, {"method": [good.pk, poor.pk]})
    assert '<th scope="row">Status</th><td data-label="A"><span class="badge badge-provisional">' in page.text
    assert '<td data-label="B"><span class="badge badge-rejected">disqualified</span>' in page.text


def test_declared_bytes_are_marked_where_no_column_says_so(client, track):
    one, two = (add(track, title, 1.0, bytes_total=1_000, counting="declared") for title in ("One", "Two"))
    pages = [
        ADDRESS + f"?method={one.pk}&method={two.pk}",
        "/leaderboard/privacy/?epsilon=1",
        one.get_absolute_url(),
    ]
    mark = '1.00 kB</data> <div class="muted small">declared</div>'
    assert [client.get(address).text.count(mark) for address in pages] == [2, 2, 1]
    assert "Byte counts are exact" not in client.get(pages[0]).text
    by_bytes = make_track(slug="bytes")
    add(by_bytes, "Three", None, bytes_total=1_000, counting="declared")
    assert mark not in client.get("/leaderboard/bytes/").text


def test_the_board_prints_the_command_that_verifies_it(client, track):
    page = strip_tags(client.get("/leaderboard/privacy/").text)
    assert f"pfl verify {settings.SITE_URL} --track privacy" in page


def test_with_one_method_or_none_the_form_offers_the_leading_ones(client, track):
    one = add(track, "One", 1.0)
    over = add(track, "Over", 1.0, anls=0.95, disqualified_because="Forged.")
    add(track, "Two", 4.0)
    page = client.get(ADDRESS, {"method": str(over.pk)}).text
    assert f'<option value="{one.pk}">One' in page
    assert f'<option value="{over.pk}" selected>Over' in page
    assert page.count("Two,") == 2
    assert client.get(ADDRESS).status_code == 200
    three = client.get(ADDRESS, {"method": [one.pk, over.pk, uuid4()]})
    assert "You selected more than two methods" in three.text


def test_what_is_on_no_board_of_the_track_is_not_found(client, track):
    one = add(track, "One", 1.0)
    draft = make_submission(track=track)
    withdrawn = add(track, "Gone", 1.0)
    withdrawn.state = SubmissionState.WITHDRAWN
    withdrawn.save()
    foreign = add(make_track(BEST_ANLS_AT_BUDGET, budgets=[1.0]), "Foreign", 1.0)
    for other in (draft.pk, withdrawn.pk, foreign.pk, uuid4(), "nonsense"):
        assert client.get(ADDRESS, {"method": [one.pk, other]}).status_code == 404
    assert client.get("/leaderboard/missing/compare/").status_code == 404
    assert client.post(ADDRESS).status_code == 405


def test_boards_and_methods_lead_to_it(client, track):
    one = add(track, "One", 1.0)
    for address in ("/leaderboard/privacy/", "/leaderboard/privacy/?epsilon=1"):
        page = client.get(address).text
        assert f'form="compare" name="method" value="{one.pk}"' in page
        assert f'<form id="compare" class="cluster" method="get" action="{ADDRESS}">' in page
    assert f"{ADDRESS}?method={one.pk}" in client.get(one.get_absolute_url()).text


def test_scores_by_question_type_stand_side_by_side(client, track):
    types = [{"name": "total_amount", "anls": 0.87, "anls_low": 0.8, "anls_high": 0.9}]
    one = add(track, "One", 1.0, question_types=types)
    two = add(track, "Two", 1.0, question_types=[*types, {**types[0], "name": "date", "anls": 0.5}])
    text = " ".join(client.get(ADDRESS, {"method": [one.pk, two.pk]}).text.split())
    assert "ANLS by question type" in text
    assert '<th scope="row">total amount</th>' in text
    assert text.count("<strong>0.87</strong>") == 2
    assert text.count("<strong>0.50</strong>") == 1


def test_links_lead_to_each_budget(client, track):
    submissions = [add(track, title, 1.0, anls=0.5) for title in ("A", "B")]
    page = {"method": [submission.pk for submission in submissions]}
    assert '<a href="#pair-1">' not in client.get(ADDRESS, page).text
    for submission in submissions:
        make_run(submission, state=RunState.SCORED, budget=4, epsilon=3.9, anls=0.6)
    boards_changed(track.pk)
    assert '<a href="#pair-2">ε\xa0=\xa04</a>' in client.get(ADDRESS, page).text
