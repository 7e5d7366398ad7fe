"""The sites that the journeys of a module share."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.journeys import sites
from tests.services.chromium import Chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def demonstration(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sites.Site]:
    """What `make demo` leaves, at its smallest."""
    with sites.demonstration(tmp_path_factory.mktemp("journeys") / "demonstration", browser) as site:
        yield site
