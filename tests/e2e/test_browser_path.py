"""From sign-up to rows on both leaderboards, in a real browser, with the downloaded kit and a real worker."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from safetensors.numpy import load_file, save_file

from tests.demo.stack import Stack
from tests.e2e.conftest import PASSWORD, pfl, train_privately
from tests.e2e.downloaded_kit import download_kit, offer_kit, pfl_of
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


def make_draft(page: Page, stack: Stack, track: int, title: str, description: str = "") -> None:
    page.goto(f"{stack.url}/submissions/create/")
    page.get_by_label("Track").select_option(index=track)
    page.get_by_label("Title").fill(title)
    page.get_by_label("Description").fill(description)
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
    # The text above the button is replaced as files arrive, which moves the button.
    expect(page.locator("#submit")).to_contain_text("The draft is complete.")
    page.get_by_role("button", name=re.compile("^submit", re.I)).click()
    scored = page.locator(".badge", has_text=re.compile("^scored$"))
    expect(scored.first).to_be_visible(timeout=120_000)


@contextmanager
def new_page() -> Iterator[Page]:
    """A page of a new browser. What goes wrong in its scripts fails the test."""
    with Chromium() as browser:
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        assert errors == []


@pytest.fixture
def page() -> Iterator[Page]:
    with new_page() as page:
        yield page


@pytest.fixture(scope="module")
def participant(site: Stack) -> Iterator[Page]:
    """The browser of someone who has signed up and made a team."""
    with new_page() as page:
        sign_up(page, site)
        if page.url.endswith("/login/"):
            log_in(page, site)
        make_team(page, site, "Compilers")
        yield page


def create_token(page: Page, stack: Stack) -> dict[str, str]:
    """The variables that the site shows with a new API token."""
    page.goto(f"{stack.url}/account/tokens/")
    page.get_by_label("Label").fill("laptop")
    page.get_by_role("button", name="Create token").click()
    shown = page.locator("pre", has_text="export PFL_TOKEN")
    confirm_password_until(page, shown)
    return dict(re.findall(r"export (\w+)=(\S+)", shown.inner_text()))


def confirm_password_until(page: Page, done: Locator) -> None:
    """Wait until `done` is shown, and give the password if the site asks for it once more before."""
    password = page.locator("input[type=password]")
    expect(done.or_(password)).to_be_visible(timeout=60_000)
    if password.is_visible():
        password.fill(PASSWORD)
        page.get_by_role("button", name="Confirm").click()
        expect(done).to_be_visible(timeout=60_000)


def row_of(page: Page, stack: Stack, track: str, title: str) -> Locator:
    page.goto(f"{stack.url}/leaderboard/{track}/")
    return page.get_by_role("row").filter(has_text=title)


def test_a_newcomer_goes_from_sign_up_by_the_downloaded_kit_to_a_ranked_row(
    site: Stack, trained: Path, participant: Page, tmp_path: Path
) -> None:
    offer_kit(site, tmp_path / "built")
    kit = download_kit(participant, site, tmp_path)
    access = create_token(participant, site)
    base, run = trained / "base", tmp_path / "run"
    where = ["--data", trained / "data" / "public", "--base", base, "--out", run]
    # Another seed than that of the run which is uploaded by hand: a checkpoint is submitted once.
    pfl_of(kit, "train", "fedavg", *where, "--set", "rounds=1", "--set", "seed=7", environment=access)
    assert "passed" in pfl_of(kit, "check", run, "--base", base, "--track", "track-1", environment=access)
    title = ["--track", "track-1", "--title", "FedAvg by the kit"]
    assert "scored" in pfl_of(kit, "submit", run, *title, "--wait", environment=access)
    expect_ranked(row_of(participant, site, "track-1", "FedAvg by the kit"))


def test_wrong_files_are_rejected_with_all_errors_at_once_corrected_and_submitted(
    site: Stack, trained: Path, participant: Page, tmp_path: Path
) -> None:
    run = trained / "fedavg"
    make_draft(participant, site, 1, "FedAvg by hand")
    weights = load_file(run / "model.safetensors")
    renamed, flattened = list(weights)[:2]
    wrong = {**weights, "renamed": weights.pop(renamed), flattened: weights[flattened].reshape(-1)}
    del wrong[renamed]
    save_file(wrong, tmp_path / "model.safetensors")
    (tmp_path / "log.csv").write_text("round,from,to,bytes\n1,-1,0,5\n")
    choose(participant, "checkpoint", tmp_path / "model.safetensors")
    choose(participant, "communication_log", tmp_path / "log.csv")
    problems = participant.locator(".problem")
    expect(problems).to_have_count(4)
    for found in (renamed, "renamed", flattened, "federated_round,sender,receiver,amount_of_bytes"):
        expect(problems.filter(has_text=found).first).to_be_visible()
    expect(participant.locator("#submit")).to_contain_text("The checkpoint is missing.")
    upload(
        participant,
        {"checkpoint": run / "model.safetensors", "communication_log": run / "communication_log.csv"},
    )
    expect(problems).to_have_count(0)
    submit_and_wait(participant)
    expect_ranked(row_of(participant, site, "track-1", "FedAvg by hand"))

    # Measured after the score; the tiny model may have learned nothing that can be found.
    site.manage("measure_leakage", "track-1", "--wait")
    row = row_of(participant, site, "track-1", "FedAvg by hand")
    expect(row.locator('[data-label="Leakage"]')).to_have_text(re.compile(r"^(n\.s\.|[01]\.\d\d)$"))


def test_a_private_run_that_is_uploaded_by_hand_waits_for_its_review(
    site: Stack, trained: Path, participant: Page, tmp_path: Path
) -> None:
    submit_privately(participant, site, trained, tmp_path, create_token(participant, site))
    row = row_of(participant, site, "track-2", "Noise by hand")
    expect(row).to_contain_text("Compilers")
    expect(row).to_contain_text("under review")


def expect_ranked(row: Locator) -> None:
    expect(row).to_contain_text("Compilers")
    expect(row.get_by_role("cell").first).to_have_text(re.compile(r"^\s*\d+\s*$"))


def submit_privately(page: Page, stack: Stack, trained: Path, folder: Path, access: dict[str, str]) -> None:
    """Train a private run, and submit it by hand with its key, its proof and the annex that the page requires."""
    access |= {"PFL_KEY": str(folder / "key.pem")}
    run = train_privately(trained, folder / "run", access)
    (folder / "proof.md").write_text("Because the noise is large enough.")
    page.goto(f"{stack.url}/team/")
    page.get_by_label(re.compile("public key", re.I)).fill(pfl("key", "show", environment=access).strip())
    page.get_by_role("button", name="Add the key").click()
    confirm_password_until(page, page.get_by_text("can now sign your team's training records"))
    make_draft(page, stack, 2, "Noise by hand", "It adds noise.")
    page.get_by_role("button", name="Add a run at ε = 8").click()
    upload(
        page,
        {
            "checkpoint": run / "model.safetensors",
            "communication_log": run / "communication_log.csv",
            "training_record": run / "training_record.jsonl",
            "settings": run / "settings.yaml",
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
