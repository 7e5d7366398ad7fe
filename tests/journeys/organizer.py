"""Organizers: what they set up, change, announce and decide at their desk."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.journeys.hands import Hands
from tests.journeys.sites import Site

REPORTED_S = 120
TESTED_MS = 120_000


@dataclass(frozen=True)
class Offer:
    """A file that an organizer offers for download.

    Attributes:
        terms: What everyone must accept before; empty where there is nothing to accept.
    """

    title: str
    kind: str
    file: Path
    terms: str = ""


@dataclass(frozen=True)
class NewTrack:
    """What an organizer enters in the six steps of the setup.

    Attributes:
        kind: How the setup calls what ranks.
        rules: Values of fields of the first step, by their labels.
        offers: Files that are added; those that the site offers already are ticked.
        data: Values of fields about the data, by their labels.
        reviewer: Who is invited by mail; empty for nobody.
    """

    name: str
    slug: str
    kind: str
    rules: Mapping[str, str] = field(default_factory=dict)
    offers: Sequence[Offer] = ()
    data: Mapping[str, str] = field(default_factory=dict)
    requires_code: bool = False
    reviewer: str = ""


def open_desk(site: Site, hands: Hands) -> None:
    hands.open(site.url)
    hands.menu("Organize")


def change_the_threshold(site: Site, hands: Hands, track: str, threshold: str) -> None:
    """See what a change of a rule does before it is made; everybody reads of it then."""
    page = hands.page
    open_desk(site, hands)
    hands.press(card_of(hands, track).get_by_role("link", name="Change"))
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
    hands.press(card_of(hands, track).get_by_role("link", name="Change"))
    phases = page.locator("section", has=page.locator("#phases"))
    hands.press(phases.locator("table").get_by_role("link").first)
    hands.fill(page.get_by_label("Ends"), f"{datetime.now(UTC) - timedelta(minutes=1):%Y-%m-%d %H:%M}")
    hands.fill(page.get_by_label("Reason"), "As announced.")
    hands.press(page.get_by_role("button", name="Preview the effect"))
    hands.press(page.get_by_role("button", name="Apply and publish the change"))
    hands.press(phases.locator("table").get_by_role("link").first)
    hands.press(page.get_by_role("link", name="Close this phase"))
    expect(page.locator(".conditions .badge-failed")).to_have_count(0)
    hands.press(page.get_by_role("button", name="Preview the publication"))
    hands.tick(page.get_by_label("Yes, publish these results"))
    hands.press(page.get_by_role("button", name="Close the phase and publish the results"))
    expect(page.get_by_role("heading", name="Cite these results")).to_be_visible()


def set_up(site: Site, hands: Hands, track: NewTrack) -> None:
    """Go through the setup from the desk to a public track, with what the site's worker reports."""
    page = hands.page
    open_desk(site, hands)
    hands.press(page.get_by_role("link", name="Set up a new track"))
    hands.fill(page.get_by_label("Name"), track.name)
    hands.fill(page.get_by_label("Address"), track.slug)
    hands.tick(page.get_by_role("radio", name=track.kind, exact=True))
    hands.press(page.get_by_role("button", name="Create the draft"))
    _choose_rules(hands, track)
    _write_texts(hands, track)
    _choose_what_workers_have(hands)
    _offer_files(hands, track)
    # One phase without dates, which begins at once.
    _continue(hands)
    if track.reviewer:
        hands.fill(page.get_by_label("Email address"), track.reviewer)
        hands.choose(labeled(page, "As"), "reviewer")
        hands.press(page.get_by_role("button", name="Send the invitation"))
        hands.sees(f"invitation to {track.reviewer}")
    _continue(hands)
    _test_and_publish(hands, track)


def labeled(place: Page | Locator, label: str) -> Locator:
    """Return the field with exactly this label, which may say that the field is optional."""
    return place.get_by_label(re.compile(rf"^\s*{re.escape(label)}\s*(\(optional\))?\s*$"))


def _continue(hands: Hands) -> None:
    hands.press(hands.page.get_by_role("button", name="Save and continue"))


def _choose_rules(hands: Hands, track: NewTrack) -> None:
    page = hands.page
    for label, value in track.rules.items():
        hands.fill(labeled(page, label), value)
    if track.requires_code:
        hands.tick(page.get_by_label(re.compile("description and code required", re.I)))
    _continue(hands)


def _write_texts(hands: Hands, track: NewTrack) -> None:
    """The text is previewed before it is saved."""
    page = hands.page
    hands.fill(page.get_by_label("Summary"), f"What {track.name} is about.")
    hands.fill(page.get_by_label("Description"), "# Rules\n\nBe *kind* to the clients.")
    hands.press(page.get_by_role("button", name="Preview"))
    expect(page.locator(".prose em")).to_have_text("kind")
    _continue(hands)


def _choose_what_workers_have(hands: Hands) -> None:
    """Reload the page until the worker has reported, which it does once a minute, and choose."""
    page = hands.page
    deadline = time.monotonic() + REPORTED_S
    while page.get_by_text("No worker has reported").count() and time.monotonic() < deadline:
        page.wait_for_timeout(500)
        page.reload()
    for label, chosen in (("Base weights", "vt5-tiny"), ("Test set", "forms")):
        hands.choose(labeled(page, label), f"^{chosen}: on 1 worker")
    _continue(hands)


def _offer_files(hands: Hands, track: NewTrack) -> None:
    page = hands.page
    for offer in track.offers:
        form = page.locator("form", has=page.get_by_role("button", name="Add the download"))
        if not form.is_visible():
            hands.press(page.locator("summary", has_text="Upload a file or link to one"))
        hands.choose(labeled(form, "Kind"), re.compile(offer.kind, re.I))
        hands.fill(labeled(form, "Title"), offer.title)
        hands.attach(labeled(form, "File"), offer.file)
        hands.fill(labeled(form, "License"), "Apache-2.0")
        if offer.terms:
            hands.fill(labeled(form, "New terms: title"), f"Terms of {offer.title}")
            hands.fill(labeled(form, "New terms: text"), offer.terms)
        hands.press(form.get_by_role("button", name="Add the download"))
        hands.sees(f"{offer.title} was added.")
    for box in page.get_by_role("checkbox").all():
        hands.tick(box)
    for label, value in track.data.items():
        hands.fill(labeled(page, label), value)
    _continue(hands)


def _test_and_publish(hands: Hands, track: NewTrack) -> None:
    """The base weights go through every step of the worker before anybody sees the track."""
    page = hands.page
    hands.sees("Still missing: test.")
    hands.press(page.get_by_role("button", name="Start the test"))
    publishing = page.get_by_role("button", name=f"Publish {track.name}")
    expect(publishing).to_be_visible(timeout=TESTED_MS)
    expect(page.locator("#ready ~ * .badge-failed")).to_have_count(0)
    hands.tick(page.get_by_label("Yes, publish the track"))
    hands.press(publishing)
    hands.sees(f"{track.name} is public.")


def card_of(hands: Hands, track: str) -> Locator:
    """Return the desk's card of a track."""
    return hands.page.locator("li.card", has=hands.page.locator(f"a[href*='/tracks/{track}/']"))


def run_of(site: Site, hands: Hands, track: str, method: str) -> Locator:
    """Search the desk's list of runs for a method's, and return the link to it."""
    page = hands.page
    open_desk(site, hands)
    hands.press(card_of(hands, track).get_by_role("link", name="Runs of"))
    hands.fill(page.get_by_label("Method or team"), method)
    hands.press(page.get_by_role("button", name="Show"))
    return page.locator("tbody").get_by_role("link", name=re.compile(re.escape(method))).first


def disqualify(site: Site, hands: Hands, track: str, method: str, reason: str) -> None:
    page = hands.page
    hands.press(run_of(site, hands, track, method))
    form = page.locator("form", has=page.get_by_role("button", name="Disqualify"))
    hands.fill(form.get_by_label("Reason", exact=True), reason)
    hands.tick(form.get_by_role("checkbox"))
    hands.press(page.get_by_role("button", name="Disqualify"))
    expect(page.get_by_role("heading", name="Disqualified")).to_be_visible()


def answer_appeal(site: Site, hands: Hands, method: str, appeal: str, answer: str) -> None:
    """Find the appeal from the desk on, and uphold the disqualification."""
    page = hands.page
    open_desk(site, hands)
    need = page.locator("li.need", has_text="1 appeal to answer")
    hands.press(need.get_by_role("link").first)
    row = page.locator("tbody tr", has_text=method).filter(has_text="disqualified")
    hands.press(row.get_by_role("link").first)
    hands.sees(appeal)
    hands.fill(page.get_by_role("textbox", name="Answer", exact=True), answer)
    hands.press(page.get_by_role("button", name="Answer and uphold"))
    hands.sees(f": {answer}")
