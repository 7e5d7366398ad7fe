"""From sign-up to a score on PostgreSQL, Redis, RabbitMQ and S3, all of them started for this test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from portal.standalone.stack import Stack
from tests.e2e.conftest import pfl
from tests.e2e.test_browser_path import EMAIL, log_in, make_team, page, sign_up  # noqa: F401  (page: a fixture)
from tests.services import rabbitmq
from tests.services.all import all_services

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(rabbitmq.binary() is None, reason="RabbitMQ is not installed"),
]


@pytest.fixture
def services() -> Iterator[dict[str, str]]:
    """The variables of a site whose database, cache, broker and store are servers on free ports."""
    with all_services() as variables:
        yield variables


def test_a_submission_is_scored_on_all_four_services(
    new_stack: Callable[..., Stack],
    trained: Path,
    services: dict[str, str],
    page: Page,  # noqa: F811
) -> None:
    stack = new_stack(**services)
    sign_up(page, stack)
    if page.url.endswith("/login/"):
        log_in(page, stack)
    make_team(page, stack, "Compilers")
    token = stack.manage("create_token", EMAIL, "--label", "test")
    access = {"PFL_SITE": stack.url, "PFL_TOKEN": token}
    submitted = pfl(
        *("submit", trained / "fedavg", "--track", "track-1", "--title", "Four services", "--wait"),
        environment=access,
    )
    assert "scored" in submitted
    assert not any((stack.home / name).exists() for name in ("db.sqlite3", "broker.sqlite3"))
    assert not any(path.is_file() for path in (stack.home / "store").rglob("*"))
    page.goto(f"{stack.url}/leaderboard/track-1/")
    row = page.get_by_role("row").filter(has_text="Four services")
    expect(row).to_contain_text("Compilers")
