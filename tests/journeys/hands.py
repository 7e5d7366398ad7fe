"""How somebody uses a page: with a mouse at a wide window, or with the keys alone at the width of a phone.

A journey says what is pressed and filled in; `Mouse` and `Keys` do it. Both fail where a page is broken: a script that
raises, an answer that is an error, a page that is wider than its window and, with the keys, whatever axe finds against
WCAG 2.2 AA, and what the Tab key doesn't reach.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Locator, Page, Request, Response, expect

from tests.journeys.crawl import kind_of

# Django's own pages, and the document of the API.
NOT_OURS = ("/admin/", "/api/v1/docs")
AXE_RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
MOST_TABS = 400
ANSWER_MS = 60_000
# For a script that takes a press for itself, there is nothing to wait for.
LEAVING_S = 2.0


class Hands:
    """Uses `page`, a window of somebody's own.

    Attributes:
        faults: What was wrong with the pages so far.
    """

    width: ClassVar[int]
    # The kinds of pages that axe has examined, of all windows.
    examined: ClassVar[set[tuple[str, ...]]] = set()

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        # Before anything is pressed, the browser reports its file choosers instead of opening them.
        page.on("filechooser", lambda _: None)
        page.on("pageerror", lambda error: self.faults.append(f"{page.url}: {error}"))
        page.on("response", self._note_error)
        self._asked = self._answered = 0
        page.on("request", self._note_leaving)
        page.on("requestfailed", self._note_arrival)
        page.on("framenavigated", lambda frame: self._note_arrival() if frame == page.main_frame else None)

    def _note_leaving(self, request: Request) -> None:
        if request.is_navigation_request() and request.frame == self.page.main_frame:
            self._asked += 1

    def _note_arrival(self, request: Request | None = None) -> None:
        """Note that the page has changed, or that it stays, as a file was sent in its place."""
        if request is None or request.is_navigation_request():
            self._answered = self._asked

    def _note_error(self, response: Response) -> None:
        # A file that is wrong is answered so, and the page shows why.
        if response.status >= 400 and response.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            self.faults.append(f"{response.status} {response.request.method} {response.url}")

    @classmethod
    @contextmanager
    def window(cls, browser: Browser, *, state: Any = None) -> Iterator[Self]:
        """A window of a person whose cookies are in `state`. At its end, no page may have been at fault."""
        context = browser.new_context(
            viewport={"width": cls.width, "height": 844},
            reduced_motion="reduce",
            storage_state=state,
            ignore_https_errors=True,
        )
        context.set_default_timeout(ANSWER_MS)
        hands = cls(context.new_page())
        try:
            yield hands
            hands.look()
            assert not hands.faults, "\n".join(["", *hands.faults])
        finally:
            context.close()

    def open(self, address: str) -> None:
        """Go to an address that somebody types, or finds in a mail."""
        self.look()
        self.page.goto(address)
        self._answered = self._asked

    def look(self) -> None:
        """Note what is wrong with the page as it is."""
        if not self.page.url.startswith("http"):
            return
        self.page.wait_for_load_state()
        if not urlsplit(self.page.url).path.startswith(NOT_OURS):
            wide = self.page.evaluate("document.documentElement.scrollWidth")
            if wide > self.width:
                self.faults.append(f"{self.page.url}: {wide} px wide in a window of {self.width}")
            self.examine()

    def examine(self) -> None:
        """Note what axe finds; a mouse leaves that to the keys."""

    def press(self, target: Locator) -> None:
        """Follow a link, press a button or unfold a summary; where that leads to a page, wait until it is there."""
        self.look()
        self.reach(target)
        leads = target.evaluate(LEADS)
        before = self._asked
        self.push(target)
        if leads:
            self._wait_until(lambda: self._asked > before, LEAVING_S)
            self._wait_until(lambda: self._answered == self._asked, ANSWER_MS / 1000)
            self.page.wait_for_load_state()

    def _wait_until(self, happened: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not happened() and time.monotonic() < deadline:
            self.page.wait_for_timeout(10)

    def push(self, target: Locator) -> None:
        """Press what has been reached."""
        raise NotImplementedError

    def tick(self, target: Locator) -> None:
        """Tick a box, or choose one of several."""
        raise NotImplementedError

    def fill(self, target: Locator, text: str) -> None:
        """Replace what is in a field."""
        self.reach(target)
        target.fill(text)

    def choose(self, target: Locator, label: str | re.Pattern[str]) -> None:
        """Choose from a list, by the words that it shows."""
        self.reach(target)
        options = target.locator("option")
        target.select_option(
            index=next(at for at, words in enumerate(options.all_inner_texts()) if re.search(label, words))
        )

    def reach(self, target: Locator) -> None:
        """Bring a field or button to where it can be used."""
        raise NotImplementedError

    def menu(self, name: str) -> None:
        """Follow a link of the menu, which may have to be unfolded."""
        header = self.page.locator(".site-header")
        link = header.get_by_role("link", name=name)
        for menu in header.locator("details > summary").all():
            if link.locator("visible=true").count():
                break
            if menu.is_visible():
                self.press(menu)
        self.press(link.locator("visible=true").first)

    def download(self, link: Locator, folder: Path) -> Path:
        """Return the file that a link is answered with, under its own name in `folder`."""
        with self.page.expect_download() as started:
            self.press(link)
        path = folder / started.value.suggested_filename
        started.value.save_as(path)
        return path

    def attach(self, target: Locator, file: Path) -> None:
        """Choose a file of this machine, by the dialog that the browser opens."""
        with self.page.expect_file_chooser() as dialog:
            self.press_file_input(target)
        dialog.value.set_files(file)

    def press_file_input(self, target: Locator) -> None:
        """Open the dialog."""
        raise NotImplementedError

    def sees(self, text: str | re.Pattern[str]) -> None:
        """Fail unless the page shows these words, or comes to show them."""
        expect(self.page.locator("body")).to_contain_text(text, timeout=ANSWER_MS)


class Mouse(Hands):
    """A wide window and a mouse."""

    width = 1280

    def push(self, target: Locator) -> None:
        target.click()

    def tick(self, target: Locator) -> None:
        target.check()

    def press_file_input(self, target: Locator) -> None:
        self.page.locator(f"label[for={target.get_attribute('id')}]").first.click()

    def reach(self, target: Locator) -> None:
        expect(target).to_be_visible()


class Keys(Hands):
    """A window as narrow as a phone's, and no mouse; every new page is examined by axe."""

    width = 390

    def push(self, target: Locator) -> None:
        self.page.keyboard.press("Enter")

    def tick(self, target: Locator) -> None:
        if target.get_attribute("type") == "radio":
            self._choose_radio(target)
        else:
            self.reach(target)
            if not target.is_checked():
                self.page.keyboard.press("Space")
        expect(target).to_be_checked()

    def press_file_input(self, target: Locator) -> None:
        self._tab_to(target, "(sought) => document.activeElement === sought")
        self.page.keyboard.press("Enter")

    def reach(self, target: Locator) -> None:
        expect(target).to_be_visible()
        self._tab_to(target, "(sought) => document.activeElement === sought")

    def _choose_radio(self, target: Locator) -> None:
        """Go to the group of a radio button by Tab, and within it by the arrows, as browsers have it."""
        self._tab_to(
            target,
            "(sought) => document.activeElement.name === sought.name && document.activeElement.type === 'radio'",
        )
        self.page.keyboard.press("Space")
        for _ in range(MOST_TABS):
            if target.is_checked():
                return
            self.page.keyboard.press("ArrowDown")

    def _tab_to(self, target: Locator, is_there: str) -> None:
        sought = target.element_handle()
        assert sought
        # Who was further down goes back by the shorter way.
        key = "Shift+Tab" if self.page.evaluate(IS_BEFORE, sought) else "Tab"
        for _ in range(MOST_TABS):
            if self.page.evaluate(is_there, sought):
                return
            self.page.keyboard.press(key)
        raise AssertionError(f"{self.page.url}: the Tab key doesn't reach {target}")

    def examine(self) -> None:
        path = urlsplit(self.page.url)
        kind = kind_of(f"{path.path}?{path.query}")
        if kind in Hands.examined:
            return
        Hands.examined.add(kind)
        self.page.evaluate(AXE_SCRIPT)
        found = self.page.evaluate(
            "(rules) => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", AXE_RULES
        )
        self.faults += [
            f"{self.page.url}: {violation['id']}: {node['html']}"
            for violation in found["violations"]
            for node in violation["nodes"]
        ]


# Whether a press of an element asks the site for a page or a file.
LEADS = """(pressed) => pressed.form ? pressed.type === 'submit'
    : Boolean(pressed.href) && !(pressed.hash && pressed.href.split('#')[0] === location.href.split('#')[0])"""
IS_BEFORE = """(sought) => document.activeElement !== document.body
    && Boolean(document.activeElement.compareDocumentPosition(sought) & Node.DOCUMENT_POSITION_PRECEDING)"""
