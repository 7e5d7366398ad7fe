"""Times in a browser somewhere: UTC stays, with the reader's own time beside it, and fields say what date they hold."""

import pytest
from django.contrib.staticfiles import finders
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.xdist_group("browser")

TIME = '<time datetime="2026-11-22T02:30:00+00:00" title="Nov 22, 2026, 02:30 UTC">'
PAGE = f"""<p id="at">{TIME}Nov 22, 2026, 02:30 UTC</time></p>
<p id="day">{TIME}Nov 22, 2026</time></p>
<p id="since"><input type="date" id="d" value="2026-04-03"></p>
<p id="ends"><input type="datetime-local" id="e"></p>"""


def page_in(browser: Browser, zone: str) -> Page:
    page = browser.new_context(timezone_id=zone, locale="de-DE").new_page()
    page.set_content(PAGE)
    page.add_script_tag(path=finders.find("ui/local-time.js"))
    return page


def test_readers_elsewhere_see_their_own_time_with_its_date_where_that_differs(browser: Browser) -> None:
    page = page_in(browser, "America/New_York")
    expect(page.locator("#at")).to_have_text("Nov 22, 2026, 02:30 UTC · Nov 21, 2026, 21:30 your time")
    # A date alone stays as short as it is, with the time in its title.
    expect(page.locator("#day")).to_have_text("Nov 22, 2026")
    title = page.locator("#day time").get_attribute("title")
    assert title == "Nov 22, 2026, 02:30 UTC · Nov 21, 2026, 21:30 your time"
    expect(page_in(browser, "Asia/Kolkata").locator("#at")).to_have_text(
        "Nov 22, 2026, 02:30 UTC · 08:00 your time"
    )


def test_who_lives_by_utc_sees_nothing_twice(browser: Browser) -> None:
    expect(page_in(browser, "UTC").locator("#at")).to_have_text("Nov 22, 2026, 02:30 UTC")


def test_a_field_says_in_words_which_date_it_holds_and_which_time_that_is_here(browser: Browser) -> None:
    page = page_in(browser, "Asia/Kolkata")
    expect(page.locator("#since output")).to_have_text("Apr 3, 2026")
    page.locator("#d").fill("2026-12-01")
    expect(page.locator("#since output")).to_have_text("Dec 1, 2026")
    expect(page.locator("#ends output")).to_have_text("")
    page.locator("#e").fill("2026-11-22T20:00")
    expect(page.locator("#ends output")).to_have_text(
        "Nov 22, 2026, 20:00 UTC · Nov 23, 2026, 01:30 your time"
    )
