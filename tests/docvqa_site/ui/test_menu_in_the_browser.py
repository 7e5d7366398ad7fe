"""The main menu has one line at every width, for whoever has most entries, and never cuts the number of unread."""

import pytest
from django.contrib.auth.models import Permission
from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import Browser, Page, Route, expect

from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.models import Notification
from tests.docvqa_site.factories import make_team, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("browser")]

SITE = "http://testserver"
ONE_LINE = 60
PERMISSIONS = {"reviewer": ["review_proofs"], "organizer": ["review_proofs", "organize"]}
WIDTHS = (1380, 1280, 1210, 1190, 1100, 1080, 1024, 961, 390)
# The height of the header, whether a menu is shown, and whether the number is within what its menu shows.
LOOK = """() => {
    const shown = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.offsetParent);
    const fits = shown(".site-bar .count").every((one) => {
        const frame = one.closest("summary").getBoundingClientRect();
        return one.getBoundingClientRect().right <= frame.right;
    });
    return [document.querySelector(".site-header").offsetHeight, shown(".site-nav, .site-menu").length, fits];
}"""


def answer_static_files(route: Route) -> None:
    file = finders.find(route.request.url.removeprefix(f"{SITE}/static/"))
    route.fulfill(path=file) if file else route.abort()


def page_with(browser: Browser, body: bytes) -> Page:
    """Return a window that finds this page of the site, and its static files."""
    page = browser.new_page()
    page.route("**/*", answer_static_files)
    page.route(
        f"{SITE}/page/", lambda route: route.fulfill(content_type="text/html; charset=utf-8", body=body)
    )
    return page


@pytest.mark.parametrize("role", ["visitor", "participant", "reviewer", "organizer"])
def test_the_menu_has_one_line(client: Client, role: str, browser: Browser) -> None:
    if role != "visitor":
        permissions = PERMISSIONS.get(role, [])
        person = make_user(name="Maximiliane Featherstonehaugh", is_staff=bool(permissions))
        make_team(person)
        person.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        Notification.objects.bulk_create(
            Notification(user=person, kind=Kind.RESULTS, subject=str(number)) for number in range(12)
        )
        client.force_login(person)
    body = client.get("/leaderboard/").getvalue()
    page = page_with(browser, body)
    page.goto(f"{SITE}/page/")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 700})
        height, menus, fits = page.evaluate(LOOK)
        assert (height < ONE_LINE, menus, fits) == (True, 1, True), width
        has_search = page.locator(".site-search").is_visible()
        assert has_search == (width > 704), width


def test_the_menu_of_an_account_has_the_whole_name(client: Client, browser: Browser) -> None:
    person = make_user(name="Maximiliane Featherstonehaugh")
    client.force_login(person)
    body = client.get("/leaderboard/").getvalue()
    page = page_with(browser, body)
    for width, menu in ((1280, ".account-menu"), (390, ".site-menu")):
        page.set_viewport_size({"width": width, "height": 700})
        page.goto(f"{SITE}/page/")
        page.locator(f"{menu} > summary").click()
        line = page.locator(f"{menu} .menu-user")
        expect(line).to_have_text(f"Logged in as {person.name}")
        assert line.evaluate("one => one.scrollWidth <= one.clientWidth")
