"""Small controls of many pages: links in rows, buttons that copy, and what is offered without a script."""

from xml.etree import ElementTree

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.submissions.models import RunState, SubmissionState
from tests.docvqa_site.factories import make_run, make_submission, make_track, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("browser")]

# A browser lets pages write to the clipboard only there, or with TLS.
SITE = "http://localhost"
LOW = """() => [...document.querySelectorAll("a[href], summary")]
  .filter((link) => link.checkVisibility() && !link.closest("svg, .visually-hidden"))
  .filter((link) => ["width", "height"].some((side) => link.getBoundingClientRect()[side] < 24))
  .map((link) => link.textContent)"""
OUTSIDE = """() => [...document.querySelectorAll(".way g > rect ~ text")].filter((text) =>
  text.getBoundingClientRect().right > text.parentElement.firstElementChild.getBoundingClientRect().right - 3)
  .map((text) => text.textContent)"""
SMALL_TEXT = """() => [...document.querySelectorAll("svg text")]
  .filter((text) => text.checkVisibility())
  .filter((text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a < 12)
  .map((text) => text.textContent)"""


def open_page(context: BrowserContext, client: Client, address: str) -> Page:
    response = client.get(address)

    def answer(route: Route) -> None:
        file = finders.find(route.request.url.removeprefix(f"{SITE}/static/"))
        if file:
            route.fulfill(path=file)
        else:
            policy = {"Content-Security-Policy": response["Content-Security-Policy"]}
            route.fulfill(body=response.text, headers=policy, content_type="text/html; charset=utf-8")

    page = context.new_page()
    page.route("**/*", answer)
    page.goto(SITE + address)
    return page


def test_links_are_at_least_24_pixels_high_and_wide(client: Client, browser: Browser) -> None:
    make_track(FEWEST_BYTES, slug="bytes")
    make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 8])
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    for address in (
        "/leaderboard/bytes/",
        "/tracks/bytes/",
        "/tracks/private/",
        "/docs/faq/",
        "/docs/errors/",
        "/account/login/",
    ):
        assert open_page(context, client, address).evaluate(LOW) == []


def test_figures_have_no_text_below_12_pixels_on_a_phone(client: Client, browser: Browser) -> None:
    make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 8])
    context = browser.new_context(viewport={"width": 390, "height": 844})
    for address in ("/", "/tracks/private/"):
        page = open_page(context, client, address)
        assert page.evaluate(SMALL_TEXT) == []
        assert page.evaluate(OUTSIDE) == []


def test_each_button_that_copies_is_named_by_its_part_and_says_what_it_did(
    client: Client, browser: Browser
) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = open_page(context, client, "/")
    expect(page.get_by_role("button", name="Copy: Commands to take part")).to_have_count(1)
    button = page.get_by_role("button", name="Copy: BibTeX entry")
    button.click()
    expect(page.locator("#cite ~ .copy + [role=status]")).to_have_text("Copied")
    expect(button).to_have_text("Copied")


@pytest.mark.parametrize(
    "address", ["/", "/tracks/private/", "/docs/starter-kit/", "/docs/roles/participant/"]
)
def test_commands_break_between_options_and_are_never_scrolled(
    client: Client, browser: Browser, address: str
) -> None:
    make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 8])
    page = open_page(browser.new_context(viewport={"width": 390, "height": 844}), client, address)
    commands = page.locator("pre:has(.unit)")
    expect(commands).not_to_have_count(0)
    assert not commands.evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth).length")
    units = commands.locator(".unit")
    heights = units.evaluate_all(
        "all => all.filter((one) => one.textContent.length < 30 && one.offsetHeight > 30).map((one) => one.textContent)"
    )
    assert heights == []
    assert commands.first.inner_text() == commands.first.text_content()


def test_what_a_browser_does_not_let_the_page_copy_is_selected(client: Client, browser: Browser) -> None:
    page = open_page(browser.new_context(), client, "/")
    page.get_by_role("button", name="Copy: BibTeX entry").click()
    expect(page.locator("#cite ~ .copy + [role=status]")).to_have_text("Not copied, but selected")
    assert page.evaluate("getSelection().toString()").startswith("@")


def test_without_scripts_no_passkey_is_offered(client: Client, browser: Browser) -> None:
    page = open_page(browser.new_context(java_script_enabled=False), client, "/account/login/")
    expect(page.get_by_role("button", name="Log in", exact=True)).to_be_visible()
    expect(page.get_by_text("Log in with a passkey")).to_be_hidden()


def test_boxes_keep_their_size_beside_long_texts(client: Client, browser: Browser) -> None:
    client.force_login(make_user())
    for width in (390, 1280):
        context = browser.new_context(viewport={"width": width, "height": 800})
        boxes = open_page(context, client, reverse("notifications:list")).locator("input[type=checkbox]")
        assert boxes.count() > 3
        sizes = boxes.evaluate_all("boxes => boxes.map((box) => [box.offsetWidth, box.offsetHeight].join())")
        assert set(sizes) == {"18,18"}


def test_a_plot_is_saved_as_a_file_that_looks_the_same_without_the_page(
    client: Client, browser: Browser
) -> None:
    track = make_track(FEWEST_BYTES, slug="bytes", anls_threshold=0.5)
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED, title="Few & <small>")
    make_run(submission, state=RunState.SCORED, anls=0.8, anls_low=0.7, anls_high=0.9, bytes_total=1000)
    context = browser.new_context(accept_downloads=True)
    page = open_page(context, client, "/leaderboard/bytes/")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save as SVG: ANLS vs. communication").click()
    assert saving.value.suggested_filename == "bytes-bytes.svg"
    saved = saving.value.path().read_bytes()
    texts = [text.text for text in ElementTree.fromstring(saved).iter("{http://www.w3.org/2000/svg}text")]
    assert {"ANLS vs. communication", "Few & <small>", "threshold 0.5000", "on the Pareto front"} <= set(
        texts
    )
    alone = context.new_page()
    alone.set_content(saved.decode())
    # The color of the front, which the page's styles set.
    lines = page.evaluate("getComputedStyle(document.querySelector('.plot-wide .plot-front')).stroke")
    strokes = "[...document.querySelectorAll('polyline')].map((line) => getComputedStyle(line).stroke)"
    assert lines in alone.evaluate(strokes)
    assert alone.locator("a").count() == 0
