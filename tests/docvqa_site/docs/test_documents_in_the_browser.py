"""Wide tables of documents in a browser: shown in full where there is room, with a shadow where they scroll."""

from collections.abc import Callable

import pytest
from django.test import Client
from playwright.sync_api import Browser, Page, expect

from tests.docvqa_site.ui.test_menu_in_the_browser import SITE, answer_static_files

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("browser")]

# Of each table, whether it is wider than what shows it, and how many gradients are behind it.
LOOK = """() => [...document.querySelectorAll("article .table-wrap")].map((one) => [
    one.scrollWidth > one.clientWidth,
    getComputedStyle(one).backgroundImage.split("linear-gradient(").length - 1,
])"""


@pytest.fixture
def shown(client: Client, browser: Browser) -> Callable[[str], Page]:
    """Opens a document in a wide window."""

    def show(address: str) -> Page:
        body = client.get(address).getvalue()
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.route("**/*", answer_static_files)
        page.route(
            f"{SITE}/page/",
            lambda route: route.fulfill(content_type="text/html; charset=utf-8", body=body),
        )
        page.goto(f"{SITE}/page/")
        return page

    return show


def test_a_table_that_goes_on_beyond_the_window_has_a_shadow(shown: Callable[[str], Page]) -> None:
    page = shown("/docs/published-settings/")
    assert page.evaluate(LOOK) == [[False, 4], [False, 4]]
    page.set_viewport_size({"width": 390, "height": 900})
    assert page.evaluate(LOOK) == [[True, 4], [True, 4]]


CODE = LOOK.replace(".table-wrap", "pre")
# Of each row of links to the parts of a page, whether it has links beyond its edge, and how much of the window it
# covers.
ROWS = """() => [...document.querySelectorAll(".page-contents")].map((one) => [
    one.querySelector("ul").scrollWidth > one.querySelector("ul").clientWidth,
    getComputedStyle(one).position === "sticky" ? one.offsetHeight / innerHeight : 0,
])"""


def test_code_that_goes_on_beyond_the_window_has_a_shadow(shown: Callable[[str], Page]) -> None:
    page = shown("/docs/formats/")
    page.set_viewport_size({"width": 390, "height": 900})
    looks = page.evaluate(CODE)
    assert [True, 4] in looks
    assert {gradients for _, gradients in looks} == {4}


@pytest.mark.parametrize("name", ["methods", "formats", "proofs/whole-change", "replay"])
def test_equations_are_shown_in_full_where_there_is_room(shown: Callable[[str], Page], name: str) -> None:
    page = shown(f"/docs/{name}/")
    assert page.locator("pre:not([data-copy]) > code").count() > 0
    assert not any(
        is_wide for is_wide, _ in page.evaluate(CODE.replace(" pre", " pre:not([data-copy]):has(code)"))
    )


@pytest.mark.parametrize("address", ["/docs/", "/api/v1/docs"])
def test_links_to_the_parts_of_a_page_are_all_shown_on_a_phone(
    shown: Callable[[str], Page], address: str
) -> None:
    page = shown(address)
    for width, height in ((390, 844), (320, 256)):
        page.set_viewport_size({"width": width, "height": height})
        for is_cut, covered in page.evaluate(ROWS):
            assert not is_cut
            assert covered < 0.15


def test_the_contents_lie_beside_the_text_or_above_it(shown: Callable[[str], Page]) -> None:
    page = shown("/docs/faq/")
    contents, text = page.locator(".doc-contents"), page.locator("article")
    beside, wide = contents.bounding_box(), text.bounding_box()
    assert beside is not None
    assert wide is not None
    assert beside["x"] >= wide["x"] + wide["width"]
    assert beside["y"] == wide["y"]
    page.set_viewport_size({"width": 390, "height": 900})
    above, narrow = contents.bounding_box(), text.bounding_box()
    assert above is not None
    assert narrow is not None
    assert above["y"] + above["height"] <= narrow["y"]


def test_on_a_phone_the_list_of_questions_is_folded_and_a_link_away(shown: Callable[[str], Page]) -> None:
    page = shown("/docs/faq/")
    back = page.locator(".to-contents").get_by_role("link", name="On this page")
    links = page.locator("main a").all_text_contents()
    assert links.index("On this page") < links.index(page.locator("article a").all_text_contents()[0])
    assert not back.is_visible()
    assert page.locator(".doc-contents .doc-h3").first.is_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".doc-contents .doc-h3").first).to_be_hidden()
    expect(page.locator("article h1")).to_be_in_viewport(ratio=1)
    questions = page.locator("article h3").all_text_contents()
    assert page.locator(".doc-contents .doc-h3").all_text_contents() == questions
    page.locator("article h3").nth(10).scroll_into_view_if_needed()
    box = back.bounding_box()
    assert box is not None
    assert 780 < box["y"] + box["height"] <= 844
    # What is beside it isn't shown in part.
    assert page.evaluate("document.elementFromPoint(30, 844 - 10).className") == "to-contents"
    back.click()
    assert page.evaluate("scrollY") < 400
    expect(page.locator(".doc-contents .doc-h3").first).to_be_visible()
