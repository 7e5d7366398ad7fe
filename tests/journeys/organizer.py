"""Organizers: what they change, announce and decide at their desk."""

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
