"""The journeys on an empty public site, one after another: what one person leaves, the next one finds."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.journeys import sites
from tests.journeys.crawling import crawl_as
from tests.journeys.sites import ORGANIZER, REVIEWERS, Site
from tests.services import rabbitmq

pytestmark = [
    pytest.mark.journeys,
    pytest.mark.xdist_group("public site"),
    pytest.mark.skipif(rabbitmq.binary() is None, reason="RabbitMQ is not installed"),
]


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with sites.public_site(tmp_path_factory.mktemp("public") / "site", browser) as site:
        yield site


@pytest.mark.parametrize("name", ["", REVIEWERS[0], ORGANIZER])
def test_every_address_that_a_page_of_the_empty_site_links_to_is_sound(site: Site, name: str) -> None:
    faults = crawl_as(site, name, each=2)
    assert not faults, "\n".join(["", *map(str, faults)])
