"""A board with all of its columns in a browser, in wide windows and narrow ones."""

import pytest
from django.test import Client
from playwright.sync_api import Browser, Route

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.submissions.models import RunState, SubmissionState
from evaluator.messages.leakage import Leakage
from tests.docvqa_site.factories import make_epsilons, make_run, make_submission, make_track
from tests.docvqa_site.pages.test_method_in_the_browser import SITE, answer_static_files

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("browser")]

INSIDE = """() => {
  const frame = document.querySelector(".board-wrap").getBoundingClientRect();
  return [...document.querySelectorAll(".board .board-status")].every(
    (cell) => cell.getBoundingClientRect().right <= frame.right,
  );
}"""

# Of the heads, those that aren't within the frame, or of which the status covers a part.
COVERED = """() => {
  const frame = document.querySelector(".board-wrap").getBoundingClientRect();
  const heads = [...document.querySelectorAll(".board thead th")];
  const status = heads.at(-1).getBoundingClientRect();
  return heads.filter((head, place) => {
    const box = head.getBoundingClientRect();
    const end = place === heads.length - 1 ? frame.right : status.left;
    return box.left < frame.left - 1 || box.right > end + 1;
  }).map((head) => head.textContent);
}"""

SHADOW = "(cell) => Number(getComputedStyle(cell, '::before').opacity)"


def test_all_columns_of_a_wide_board_are_in_sight_or_a_shadow_says_that_it_scrolls(
    client: Client, browser: Browser
) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1], leakage_set="red-team")
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED, title="A method with a name")
    results = {"anls": 0.5, "anls_low": 0.4, "anls_high": 0.6, "bytes_total": 147_000_000, "accuracy": 0.4}
    privacy = {
        "epsilon": 0.9,
        "epsilons": make_epsilons(0.9, 0.95, 1.2),
        "accountant": "PLD, evaluator 0.1.0, grid 0.0001",
        "joint_epsilon": 1.4,
        "joint_runs": 2,
    }
    # Among its rows, no column repeats another.
    other = make_submission(track=track, state=SubmissionState.SUBMITTED, title="Another method")
    make_run(
        other,
        state=RunState.SCORED,
        budget=1.0,
        **results | {"anls": 0.4, "epsilon": 0.8, "epsilons": make_epsilons(0.7, 0.8, 1.1)},
    )
    make_run(
        submission,
        state=RunState.SCORED,
        budget=1.0,
        leakage=Leakage(providers=120, auc=0.7),
        **results,
        **privacy,
    )
    address = "/leaderboard/private/?epsilon=1&more=1"
    html = client.get(address).text

    def answer(route: Route) -> None:
        route.fulfill(body=html, content_type="text/html; charset=utf-8")

    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.route(f"{SITE}/static/**", answer_static_files)
    page.route(f"{SITE}{address}", answer)
    page.goto(SITE + address)
    frame = page.locator(".board-wrap")
    status = page.locator(".board tbody .board-status").first
    assert frame.evaluate("(wrap) => wrap.scrollWidth > wrap.clientWidth")
    assert page.evaluate(INSIDE)
    assert status.evaluate(SHADOW) > 0.5
    frame.evaluate("(wrap) => wrap.scrollTo(wrap.scrollWidth, 0)")
    page.wait_for_timeout(100)
    assert status.evaluate(SHADOW) == 0
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.locator(".board thead th").count() == 13
    assert page.evaluate(COVERED) == []
    assert status.evaluate(SHADOW) == 0
    assert page.evaluate(INSIDE)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".board tbody tr").first.evaluate(
        "(row) => row.getBoundingClientRect().bottom <= 900"
    )


STOPS = """() => [...document.querySelectorAll(".board thead a, .board thead input")].filter(
  (one) => one.checkVisibility({ visibilityProperty: true }),
).length"""


def test_a_phone_has_cards_without_hidden_stops_and_a_table_of_numbers_as_wide_as_the_screen(
    client: Client, browser: Browser
) -> None:
    track = make_track(FEWEST_BYTES, slug="bytes", anls_threshold=0.1)
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED, title="A method with a name")
    make_run(submission, state=RunState.SCORED, anls=0.5, bytes_total=147_000_000)
    address = "/leaderboard/bytes/"
    html = client.get(address).text
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.route(f"{SITE}/static/**", answer_static_files)
    page.route(
        f"{SITE}{address}",
        lambda route: route.fulfill(body=html, content_type="text/html; charset=utf-8"),
    )
    page.goto(SITE + address)
    assert page.evaluate(STOPS) == 0
    status = page.locator(".board tbody .board-status")
    assert status.evaluate("(cell) => getComputedStyle(cell, '::before').content").startswith('"Status')
    page.locator(".plot summary").click()
    rank = page.locator(".board tbody .board-rank")
    assert rank.evaluate("(cell) => getComputedStyle(cell, '::before').content").startswith('"Rank')
    # What a screen reader reads of a card: each label once.
    read = page.locator(".board-wrap").aria_snapshot()
    assert "columnheader" not in read
    for name in ("Rank", "Communication", "ANLS", "Byte count", "Status"):
        assert read.count(f'cell "{name}') == 1
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        sizes = page.locator(".plot-target:visible, .site-footer a").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect().width)"
        )
        assert len(sizes) > 10
        assert min(sizes) >= 24
    page.set_viewport_size({"width": 390, "height": 844})
    table = page.locator(".plot .table-wrap")
    assert table.evaluate("(wrap) => wrap.scrollWidth <= wrap.clientWidth")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    link = table.locator("a").first
    assert link.evaluate("(a) => [a === document.activeElement, getComputedStyle(a).outlineStyle]") == [
        True,
        "solid",
    ]


# How far apart the middles of two elements are, from top to bottom.
APART = """([first, second]) => {
  const middle = (one) => {
    const box = document.querySelector(one).getBoundingClientRect();
    return (box.top + box.bottom) / 2;
  };
  return Math.abs(middle(first) - middle(second));
}"""


def test_unfolded_filters_take_no_lines_for_a_field_or_a_button_alone(
    client: Client, browser: Browser
) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 4, 8])
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    make_run(submission, state=RunState.SCORED, budget=1.0, epsilon=0.9)
    html = client.get("/leaderboard/private/?epsilon=1").text

    def answer(route: Route) -> None:
        route.fulfill(body=html, content_type="text/html; charset=utf-8")

    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.route("**/*", answer)
    page.route("**/static/**", answer_static_files)
    page.goto(f"{SITE}/leaderboard/private/?epsilon=1")
    page.locator(".board-controls summary").click()
    assert page.evaluate(APART, ["#board-text", ".tabs"]) < 20
    assert page.evaluate(APART, [".board-controls button", ".board-more"]) < 20
    page.emulate_media(media="print")
    assert not page.locator("#board-text").is_visible()
    page.close()
