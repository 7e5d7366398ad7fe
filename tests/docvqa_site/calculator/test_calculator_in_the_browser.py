"""The calculator's form in a real browser. It is handed what the test's client gets; no server is started."""

from urllib.parse import urlsplit

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import Browser, Page, Route, expect

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("browser")]

ADDRESS = "http://testserver/privacy/calculator/"
RESULT = "?sampling=one_stage&noise_multiplier=1&client_rate=0.2"
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


def opened(client: Client, browser: Browser, width: int, query: str = "", place: str = "") -> Page:
    """The calculator in a window of this width."""
    body = client.get(f"/privacy/calculator/{query}").getvalue()

    def answer(route: Route) -> None:
        path = urlsplit(route.request.url).path
        if path.startswith("/static/"):
            route.fulfill(path=finders.find(path.removeprefix("/static/")))
        else:
            route.fulfill(content_type="text/html; charset=utf-8", body=body)

    page = browser.new_page(viewport={"width": width, "height": 900})
    page.route("**/*", answer)
    page.goto(ADDRESS + place, timeout=20_000)
    return page


def test_the_result_has_the_focus(client: Client, browser: Browser) -> None:
    page = opened(client, browser, 390, RESULT, "#result")
    expect(page.locator("#result")).to_be_focused()


@pytest.mark.parametrize("width", [1280, 390])
def test_no_choice_of_a_select_is_cut(client: Client, width: int, browser: Browser) -> None:
    page = opened(client, browser, width)
    # Noise of clients shows all fields.
    page.locator("#id_placement").select_option("client_full")
    count = page.locator("main select").count()
    cut = page.evaluate(CUT)
    assert count == 5
    assert not cut


def test_fields_that_are_ignored_are_hidden_and_a_recorded_noise_is_shown_in_full(
    client: Client, browser: Browser
) -> None:
    page = opened(client, browser, 1280, "?sampling=one_stage&noise_multiplier=2.14223712275&client_rate=0.2")
    noise, placement = page.locator("#id_noise_multiplier"), page.locator("#id_placement")
    assert noise.evaluate("field => field.scrollWidth <= field.clientWidth")
    for name in ("client_rate", "rounds_per_cycle", "secure_aggregation", "colluding_clients"):
        expect(page.locator(f"#id_{name}")).to_be_hidden()
    page.locator("#id_sampling").select_option("two_stages")
    placement.select_option("client_share")
    for name in ("client_rate", "provider_rate", "colluding_clients"):
        expect(page.locator(f"#id_{name}")).to_be_visible()
    page.locator("#id_find").select_option("noise")
    expect(noise).to_be_hidden()


# Fields whose value is cut off, and selects that are lower than the lines of what is chosen.
HIDDEN_PARTS = """() => [...document.querySelectorAll("main :is(input, select)")]
    .filter((field) => field.checkVisibility() && !["hidden", "checkbox"].includes(field.type))
    .flatMap((field) => {
        if (field.localName === "input") return field.scrollWidth > field.clientWidth ? [field.id] : [];
        const style = getComputedStyle(field), pen = document.createElement("canvas").getContext("2d");
        pen.font = style.font;
        const space = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        const lines = Math.ceil(pen.measureText(field.selectedOptions[0].text).width / space);
        return field.clientHeight < lines * parseFloat(style.fontSize) ? [field.id] : [];
    })"""


def test_with_large_letters_every_value_is_shown_in_full(client: Client, browser: Browser) -> None:
    page = opened(client, browser, 390, RESULT)
    page.add_style_tag(content="html { font-size: 200% }")
    page.locator("#id_placement").select_option("client_full")
    assert page.evaluate(HIDDEN_PARTS) == []
