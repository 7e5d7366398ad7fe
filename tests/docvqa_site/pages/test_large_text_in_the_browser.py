"""With text at 200%, or in a very narrow window, pages are no wider than the screen."""

from itertools import combinations

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Browser

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.submissions.models import RunState, SubmissionState
from docvqa_site.ui.labels import Box
from tests.docvqa_site.factories import make_epsilons, make_run, make_submission, make_track
from tests.docvqa_site.pages.test_method_in_the_browser import SITE, answer_static_files

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("browser")]

WIDER = """() => [
  document.documentElement.scrollWidth - document.documentElement.clientWidth,
  [...document.querySelectorAll("main *, header *, footer *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest("pre, .formula, .link-row"))
    .map((one) => `${one.tagName}.${one.className?.baseVal ?? one.className} ${one.textContent.trim().slice(0, 30)}`)
    .slice(0, 12),
]"""


def test_no_page_is_wider_than_a_window_of_195_pixels(client: Client, browser: Browser) -> None:
    bytes_track = make_track(
        FEWEST_BYTES, slug="track-1", anls_threshold=0.1, name="Communication-efficient FL"
    )
    private = make_track(
        BEST_ANLS_AT_BUDGET, slug="track-2", budgets=[1, 4, 8], name="Differentially private FL"
    )
    one = make_submission(track=bytes_track, state=SubmissionState.SUBMITTED, title="A method with a name")
    make_run(one, state=RunState.SCORED, anls=0.5, anls_low=0.4, anls_high=0.6, bytes_total=147_000_000)
    rival = make_submission(track=bytes_track, state=SubmissionState.SUBMITTED, title="Another one")
    make_run(rival, state=RunState.SCORED, anls=0.51, anls_low=0.4, anls_high=0.6, bytes_total=15_000_000)
    other = make_submission(track=private, state=SubmissionState.SUBMITTED, title="Noise")
    make_run(
        other,
        state=RunState.SCORED,
        budget=4.0,
        anls=0.5,
        bytes_total=147_000_000,
        epsilon=3.9,
        epsilons=make_epsilons(3.9),
        accountant="PLD, evaluator 0.1.0, grid 0.0001",
    )
    pages = [
        "/",
        "/docs/faq/",
        "/leaderboard/track-1/",
        "/leaderboard/track-2/",
        f"/submissions/{one.pk}/",
        reverse("leaderboard:compare", args=["track-1"]) + f"?method={one.pk}&method={rival.pk}",
        reverse("calculator:calculator"),
        reverse("account_login"),
    ]
    texts = {address: _text(client, address) for address in pages}
    client.force_login(one.created_by)
    for address in (reverse("notifications:list"), reverse("submissions:list")):
        texts[address] = _text(client, address)
    found = {}
    page = browser.new_page(viewport={"width": 195, "height": 422})
    page.route(f"{SITE}/static/**", answer_static_files)
    for address, text in texts.items():
        page.route(
            f"{SITE}{address}",
            lambda route, _=None, body=text: route.fulfill(
                body=body, content_type="text/html; charset=utf-8"
            ),
        )
        page.goto(SITE + address)
        wider, parts = page.evaluate(WIDER)
        if wider > 0:
            found[address] = (wider, parts)
        # As a browser does that enlarges the text alone.
        page.set_viewport_size({"width": 390, "height": 844})
        page.add_style_tag(content="html { font-size: 200% }")
        wider, parts = page.evaluate(WIDER)
        page.set_viewport_size({"width": 195, "height": 422})
        if wider > 0:
            found[f"{address} with large text"] = (wider, parts)
    assert found == {}, "\n".join(map(repr, found.items()))


def _text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return response.text


TEXTS = """() => [...document.querySelectorAll(".picture text")].map((text) => {
  const { left, top, right, bottom } = text.getBoundingClientRect();
  return [left, top, right, bottom];
})"""


def test_the_drawing_of_the_home_page_can_be_read_on_a_phone(client: Client, browser: Browser) -> None:
    html = client.get("/").text
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.route(f"{SITE}/static/**", answer_static_files)
    page.route(f"{SITE}/", lambda route: route.fulfill(body=html, content_type="text/html; charset=utf-8"))
    page.goto(f"{SITE}/")
    texts = page.evaluate(TEXTS)
    assert len(texts) == 7
    assert min(bottom - top for _, top, _, bottom in texts) >= 11.5
    boxes = [Box(*corners) for corners in texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    page.close()
