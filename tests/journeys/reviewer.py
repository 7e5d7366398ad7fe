"""Reviewers: from the administration to a verdict, with changes requested and a revised proof in between."""

import re
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import expect

from tests.docvqa_site.accounts.codes import code_of
from tests.journeys.hands import Hands
from tests.journeys.participant import Newcomer, confirm_address, confirm_password_until, upload
from tests.journeys.people import Person
from tests.journeys.sites import Site

SECRET = re.compile("[A-Z2-7]{16,}")
WAITING = re.compile("privacy proofs? waits? for reviewers")
REQUEST = "State the bound on the noise of a single client."


def join(site: Site, hands: Hands, newcomer: Newcomer) -> Person:
    """Follow an invitation's mail to an account with a second factor, and return who that is."""
    page = hands.page
    invitation = site.link_in_mail(newcomer.email, rf"{re.escape(site.url)}/organize/invitations/[^\s]+")
    hands.open(invitation)
    hands.press(page.get_by_role("main").get_by_role("link", name="Sign up"))
    confirm_address(site, hands, newcomer)
    if not page.get_by_role("button", name="Accept").is_visible():
        hands.open(invitation)
    hands.press(page.get_by_role("button", name="Accept"))
    hands.press(page.get_by_role("link", name="Set up an app"))
    confirm_password_until(hands, page.locator("#totp-secret"))
    secret = page.locator("#totp-secret").inner_text()
    assert SECRET.fullmatch(secret)
    hands.fill(page.get_by_label(re.compile("code", re.I)), code_of(secret))
    hands.press(page.get_by_role("button", name="Set up the app"))
    hands.menu("Administration")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    return replace(newcomer, secret=secret)


def step_aside(site: Site, hands: Hands, method: str, reason: str, note: str) -> None:
    """Decline a proof from its desk."""
    page = hands.page
    open_desk(site, hands, method)
    hands.press(page.locator("summary", has_text="I can't review this proof"))
    hands.tick(page.get_by_role("radio", name=re.compile(reason, re.I)))
    hands.fill(page.get_by_label("Note to the organizers"), note)
    hands.press(page.get_by_role("button", name="Step aside"))


def open_desk(site: Site, hands: Hands, method: str) -> None:
    """Go from the administration to the desk of a method's proof."""
    page = hands.page
    hands.open(site.url)
    hands.menu("Administration")
    hands.press(page.get_by_role("link", name=WAITING))
    row = page.locator("#result_list tbody tr").filter(has_text=method)
    hands.press(row.get_by_role("link", name="Open the desk"))
    expect(page.get_by_role("heading", level=1)).to_contain_text(method)


def read_the_proof(hands: Hands, words: str) -> None:
    proof = hands.page.frame_locator("iframe").locator("body")
    expect(proof).to_contain_text(words)


def answer(hands: Hands, doubted: str = "", note: str = "", settled: str = "") -> None:
    """Answer every question with yes by the keys that the desk names, but no to the doubted one, with a note.

    One that was doubted before is closed by then, and is opened to answer it again once it is settled.
    """
    page = hands.page
    questions = page.locator("#review details.item")
    questions.locator("input[type=radio]").first.focus()
    for _ in range(questions.count()):
        page.keyboard.press("y")
        page.keyboard.press("j")
    if doubted:
        question = page.locator(f"#item-{doubted}")
        if not question.get_by_role("radio", name="no").is_visible():
            hands.press(question.locator("summary").first)
        hands.tick(question.get_by_role("radio", name="no"))
        hands.fill(question.get_by_label("Note"), note)
    if settled:
        question = page.locator(f"#item-{settled}")
        if not question.get_by_role("radio", name="yes").is_visible():
            hands.press(question.locator("summary").first)
        hands.tick(question.get_by_role("radio", name="yes"))
    count = questions.count()
    hands.sees(f"{count} of {count} answered")


def decide(hands: Hands, verdict: str, reason: str = "") -> None:
    """Record a decision; what it takes is asked once it is chosen, with a day for changes set already."""
    page = hands.page
    hands.tick(page.get_by_role("radio", name=verdict, exact=True))
    if reason:
        hands.fill(page.get_by_label("Explanation for the team"), reason)
    hands.tick(page.get_by_label(re.compile("no conflict of interest")))
    hands.press(page.get_by_role("button", name="Record the decision"))
    expect(page.get_by_text("is recorded")).to_be_visible()


def revise(site: Site, hands: Hands, folder: Path, method: str) -> None:
    """The team reads what is asked of it, from the notification on, and sends a revised proof."""
    page = hands.page
    hands.open(site.url)
    hands.menu("Notifications")
    hands.press(
        page.get_by_role("button", name=re.compile(method))
        .or_(page.get_by_role("link", name=re.compile(method)))
        .first
    )
    hands.sees(REQUEST)
    (folder / "revised.md").write_text("# The noise of a client\n\nIt is bounded by the clip norm.\n")
    hands.press(page.get_by_role("link", name="Upload a revised proof"))
    if not page.locator("[data-kind=privacy_proof] .dropzone").is_visible():
        hands.press(page.locator("summary", has_text="Upload a revised proof"))
    upload(hands, {"privacy_proof": folder / "revised.md"})
    hands.press(page.get_by_role("link", name="Preview and send it", exact=True))
    read_the_proof(hands, "bounded by the clip norm")
    hands.fill(page.get_by_label("What changed"), "The bound is stated.")
    hands.press(page.get_by_role("button", name="Send version"))
    hands.sees("is sent")
