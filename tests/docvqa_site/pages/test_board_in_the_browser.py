"""A board with all of its columns in a browser, where it is wider than its frame."""

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

# The page's text is as wide as its title with the buttons beside it.
IN_ITS_COLUMN = """() => {
  const frame = document.querySelector(".board-wrap").getBoundingClientRect();
  const column = document.querySelector("main > .spread").getBoundingClientRect();
  return frame.left >= column.left && frame.right <= column.right;
}"""


def test_a_wide_board_scrolls_in_its_column_with_the_status_and_the_first_row_in_sight(
    client: Client, browser: Browser
) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1], leakage_set="red-team")
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED, title="A method with a name")
    results = {"anls": 0.5, "anls_low": 0.4, "anls_high": 0.6, "bytes_total": 147_000_000, "accuracy": 0.4}
    privacy = {
        "epsilon": 0.9,
        "epsilons": make_epsilons(0.9),
        "accountant": "PLD, evaluator 0.1.0, grid 0.0001",
    }
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
    assert frame.evaluate("(wrap) => wrap.scrollWidth > wrap.clientWidth")
    assert page.evaluate(INSIDE)
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.evaluate(IN_ITS_COLUMN)
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
    heads = page.locator(".board-wrap").aria_snapshot()
    for name in ("Rank", "Communication", "ANLS", "Byte count", "Status"):
        assert f'columnheader "{name}"' in heads
    table = page.locator(".plot .table-wrap")
    assert table.evaluate("(wrap) => wrap.scrollWidth <= wrap.clientWidth")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    link = table.locator("a").first
    assert link.evaluate("(a) => [a === document.activeElement, getComputedStyle(a).outlineStyle]") == [
        True,
        "solid",
    ]
