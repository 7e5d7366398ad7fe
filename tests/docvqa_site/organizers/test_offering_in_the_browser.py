"""A file of any size is uploaded in parts by the page on which a track's downloads are set up."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, Dialog, expect

from docvqa_site.downloads.models import Download
from docvqa_site.organizers.setup import forms
from docvqa_site.uploads.models import Upload
from docvqa_site.uploads.stores import current_store
from tests.docvqa_site.factories import make_organizer, make_track

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


def test_a_file_that_is_too_large_for_a_form_is_sent_in_parts(
    live_server: Any,
    client: Client,
    tmp_path: Path,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    browser: Browser,
) -> None:
    monkeypatch.setattr(forms, "MOST_UPLOAD_BYTES", 1000)
    settings.UPLOAD_PART_SIZE_BYTES = 1024 * 1024
    track = make_track(slug="draft", is_draft=True)
    client.force_login(make_organizer("organize", "change_track", "add_track"))
    data = b"training data " * 200_000
    (tmp_path / "train.zip").write_bytes(data)
    page = browser.new_page()
    session = client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    page.goto(f"{live_server.url}/organize/tracks/draft/setup/data/")
    page.get_by_label("Title").first.fill("Training data")
    page.get_by_label("License").first.fill("CC-BY-4.0")
    page.locator("input[type=file]").set_input_files(tmp_path / "train.zip")
    page.get_by_role("button", name="Add the download").click()
    expect(page.get_by_text("Training data was added.")).to_be_visible()
    assert sent.count("PUT") == 3
    download = Download.objects.get()
    assert (download.filename, download.size_bytes) == ("train.zip", len(data))
    assert download.sha256 == hashlib.sha256(data).hexdigest()
    assert list(download.tracks(manager="with_drafts").all()) == [track]
    assert current_store().size(download.store_key) == len(data)
    # Cleaning up finds nothing that it could take for an abandoned upload.
    assert not Upload.objects.exists()


def test_a_link_of_the_setup_asks_before_entries_are_lost(
    live_server: Any, client: Client, browser: Browser
) -> None:
    make_track(slug="draft", is_draft=True)
    client.force_login(make_organizer("organize", "change_track", "add_track"))
    page = browser.new_page()
    session = client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.goto(f"{live_server.url}/organize/tracks/draft/setup/texts/")
    steps = page.get_by_role("navigation", name="Steps")
    page.get_by_label("Summary").fill("Fewer bytes.")
    steps.get_by_role("link", name="1. Kind").click()
    assert asked == ["beforeunload"]
    expect(page.get_by_label("Summary")).to_have_value("Fewer bytes.")
    page.get_by_label("Description").fill("# Rules")
    page.get_by_role("button", name="Save and continue").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert asked == ["beforeunload"]


def test_only_those_who_set_up_tracks_upload_files(client: Client, db: None) -> None:
    client.force_login(make_organizer("organize"))
    assert client.post("/organize/files/uploads/check").status_code == 403
