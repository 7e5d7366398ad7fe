"""From sign-up to a row on both leaderboards, in a real browser, with a real worker."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from portal.standalone.stack import Stack
from tests.e2e.conftest import PASSWORD, pfl, train_privately
from tests.services.chromium import Chromium

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("site")]

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
    page.get_by_role("button", name="Log in", exact=True).click()


def make_team(page: Page, stack: Stack, name: str) -> None:
    page.goto(f"{stack.url}/team/create/")
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name=re.compile("create", re.I)).click()


def make_draft(page: Page, stack: Stack, track: int, title: str) -> None:
    page.goto(f"{stack.url}/submissions/create/")
    page.get_by_label("Track").select_option(index=track)
    page.get_by_label("Title").fill(title)
    page.get_by_role("button", name="Start the submission").click()


def choose(page: Page, kind: str, file: Path) -> None:
    section = page.locator(f"[data-kind={kind}]")
    # Before that the page takes no file.
    expect(section.locator(".dropzone")).to_be_visible()
    section.locator("input[type=file]").set_input_files(file)


def upload(page: Page, files: dict[str, Path]) -> None:
    """Put each file into the place of its kind."""
    for kind, file in files.items():
        choose(page, kind, file)
        section = page.locator(f"[data-kind={kind}]")
        expect(section.get_by_text(f"{file.name} is uploaded.")).to_be_visible(timeout=60_000)


def submit_and_wait(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^submit", re.I)).click()
    scored = page.locator(".badge", has_text=re.compile("^scored$"))
    expect(scored.first).to_be_visible(timeout=120_000)


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of a new browser. What goes wrong in its scripts fails the test."""
    with Chromium() as browser:
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        assert errors == []


def test_a_participant_goes_from_sign_up_to_both_leaderboards(
    site: Stack, trained: Path, page: Page, tmp_path: Path
) -> None:
    sign_up(page, site)
    if page.url.endswith("/login/"):
        log_in(page, site)
    make_team(page, site, "Compilers")
    make_draft(page, site, 1, "FedAvg by hand")
    run = trained / "fedavg"
    upload(
        page, {"checkpoint": run / "model.safetensors", "communication_log": run / "communication_log.csv"}
    )
    submit_and_wait(page)
    page.goto(f"{site.url}/leaderboard/track-1/")
    row = page.get_by_role("row").filter(has_text="FedAvg by hand")
    expect(row).to_contain_text("Compilers")
    expect(row).to_contain_text("1")

    token = site.manage("create_token", EMAIL, "--label", "test")
    submit_privately(page, site, trained, tmp_path, {"PFL_SITE": site.url, "PFL_TOKEN": token})
    page.goto(f"{site.url}/leaderboard/track-2/")
    row = page.get_by_role("row").filter(has_text="Noise by hand")
    expect(row).to_contain_text("Compilers")
    expect(row).to_contain_text("under review")

    # Measured after the score; the tiny model may have learned nothing that can be found.
    site.manage("measure_leakage", "track-1", "--wait")
    page.goto(f"{site.url}/leaderboard/track-1/")
    row = page.get_by_role("row").filter(has_text="FedAvg by hand")
    expect(row.locator('[data-label="Leakage"]')).to_have_text(re.compile(r"^(n\.s\.|[01]\.\d\d)$"))


def submit_privately(page: Page, stack: Stack, trained: Path, folder: Path, access: dict[str, str]) -> None:
    """Train a private run, and submit it by hand with its key, its proof and the annex that the page requires."""
    access |= {"PFL_KEY": str(folder / "key.pem")}
    run = train_privately(trained, folder / "run", access)
    (folder / "proof.md").write_text("Because the noise is large enough.")
    page.goto(f"{stack.url}/team/")
    page.get_by_label(re.compile("public key", re.I)).fill(pfl("key", "show", environment=access).strip())
    page.get_by_role("button", name="Add the key").click()
    page.locator("input[type=password]").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("may sign your team's training records")).to_be_visible(timeout=60_000)
    make_draft(page, stack, 2, "Noise by hand")
    page.get_by_role("button", name="Add a run at ε = 8").click()
    upload(
        page,
        {
            "checkpoint": run / "model.safetensors",
            "communication_log": run / "communication_log.csv",
            "training_record": run / "training_record.jsonl",
        },
    )
    command = page.locator("code", has_text="pfl privacy annex RUN --challenge")
    expect(command).to_be_visible(timeout=60_000)
    pfl("privacy", "annex", str(run), "--challenge", command.inner_text().split()[-1], environment=access)
    upload(
        page,
        {"training_annex": run / "training_annex.jsonl", "privacy_proof": folder / "proof.md"},
    )
    submit_and_wait(page)
