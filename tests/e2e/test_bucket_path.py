"""Files on an S3 server: participants send to it and the worker fetches from it, by signed addresses."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from portal.standalone.stack import Stack
from tests.e2e.conftest import make_participant, pfl
from tests.e2e.test_browser_path import EMAIL, choose, log_in, make_draft
from tests.services.chromium import Chromium
from tests.services.seaweedfs import SeaweedFS, site_variables

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("s3")]


def stored_in(server: SeaweedFS, stack: Stack) -> list[int]:
    """The sizes of the site's files on the server."""
    prefix = stack.environment["PFL_STORE_URL"].rsplit("/", 1)[1]
    objects = server.client.list_objects_v2(Bucket=server.bucket, Prefix=prefix).get("Contents", [])
    return sorted(item["Size"] for item in objects)


def test_from_the_browser_and_from_pfl_over_the_bucket_to_the_leaderboard(
    new_stack: Callable[..., Stack], trained: Path, seaweedfs: SeaweedFS
) -> None:
    stack = new_stack(**site_variables(seaweedfs))
    assert "CORS and lifecycle" in stack.manage("configure_store", "--apply", "--check")
    token = make_participant(stack, EMAIL, "Compilers")
    run = trained / "fedavg"

    with Chromium() as browser:
        page = browser.new_page()
        complaints: list[str] = []
        page.on(
            "console", lambda line: complaints.append(line.text) if "Content Security" in line.text else None
        )
        log_in(page, stack)
        make_draft(page, stack, 1, "FedAvg by hand")

        def lose(route: Route) -> None:
            route.abort("connectionreset")

        page.route(f"{seaweedfs.url}/**", lose)
        choose(page, "checkpoint", run / "model.safetensors")
        expect(page.get_by_text("The connection is bad")).to_be_visible(timeout=60_000)
        page.unroute(f"{seaweedfs.url}/**")
        for kind, name in (
            ("checkpoint", "model.safetensors"),
            ("communication_log", "communication_log.csv"),
        ):
            if kind != "checkpoint":
                choose(page, kind, run / name)
            uploaded = page.locator(f"[data-kind={kind}]").get_by_text(f"{name} is uploaded.")
            expect(uploaded).to_be_visible(timeout=60_000)
        files = sorted((run / name).stat().st_size for name in ("model.safetensors", "communication_log.csv"))
        assert stored_in(seaweedfs, stack) == files
        page.get_by_role("button", name=re.compile("^submit", re.I)).click()
        expect(page.locator(".badge", has_text=re.compile("^scored$")).first).to_be_visible(timeout=120_000)
        assert complaints == []

    # The same checkpoint again is a duplicate, which the site can detect only once the upload is complete.
    printed = pfl(
        *("submit", run, "--track", "track-1", "--title", "FedAvg by pfl"),
        environment={"PFL_SITE": stack.url, "PFL_TOKEN": token},
        status=2,
    )
    assert "E_SUBMISSION_DUPLICATE" in printed
    attached = (run / "settings.yaml").stat().st_size
    assert stored_in(seaweedfs, stack) == sorted([*files, *files, attached])
    assert not list((stack.home / "store").rglob("*"))
