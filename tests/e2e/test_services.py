"""From sign-up to a score on PostgreSQL, Redis, RabbitMQ and S3, all of them started for this test."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import boto3
import pytest
from playwright.sync_api import Route, expect

from tests.demo.stack import Stack
from tests.e2e.conftest import pfl
from tests.journeys import participant
from tests.journeys.hands import Mouse
from tests.journeys.participant import Newcomer, attach, upload
from tests.journeys.sites import embedded_site
from tests.services import rabbitmq
from tests.services.all import all_services
from tests.services.chromium import Chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(rabbitmq.binary() is None, reason="RabbitMQ is not installed"),
]


@pytest.fixture
def services() -> Iterator[dict[str, str]]:
    """The variables of a site whose database, cache, broker and store are servers on free ports."""
    with all_services() as variables:
        yield variables


def stored(services: Mapping[str, str]) -> list[int]:
    """The sizes of the site's files on the S3 server."""
    client = boto3.client(
        "s3",
        endpoint_url=services["PFL_STORE_ENDPOINT"],
        region_name="us-east-1",
        aws_access_key_id=services["PFL_STORE_ACCESS_KEY"],
        aws_secret_access_key=services["PFL_STORE_SECRET_KEY"],
    )
    bucket, _, prefix = services["PFL_STORE_URL"].removeprefix("s3://").partition("/")
    objects = client.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
    return sorted(item["Size"] for item in objects)


GRACE = Newcomer("grace@lab.example", "Grace Hopper", team="Compilers")


def test_submissions_go_over_the_bucket_and_are_scored_on_all_four_services(
    new_stack: Callable[..., Stack],
    trained: Path,
    services: dict[str, str],
) -> None:
    stack = new_stack(**services)
    assert "CORS and lifecycle" in stack.manage("configure_store", "--apply", "--check")
    run = trained / "fedavg"
    complaints: list[str] = []

    def lose(route: Route) -> None:
        route.abort("connectionreset")

    with Chromium() as browser, Mouse.window(browser) as hands:
        page = hands.page
        page.on(
            "console", lambda line: complaints.append(line.text) if "Content Security" in line.text else None
        )
        site = embedded_site(stack, browser)
        participant.sign_up(site, hands, GRACE)
        participant.make_draft(hands, "Communication-efficient FL", "Four services")
        page.route(f"{services['PFL_STORE_ENDPOINT']}/**", lose)
        place = attach(hands, "checkpoint", run / "model.safetensors")
        expect(page.get_by_text("The connection is bad")).to_be_visible(timeout=60_000)
        page.unroute(f"{services['PFL_STORE_ENDPOINT']}/**")
        expect(place.get_by_text("model.safetensors is uploaded.")).to_be_visible(timeout=60_000)
        rest = {
            "communication_log": run / "communication_log.csv",
            "transcript": run / "transcript.jsonl",
            "messages": run / "messages.bin",
        }
        upload(hands, rest)
        files = sorted(path.stat().st_size for path in (run / "model.safetensors", *rest.values()))
        assert stored(services) == files
        participant.submit_and_wait(hands)
        assert complaints == []
        expect(participant.row_of(site, hands, "track-1", "Four services")).to_contain_text("Compilers")

    # The same checkpoint again is a duplicate, of which the site tells before anything is sent.
    printed = pfl(
        *("submit", run, "--track", "track-1", "--title", "FedAvg by pfl"),
        environment={
            "PFL_SITE": stack.url,
            "PFL_TOKEN": stack.manage("create_token", GRACE.email, "--label", "test"),
        },
        status=2,
    )
    assert "E_SUBMISSION_DUPLICATE" in printed
    assert stored(services).count((run / "model.safetensors").stat().st_size) == 1
    assert not any((stack.home / name).exists() for name in ("db.sqlite3", "broker.sqlite3"))
    assert not any(path.is_file() for path in (stack.home / "store").rglob("*"))
