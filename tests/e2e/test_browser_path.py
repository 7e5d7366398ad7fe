"""From sign-up to a row on the leaderboard, in a real browser, with a real worker."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from portal.standalone.stack import Stack
from tests.e2e.conftest import PASSWORD
from tests.services.chromium import Chromium

pytestmark = pytest.mark.e2e

EMAIL = "grace@lab.example"


def link_in_the_newest_mail(stack: Stack, pattern: str) -> str:
    """The first matching link of the newest mail that the site wrote."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        mails = sorted((stack.home / "mail").glob("*"), key=lambda path: path.stat().st_mtime)
        if mails and (found := re.search(pattern, mails[-1].read_text())):
            return found.group()
        time.sleep(0.2)
    raise AssertionError("no mail came")


def sign_up(page: Page, stack: Stack) -> None:
    page.goto(stack.url)
    page.get_by_role("link", name="Sign up").first.click()
    page.get_by_label("Your name").fill("Grace Hopper")
    page.get_by_label(re.compile("e-?mail", re.I)).first.fill(EMAIL)
    page.locator("input[type=password]").nth(0).fill(PASSWORD)
    page.locator("input[type=password]").nth(1).fill(PASSWORD)
    page.get_by_role("button", name="Sign up").click()
    page.goto(link_in_the_newest_mail(stack, rf"{stack.url}/account/confirm-email/[^\s]+"))
    page.get_by_role("button", name=re.compile("confirm", re.I)).click()


def log_in(page: Page, stack: Stack) -> None:
    page.goto(f"{stack.url}/account/login/")
    page.get_by_label(re.compile("e-?mail", re.I)).first.fill(EMAIL)
    page.locator("input[type=password]").fill(PASSWORD)
    page.get_by_role("button", name=re.compile("log in|sign in", re.I)).click()


def test_a_participant_goes_from_sign_up_to_the_leaderboard(
    new_stack: Callable[..., Stack], trained: Path
) -> None:
    stack = new_stack()
    with Chromium() as browser:
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        sign_up(page, stack)
        if page.url.endswith("/login/"):
            log_in(page, stack)

        page.goto(f"{stack.url}/team/create/")
        page.get_by_label("Name").fill("Compilers")
        page.get_by_role("button", name=re.compile("create", re.I)).click()

        page.goto(f"{stack.url}/submissions/create/")
        page.get_by_label("Track").select_option(index=1)
        page.get_by_label("Title").fill("FedAvg by hand")
        page.get_by_role("button", name=re.compile("create", re.I)).click()
        for kind, file in (
            ("checkpoint", "model.safetensors"),
            ("communication_log", "communication_log.csv"),
        ):
            slot = page.locator(f"[data-kind={kind}]")
            slot.locator("input[type=file]").set_input_files(trained / "fedavg" / file)
            expect(slot.get_by_text(re.compile("uploaded|complete", re.I)).first).to_be_visible(
                timeout=60_000
            )
        page.get_by_role("button", name=re.compile("^submit", re.I)).click()

        expect(page.locator(".badge-scored").first).to_be_visible(timeout=120_000)
        page.goto(f"{stack.url}/leaderboard/track-1/")
        row = page.get_by_role("row").filter(has_text="FedAvg by hand")
        expect(row).to_contain_text("Compilers")
        expect(row).to_contain_text("1")
        assert errors == []
