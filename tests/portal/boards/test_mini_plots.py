"""The small plots of cards and tabs: what they draw, the words that say the same, and how small they are."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from portal.challenge.models import Track
from portal.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from portal.submissions.models import RunState, SubmissionState
from tests.portal.factories import make_run, make_submission, make_track

pytestmark = pytest.mark.django_db

MOST_BYTES = 6000
LONG_AGO = timezone.now() - timedelta(days=30)


def add(track: Track, day: int = 0, budget: float | None = None, **fields: object) -> None:
    submission = make_submission(
        track=track, state=SubmissionState.SUBMITTED, submitted_at=LONG_AGO + timedelta(days=day)
    )
    make_run(submission, state=RunState.SCORED, budget=budget, **fields)


def figures(html: str) -> list[str]:
    found = re.findall(r'<figure class="mini-plot">.*?</figure>', html, re.S)
    assert all(len(figure.encode()) < MOST_BYTES for figure in found)
    return found


def label(svg: str) -> str:
    found = re.search(r'aria-label="([^"]+)"', svg)
    assert found is not None
    return found[1]


def test_a_card_by_bytes_has_a_dot_for_each_run_and_the_threshold(client: Client) -> None:
    track = make_track(FEWEST_BYTES, slug="bytes", anls_threshold=0.8)
    for size in range(1, 31):
        add(track, bytes_total=1000 * size, anls=0.9)
    for address in ("/", "/leaderboard/"):
        (figure,) = figures(client.get(address).text)
        assert figure.count("<circle") == 12
        assert figure.count("plot-budget") == 1
        assert label(figure) == (
            "ANLS against bytes of 12 runs, from 1.00 kB to 12.0 kB: 12 at or above the threshold 0.8000."
        )


def test_runs_below_the_threshold_and_without_bytes_are_drawn_too(client: Client) -> None:
    track = make_track(FEWEST_BYTES, slug="bytes", anls_threshold=0.8)
    add(track, bytes_total=5000, anls=0.85)
    add(track, bytes_total=0, anls=0.12345678)
    (figure,) = figures(client.get("/").text)
    assert sorted(re.findall(r"plot-mark plot-(\w+)", figure)) == ["front", "other"]
    assert "1 at or above the threshold 0.8000" in label(figure)
    assert ">0 bytes</text>" in figure
    assert "0.1234" not in figure


def test_a_card_of_a_private_track_has_the_best_score_of_each_budget(client: Client) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 4, 8])
    add(track, budget=1.0, epsilon=0.9, anls=0.41239)
    add(track, budget=1.0, epsilon=0.9, anls=0.3)
    add(track, budget=8.0, epsilon=7.9, anls=0.6)
    (figure,) = figures(client.get("/").text)
    assert label(figure) == "Best ANLS: 0.4123 at ε\xa0=\xa01, 0.6000 at ε\xa0=\xa08."
    assert figure.count("<circle") == 2
    assert "ε\xa0=\xa04</text>" in figure


def test_tabs_show_the_first_scores_of_each_budget_on_one_axis(client: Client) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 4, 8])
    for day, score in enumerate((0.2, 0.1, 0.51239, 0.3)):
        add(track, day, budget=4.0, epsilon=3.9, anls=score)
    add(track, 5, budget=4.0, epsilon=4.1, anls=0.9)
    add(track, 1, budget=8.0, epsilon=7.9, anls=0.6)
    for address in ("/leaderboard/private/", "/leaderboard/private/?epsilon=4"):
        html = client.get(address).text
        start = html.index('aria-label="Privacy budget"')
        found = re.findall(r'<svg class="mini-tab".*?</svg>', html[start : html.index("</nav>", start)])
        assert [label(svg) for svg in found] == [
            "best ANLS 0.5123, the first 4 from 0.1000",
            "best ANLS 0.6000",
        ]
        best = [re.findall(r'plot-front" cx="([\d.]+)"', svg) for svg in found]
        assert float(best[0][0]) < float(best[1][0])
        assert sum(len(svg.encode()) for svg in found) < MOST_BYTES


def test_where_nothing_has_a_score_nothing_is_drawn(client: Client) -> None:
    make_track(FEWEST_BYTES, slug="bytes")
    make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 4])
    assert not figures(client.get("/").text)
    assert "mini-tab" not in client.get("/leaderboard/private/").text
