"""Passkeys in a real browser with a virtual authenticator, under the site's content security policy."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import vouch_for_address
from tests.docvqa_site.factories import make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

PASSWORD = "rose-hill-42-x"
# A machine that does much else answers late.
PATIENCE_MS = 60_000
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def test_a_menu_closes_on_escape_and_on_a_click_elsewhere(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(reverse("challenge:list"))
    menu, summary = page.locator("details.site-menu"), page.locator("details.site-menu summary")
    summary.click()
    expect(menu).to_have_attribute("open", "")
    page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    expect(summary).to_be_focused()
    summary.click()
    page.locator("footer").click(position={"x": 5, "y": 5})
    expect(menu).not_to_have_attribute("open", "")


@pytest.fixture
def organizer() -> User:
    cache.clear()
    user = make_user(
        "olga@example.org", PASSWORD, is_staff=True, is_superuser=True, second_factor=False, name="Olga"
    )
    vouch_for_address(user)
    return user


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture
def page(browser: Browser, live_server: LiveServer, complaints: list[str]) -> Iterator[Page]:
    context = browser.new_context(base_url=live_server.url)
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if "Content Security" in line.text else None)
    protocol = context.new_cdp_session(page)
    protocol.send("WebAuthn.enable")
    protocol.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    yield page
    context.close()


def look(page: Page, name: str) -> None:
    """Keep a picture of the page in both widths, for whoever looks at the design."""
    if folder := os.environ.get("PFL_SCREENSHOTS"):
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=Path(folder) / f"{name}-{width}.png", full_page=True)


def log_in(page: Page, user: User) -> None:
    page.goto(reverse("account_login"))
    look(page, "login")
    page.get_by_label("Email address").fill(user.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()


def confirm(page: Page) -> None:
    expect(page.get_by_role("heading", name="Confirm it's you")).to_be_visible()
    look(page, "reauthenticate")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()


def test_an_organizer_adds_a_passkey_and_logs_in_with_it(
    page: Page, organizer: User, complaints: list[str]
) -> None:
    log_in(page, organizer)
    page.goto("/admin/")
    expect(page.get_by_text("Organizers log in with a second factor.")).to_be_visible()
    look(page, "second-factor")
    page.get_by_role("link", name="Add a passkey").click()
    confirm(page)
    look(page, "add-passkey")
    page.get_by_label("Name").fill("Laptop")
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add the passkey").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    look(page, "recovery-codes")
    assert Authenticator.objects.get(type="webauthn").wrap().name == "Laptop"
    page.goto("/admin/")
    expect(page.get_by_role("heading", name="Site administration")).to_be_visible()

    # After the password, the passkey is asked for.
    page.context.clear_cookies()
    log_in(page, organizer)
    expect(page.get_by_role("heading", name="Second factor")).to_be_visible()
    look(page, "authenticate")
    page.get_by_role("button", name="Use a passkey instead").click()
    expect(page.get_by_role("banner").get_by_text("Olga", exact=True)).to_be_visible()

    # And alone, it is enough.
    page.context.clear_cookies()
    page.goto(reverse("account_login"))
    page.get_by_role("button", name="Log in with a passkey").click()
    expect(page.get_by_role("banner").get_by_text("Olga", exact=True)).to_be_visible()
    page.goto(reverse("mfa_list_webauthn"))
    expect(page.get_by_role("rowheader", name="Laptop")).to_be_visible()
    look(page, "passkeys")
    page.goto(reverse("mfa_index"))
    look(page, "second-factor-in-use")
    assert not complaints


def test_a_browser_without_a_passkey_says_so_on_the_page(
    page: Page, organizer: User, complaints: list[str]
) -> None:
    page.context.new_cdp_session(page).send("WebAuthn.enable")
    page.add_init_script(
        "navigator.credentials.get = () => Promise.reject(new DOMException('x', 'NotAllowedError'))"
    )
    page.goto(reverse("account_login"))
    page.get_by_role("button", name="Log in with a passkey").click()
    expect(page.get_by_role("alert")).to_have_text(
        "The device didn't confirm it, or took too long. Try again."
    )
    assert not complaints
