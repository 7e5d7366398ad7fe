"""What every test of the site begins with."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.core.cache import caches
from django.http import FileResponse
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from tests.services.chromium import Chromium

PATIENCE_S = 60

# The test client reads a file as it reads a page.
setattr(FileResponse, "text", property(lambda response: response.getvalue().decode()))  # noqa: B010


@pytest.fixture(autouse=True)
def nothing_cached():
    """Caches and limits of one test must not reach the next."""
    for cache in caches.all(initialized_only=True):
        cache.clear()
    shutil.rmtree(Path(settings.HOME, "exports"), ignore_errors=True)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """One for the tests that need one: they run one after the other."""
    with Chromium() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """A browser without windows; those of a test are closed after it."""
    yield chromium
    for context in chromium.contexts:
        context.close()


@pytest.fixture
def live_server(live_server: LiveServer, transactional_db: None) -> Iterator[LiveServer]:
    """The server of browser tests, which has answered everything before the database is emptied.

    A browser that is closed leaves requests that the server still works on: they would wait for the emptying of tables,
    and it for them, or write into the next test.
    """
    yield live_server
    for thread in threading.enumerate():
        # One for each connection of the server.
        if "process_request_thread" in thread.name:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
