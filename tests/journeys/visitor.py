"""A visitor: who leads, why to believe it, the paper, the citation, and all there is to download."""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Locator, expect

from tests.journeys.hands import Hands
from tests.journeys.sites import Site

STATUS = re.compile("proof accepted|under review|baseline|scored|provisional", re.IGNORECASE)
# The data set's, the competition's and this software's.
PAPERS = re.compile("data set", re.I), re.compile("competition", re.I), re.compile("benchmark", re.I)
SHA256 = re.compile("[0-9a-f]{64}")


def visit(site: Site, hands: Hands, folder: Path) -> None:
    """Go from the home page to the leader of each track, its evidence and its citation, and download everything."""
    hands.open(site.url)
    names = hands.page.locator(".track-card h3").all_inner_texts()
    assert names
    for name in names:
        hands.open(site.url)
        _read_about_the_leader(hands, name)
        _take_the_exports(hands, name)
    _search_the_documents(hands, "E_SUBMISSION_DUPLICATE")
    _find_the_papers(hands)
    _download_everything(hands, folder)


def _read_about_the_leader(hands: Hands, track: str) -> None:
    page = hands.page
    card = page.locator(".track-card", has=page.get_by_role("heading", name=track))
    leader = card.locator(".leaders dd a").first
    method = leader.inner_text()
    # Nobody leads without it.
    expect(card.locator(".leaders dd").first).to_contain_text(STATUS)
    hands.press(leader)
    expect(page.get_by_role("heading", level=1)).to_contain_text(method)
    expect(page.get_by_role("group", name="Verdict")).to_contain_text(STATUS)
    address = page.url
    hands.press(page.get_by_role("link", name=re.compile("^Evidence")).first)
    expect(page.locator(".checks-summary").get_by_text("passed").last).to_be_visible()
    hands.open(address)
    # Several entries are folded.
    if (folded := page.get_by_text("BibTeX: an entry for each run")).count():
        hands.press(folded)
    entry = page.locator("pre[aria-label^='BibTeX entry']").first.inner_text()
    assert method in entry.replace("{", "").replace("}", "")
    for file in ("BibTeX file", "CITATION.cff"):
        assert method in _fetched(page.get_by_role("link", name=file))


def _take_the_exports(hands: Hands, track: str) -> None:
    page = hands.page
    hands.menu("Leaderboards")
    hands.press(page.get_by_role("link", name=f"Leaderboard of {track}"))
    # The table comes first, and the leader with its status.
    leader = page.locator("table.board tbody tr").first
    expect(leader).to_be_visible()
    method = leader.get_by_role("link").first.inner_text()
    for kind in ("CSV (all rows)", "JSON (all rows)", "Feed"):
        assert method in _fetched(page.get_by_role("link", name=kind, exact=True).first), kind


def _search_the_documents(hands: Hands, code: str) -> None:
    page = hands.page
    hands.press(page.get_by_role("contentinfo").get_by_role("link", name="Search"))
    hands.fill(page.get_by_role("searchbox"), code)
    hands.press(page.get_by_role("search").get_by_role("button"))
    hands.press(page.locator(".search-results").get_by_role("link").first)
    hands.sees(code)


def _find_the_papers(hands: Hands) -> None:
    page = hands.page
    hands.press(page.get_by_role("contentinfo").get_by_role("link", name="Cite"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("cite", ignore_case=True)
    for paper in PAPERS:
        entry = (
            page.locator("pre[aria-label^='BibTeX entry']").and_(page.get_by_label(paper)).first.inner_text()
        )
        assert "author" in entry
        assert "url" in entry


def _download_everything(hands: Hands, folder: Path) -> None:
    """Each file is the one whose hash its card shows; one with terms is for whoever is logged in and accepts them."""
    page = hands.page
    hands.menu("Data")
    cards = page.locator("article.card", has=page.get_by_role("link", name="Download"))
    for title in cards.get_by_role("heading").all_inner_texts():
        card = cards.filter(has=page.get_by_role("heading", name=title, exact=True))
        shown = SHA256.search(card.inner_text())
        if "accept before downloading" in card.inner_text():
            hands.press(card.get_by_role("link", name="Download"))
            expect(page.get_by_role("main").get_by_role("link", name="log in")).to_be_visible()
            hands.menu("Data")
            continue
        assert shown
        file = hands.download(card.get_by_role("link", name="Download"), folder)
        assert hashlib.sha256(file.read_bytes()).hexdigest() == shown.group()


def read_final_results(site: Site, hands: Hands, folder: Path) -> None:
    """Find the final results from the leaderboards on, and verify their files by the program that comes with them."""
    page = hands.page
    hands.open(site.url)
    hands.menu("Leaderboards")
    hands.press(page.locator("main a[href^='/results/']").first)
    if page.get_by_role("heading", name="Standings").count() == 0:
        hands.press(page.locator("main a[href^='/results/']").first)
    archive = hands.download(page.get_by_role("link", name="Download all files"), folder)
    shutil.unpack_archive(archive, folder)
    ended = subprocess.run(
        [sys.executable, folder / archive.stem / "verify.py"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def _fetched(link: Locator) -> str:
    """Return what a link is answered with, for formats that a browser doesn't show."""
    answer = link.page.request.get(link.evaluate("(link) => link.href"))
    assert answer.ok, f"{answer.status} {answer.url}"
    return answer.text()
