"""Organizers: what they change, announce and decide at their desk."""

from datetime import UTC, datetime, timedelta

from playwright.sync_api import expect

from tests.journeys.hands import Hands
from tests.journeys.sites import Site


def open_desk(site: Site, hands: Hands) -> None:
    hands.open(site.url)
    hands.menu("Organize")


def change_the_threshold(site: Site, hands: Hands, track: str, threshold: str) -> None:
    """See what a change of a rule does before it is made; everybody reads of it then."""
    page = hands.page
    open_desk(site, hands)
    card = page.locator("li.card", has=page.locator(f"a[href*='/tracks/{track}/']"))
    hands.press(card.get_by_role("link", name="Change"))
    hands.fill(page.get_by_label("ANLS threshold"), threshold)
    reason = f"A threshold of {threshold} suits the data."
    hands.fill(page.get_by_label("Reason"), reason)
    hands.press(page.get_by_role("button", name="Preview the effect"))
    hands.press(page.get_by_role("button", name="Apply and publish the change"))
    hands.open(f"{site.url}/tracks/{track}/")
    hands.sees(reason)


def announce(site: Site, hands: Hands, subject: str, reader: str) -> None:
    """Write to everybody; a reader gets it by mail."""
    page = hands.page
    open_desk(site, hands)
    hands.press(page.get_by_role("link", name="Write an announcement"))
    hands.fill(page.get_by_label("Subject"), subject)
    hands.fill(page.get_by_label("Text"), "See the page of the track.")
    hands.press(page.get_by_role("button", name="Preview recipients"))
    hands.press(page.get_by_role("button", name="Send to"))
    assert site.link_in_mail(reader, subject)


def close_phase(site: Site, hands: Hands, track: str) -> None:
    """End the track's only phase a minute ago, and publish its final results."""
    page = hands.page
    open_desk(site, hands)
    card = page.locator("li.card", has=page.locator(f"a[href*='/tracks/{track}/']"))
    hands.press(card.get_by_role("link", name="Change"))
    phases = page.locator("section", has=page.locator("#phases"))
    hands.press(phases.locator("table").get_by_role("link").first)
    hands.fill(page.get_by_label("Ends"), f"{datetime.now(UTC) - timedelta(minutes=1):%Y-%m-%d %H:%M}")
    hands.press(page.get_by_role("button", name="Preview the effect"))
    hands.press(page.get_by_role("button", name="Apply and publish the change"))
    hands.press(phases.locator("table").get_by_role("link").first)
    hands.press(page.get_by_role("link", name="Close this phase"))
    expect(page.locator(".conditions .badge-failed")).to_have_count(0)
    hands.press(page.get_by_role("button", name="Close the phase and publish the results"))
    expect(page.get_by_role("heading", name="Cite these results")).to_be_visible()
