"""The browser that the tests drive."""

import os
import shutil
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright


def binary() -> str | None:
    """$CHROMIUM, an installed Chromium or Chrome, or Playwright's own."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    if found := os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None):
        return found
    with sync_playwright() as playwright:
        bundled = playwright.chromium.executable_path
    return bundled if Path(bundled).exists() else None


class Chromium:
    """A headless browser; use as a context manager."""

    def __enter__(self) -> Browser:
        executable = binary()
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(
            executable_path=executable, args=["--disable-dev-shm-usage", "--disable-background-networking"]
        )
        return self.browser

    def __exit__(self, *_: object) -> None:
        self.browser.close()
        self.playwright.stop()
