"""An organizer's way in a real browser: a threshold is previewed and changed, and the phase is closed."""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, expect

from tests.docvqa_site.factories import make_organizer, make_run, make_submission, make_track

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


def test_a_threshold_is_changed_and_the_phase_closed_and_its_files_verified_offline(
    live_server: Any, client: Client, tmp_path: Path, browser: Browser
) -> None:
    track = make_track(slug="bytes", anls_threshold=0.5)
    for title, anls in (("Weak", 0.6), ("Strong", 0.9)):
        make_run(make_submission(track=track, state="submitted", title=title), state="scored", anls=anls)
    client.force_login(make_organizer("organize", "change_track", "view_submission"))
    page = browser.new_page()
    session = client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    page.goto(f"{live_server.url}/organize/")
    page.get_by_role("link", name="Change ").click()
    page.get_by_label("ANLS threshold").fill("0.8")
    page.get_by_label("Reason").fill("As announced.")
    page.get_by_role("button", name="Preview the effect").click()
    expect(page.get_by_text("1 run loses its rank.")).to_be_visible()
    expect(page.get_by_role("row", name="Weak")).to_contain_text("below the threshold of 0.8000")
    page.get_by_role("button", name="Apply and publish").click()
    expect(page.get_by_text("the rules have been changed")).to_be_visible()
    page.goto(f"{live_server.url}/leaderboard/bytes/")
    expect(page.get_by_role("row", name="Strong")).to_contain_text("1")
    expect(page.get_by_text("Not ranked (1)")).to_be_visible()
    page.goto(f"{live_server.url}/tracks/bytes/")
    expect(page.get_by_text("ANLS threshold: 0.5000 → 0.8000. As announced.")).to_be_visible()
    page.goto(f"{live_server.url}/organize/")
    page.get_by_role("link", name="Change ").click()
    page.get_by_role("link", name="Submissions", exact=True).last.click()
    page.get_by_label("Ends").fill("2026-01-01T12:00")
    page.get_by_label("Reason").fill("As announced.")
    page.get_by_role("button", name="Preview the effect").click()
    page.get_by_role("button", name="Apply and publish").click()
    page.goto(f"{live_server.url}/organize/")
    page.get_by_role("region", name="Needs attention").get_by_role("link", name="Close “Submissions”").click()
    page.get_by_label("Name in the address").fill("autumn")
    page.get_by_role("button", name="Preview the publication").click()
    page.get_by_label("Yes, publish these results").check()
    page.get_by_role("button", name="Close the phase and publish the results").click()
    expect(page.get_by_role("heading", name="Standings")).to_be_visible()
    with page.expect_download() as files:
        page.get_by_role("link", name="Download all files (zip)").click()
    with zipfile.ZipFile(files.value.path()) as archive:
        archive.extractall(tmp_path)
    # Without the site, its libraries and its environment.
    verify = [sys.executable, "-I", "-S", str(tmp_path / "autumn" / "verify.py")]
    assert subprocess.run(verify, env={}, check=False).returncode == 0
