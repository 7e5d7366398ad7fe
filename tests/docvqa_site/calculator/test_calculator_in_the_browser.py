"""The calculator's form in a real browser. It is handed what the test's client gets; no server is started."""

from urllib.parse import urlsplit

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import Browser, Route

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("browser")]

ADDRESS = "http://testserver/privacy/calculator/"
# How wide the longest choice of each select is drawn, beside the space that the select has for it.
CUT = """() => [...document.querySelectorAll("main select")].flatMap((select) => {
    const style = getComputedStyle(select), pen = document.createElement("canvas").getContext("2d");
    pen.font = style.font;
    const arrow = parseFloat(style.fontSize) * 1.25;
    const space = select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - arrow;
    return [...select.options]
        .filter((option) => pen.measureText(option.text).width > space)
        .map((option) => `${option.text}: ${pen.measureText(option.text).width} of ${space}`);
})"""


@pytest.mark.parametrize("width", [1280, 390])
def test_no_choice_of_a_select_is_cut(client: Client, width: int, browser: Browser) -> None:
    body = client.get("/privacy/calculator/").getvalue()

    def answer(route: Route) -> None:
        path = urlsplit(route.request.url).path
        if path.startswith("/static/"):
            route.fulfill(path=finders.find(path.removeprefix("/static/")))
        else:
            route.fulfill(content_type="text/html; charset=utf-8", body=body)

    page = browser.new_page(viewport={"width": width, "height": 900})
    page.route("**/*", answer)
    page.goto(ADDRESS, timeout=20_000)
    count = page.locator("main select").count()
    cut = page.evaluate(CUT)
    assert count == 5
    assert not cut
