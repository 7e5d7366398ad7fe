"""The browser that the tests drive."""

import os
import shutil
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

# Without the windows that nobody sees, a page takes less than half the processor time.
SHELL = "chromium-headless-shell"


def installed() -> str | None:
    """$CHROMIUM, or an installed Chromium or Chrome, best without windows."""
    names = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def binary() -> str | None:
    """An installed browser, or Playwright's own."""
    if found := installed():
        return found
    with sync_playwright() as playwright:
        bundled = playwright.chromium.executable_path
    return bundled if Path(bundled).exists() else None


class Chromium:
    """A headless browser; use as a context manager."""

    def __enter__(self) -> Browser:
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(
            # Without a path it's Playwright's own, which has no windows.
            executable_path=installed(),
            args=["--disable-dev-shm-usage", "--disable-background-networking"],
        )
        return self.browser

    def __exit__(self, *_: object) -> None:
        self.browser.close()
        self.playwright.stop()
